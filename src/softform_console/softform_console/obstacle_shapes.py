"""Obstacles that a page has placed, as one mesh for the planner."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from softform_console.motion_messages import Obstacle
from softform_core.arrays import Array
from softform_core.shapes.shape import Shape

_CELLS = 8
"""Cells a side of each face of the cube that is blown up to a ball."""


def mesh_of(obstacles: Sequence[Obstacle]) -> Shape:
    """Return obstacles as one mesh, m; a ball's faces touch it from outside, so that nothing comes nearer than it is.

    Raises:
        SoftformError: If there is none.
    """
    vertices, triangles, count = [], [], 0
    for one in obstacles:
        corners, faces = _cube(1) if one.kind == "box" else _ball()
        vertices.append(np.asarray(one.centre) + 0.5 * np.asarray(one.edges) * corners)
        triangles.append(faces + count)
        count += len(corners)
    return Shape.from_mesh(np.concatenate([*vertices, np.empty((0, 3))]), np.concatenate(triangles or [_NO_FACES]))


_NO_FACES = np.empty((0, 3), dtype=np.int64)


def _cube(cells: int) -> tuple[Array, NDArray[np.int64]]:
    """Return the surface of the cube from -1 to 1, with so many cells a side of each face; outward triangles."""
    side = np.linspace(-1.0, 1.0, cells + 1)
    a, b = (each.ravel() for each in np.meshgrid(side, side, indexing="ij"))
    at = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).ravel()
    along, across = at + cells + 1, at + 1
    face = np.concatenate([np.stack([at, along, along + 1], axis=1), np.stack([at, along + 1, across], axis=1)])
    vertices, triangles = [], []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            corners = np.empty((len(a), 3))
            corners[:, axis], corners[:, (axis + 1) % 3], corners[:, (axis + 2) % 3] = sign, a, b
            triangles.append((face if sign > 0.0 else face[:, ::-1]) + len(a) * len(vertices))
            vertices.append(corners)
    return np.concatenate(vertices), np.concatenate(triangles)


def _ball() -> tuple[Array, NDArray[np.int64]]:
    """Return a ball of radius 1 within its mesh, outward triangles."""
    cube, faces = _cube(_CELLS)
    points = cube / np.linalg.norm(cube, axis=1, keepdims=True)
    corners = points[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    heights = np.einsum("fx,fx->f", normals, corners[:, 0]) / np.linalg.norm(normals, axis=1)
    return points / heights.min(), faces
