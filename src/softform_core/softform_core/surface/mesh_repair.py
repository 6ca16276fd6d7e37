"""Repair of what meshes exported by other programs often have, before they are flattened."""

import logging
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from softform_core.surface.mesh import (
    Array,
    Indices,
    ParametrisationError,
    checked_mesh,
    connected,
    directed_edges,
    doubled_areas,
    joined_vertices,
    parts_of,
    shared_edges,
)

_FLAT = 1e-6
"""Least height of a triangle over its longest side; below it, it has no area in the precision of exports."""


@dataclass(frozen=True)
class RepairedMesh:
    """One connected, consistently oriented mesh.

    Attributes:
        vertices: (V, 3).
        faces: (F, 3).
        kept: (V,) which vertex of the mesh before the repair each is: a deformed shape of that mesh is `shape[kept]`.
        repairs: Repairs made, one sentence each; empty for a mesh without faults.
    """

    vertices: Array
    faces: Indices
    kept: Indices
    repairs: tuple[str, ...]


def repair(vertices: ArrayLike, faces: ArrayLike) -> RepairedMesh:
    """Join equal vertices (V, 3), remove faces (F, 3) without area, keep the largest part, turn faces alike; log it.

    Raises:
        ParametrisationError: If this is no triangle mesh, holds NaN, has no face with an area, or is one-sided.
    """
    points, triangles = checked_mesh(vertices, faces)
    repairs = []

    def note(count: int, done: str) -> None:
        if count:
            repairs.append(f"{count} {done}.")

    used = np.unique(triangles)
    one = joined_vertices(points, used)
    note(int((one[used] != used).sum()), "duplicate vertices were joined")
    triangles = one[triangles]

    collapsed = (triangles == np.roll(triangles, 1, axis=1)).any(axis=1)
    note(int(collapsed.sum()), "faces with a repeated vertex were removed")
    triangles = triangles[~collapsed]
    _, first = np.unique(np.sort(triangles, axis=1), axis=0, return_index=True)
    note(len(triangles) - len(first), "duplicate faces were removed")
    triangles = triangles[np.sort(first)]
    if not len(triangles):
        raise ParametrisationError("No face of the mesh has an area.", "Export the mesh again.")

    parts, part = parts_of(triangles)
    areas = np.bincount(part, doubled_areas(points, triangles))
    largest = part == areas.argmax()
    note(parts - 1, f"smaller parts with {int((~largest).sum())} faces were left out: the largest of {parts} is kept")
    triangles = triangles[largest]

    turned = _against_the_rest(points, triangles)
    note(int(turned.sum()), "faces were turned round")
    triangles = np.where(turned[:, None], triangles[:, ::-1], triangles)

    triangles, flat = _without_flat_faces(points, triangles)
    note(flat, "faces without area were removed")

    kept = np.unique(triangles)
    note(len(points) - len(used), "vertices that belong to no face were left out")
    for done in repairs:
        logging.getLogger(__name__).warning("Mesh repaired: %s", done)
    return RepairedMesh(points[kept], np.searchsorted(kept, triangles), kept, tuple(repairs))


def _against_the_rest(points: Array, faces: Indices) -> np.ndarray:
    """Return faces (F,) of one part that turn against the larger area of it.

    Each face is two nodes of a graph, as it is and turned; neighbours that agree are joined like to like, others
    crosswise. A mesh that can be oriented falls into two components, one the reverse of the other.
    """
    one, other = shared_edges(faces)
    edges = directed_edges(faces).reshape(-1, 2)
    disagree = (edges[one] == edges[other]).all(axis=1)
    one, other, count = one // 3, other // 3, len(faces)
    start = np.concatenate([one, one + count])
    end = np.concatenate([other + disagree * count, other + ~disagree * count])
    label = connected(np.column_stack([start, end]), 2 * count)
    if (label[:count] == label[count:]).any():
        raise ParametrisationError("The mesh is one-sided, like a Moebius strip.", "Check the mesh.")
    turned = label[:count] != label[0]
    areas = doubled_areas(points, faces)
    return np.asarray(~turned if areas[turned].sum() > areas.sum() / 2 else turned)


def _without_flat_faces(points: Array, faces: Indices) -> tuple[Indices, int]:
    """Give the middle vertex of faces whose vertices lie in a line to the face beyond their longest side."""
    faces, removed = faces.copy(), 0
    while removed < len(faces):
        lengths = np.linalg.norm(np.diff(points[directed_edges(faces)], axis=2)[:, :, 0], axis=2)
        flatness = doubled_areas(points, faces) / lengths.max(axis=1) ** 2
        worst = int(flatness.argmin())
        if flatness[worst] > _FLAT:
            return faces, removed
        a, b, c = np.roll(faces[worst], -int(lengths[worst].argmax()))
        beyond = np.flatnonzero((directed_edges(faces) == [b, a]).all(axis=2).any(axis=1))
        removed += 1
        if len(beyond):
            (d,) = np.setdiff1d(faces[beyond[0]], [a, b])
            faces[worst], faces[beyond[0]] = (c, a, d), (b, c, d)
        else:
            faces = np.delete(faces, worst, axis=0)
    raise ParametrisationError("Too many faces of the mesh have no area.", "Export the mesh again.")
