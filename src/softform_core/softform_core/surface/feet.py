"""Closest points of a sampled surface: where on it points of space belong, and how far from it they are."""

from dataclasses import dataclass

import numpy as np

from softform_core.arrays import Array
from softform_core.geometry.triangle_tree import TriangleTree
from softform_core.surface.patch_set import PatchSet

_ON_RIM = 1e-9


@dataclass(frozen=True)
class Feet:
    """The closest points of a surface to N points of space, in the unit of the points.

    Attributes:
        uv: (N, 2) parameters of the closest points.
        normals: (N, 3) unit normals du x dv there.
        along_normal: (N,) signed offsets of the points along the normals there, positive along du x dv.
        beyond_rim: (N,) distances sideways of the rim of its patch; 0 where the closest point is not on it.
    """

    uv: Array
    normals: Array
    along_normal: Array
    beyond_rim: Array


def feet_on(surface: Array, patches: PatchSet, points: Array) -> Feet:
    """Find the closest points of a surface (P, 3) over `patches.samples` to points (N, 3), exact on its triangles."""
    faces = patches.triangles(len(surface))
    corners = surface[faces]
    triangle, feet, barycentric = TriangleTree(corners).query(points)
    a, b, c = (corners[triangle, corner] for corner in range(3))
    normals = np.cross(b - a, c - a)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    offset = points - feet
    along = np.einsum("nx,nx->n", offset, normals)
    sideways = np.linalg.norm(offset - along[:, None] * normals, axis=1)
    place, samples = patches.split(patches.samples(len(surface)))
    uv, on_rim = np.empty((len(points), 2)), np.zeros(len(points), dtype=bool)
    for number, patch in enumerate(patches.patches):
        own = place[faces[triangle, 0]] == number
        corners_uv = patch.unwrapped(samples[faces[triangle[own]]])
        local = np.clip(patch.wrapped(np.einsum("nc,ncx->nx", barycentric[own], corners_uv)), 0.0, 1.0)
        for side in patch.sides:
            on_rim[own] |= np.abs(local[:, side.axis] - side.end) <= _ON_RIM
        uv[own] = patches.joined(number, local)
    return Feet(uv, normals, along, np.where(on_rim, sideways, 0.0))
