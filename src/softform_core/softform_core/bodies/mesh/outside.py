"""The surface of a body that is shown and shaped: its outside, cut off by planes; its points move with the nodes."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack
from scipy.sparse import eye as identity

from softform_core.arrays import Array
from softform_core.bodies.mesh.description import MeshBody
from softform_core.errors import SoftformError
from softform_core.surface.closed import place
from softform_core.surface.mesh import border_loops, euler_characteristic, parts_of

_ON_PLANE = 0.05
"""Of an edge: a vertex so near to a plane that cuts the edge lies in it, or slivers would be left."""


def cut_outside(body: MeshBody, nodes: Array, faces: NDArray[np.int64]) -> tuple[csr_matrix, NDArray[np.int32]]:
    """Points on the outside above the supports, and triangles over them, which the end of a tube cuts, too.

    Args:
        body: The description.
        nodes: (V, 3) m.
        faces: Triangles (F, 3) of the outside.

    Returns:
        Weights (P, V) of the nodes in each point, and (G, 3) triangles over the points.
    """
    weights = csr_matrix(identity(len(nodes)))
    for plane in [*body.supports, *([body.end] if body.end else [])]:
        weights, faces = _cut(weights, faces, plane.heights(weights @ nodes))
    for plane in body.supports:
        faces = faces[plane.heights((weights @ nodes)[faces].mean(axis=1)) > body.held_within]
    used, faces = np.unique(faces, return_inverse=True)
    return weights[used], faces.reshape(-1, 3).astype(np.int32)


def _cut(weights: csr_matrix, faces: NDArray[np.int64], heights: Array) -> tuple[csr_matrix, NDArray[np.int64]]:
    """Split the triangles that a plane crosses, over which points have `heights` (P,)."""
    heights = _snapped(faces, heights)
    side = np.sign(heights)
    edges = np.sort(np.stack([faces, np.roll(faces, -1, axis=1)], axis=2).reshape(-1, 2), axis=1)
    edges = np.unique(edges[side[edges[:, 0]] * side[edges[:, 1]] < 0], axis=0)
    if not len(edges):
        return weights, faces
    share = heights[edges[:, 0]] / (heights[edges[:, 0]] - heights[edges[:, 1]])
    rows, count = np.arange(len(edges)), weights.shape[0]
    values = np.concatenate([1.0 - share, share])
    places = (np.concatenate([rows, rows]), np.concatenate([edges[:, 0], edges[:, 1]]))
    cuts = csr_matrix((values, places), (len(edges), count)) @ weights
    of_edge = {(int(a), int(b)): count + row for row, (a, b) in enumerate(edges)}

    def cut(a: int, b: int) -> int:
        return of_edge[min(a, b), max(a, b)]

    crossed = (side[faces].min(axis=1) < 0) & (side[faces].max(axis=1) > 0)
    split: list[tuple[int, int, int]] = []
    for face in faces[crossed].tolist():
        sides = side[face]
        if (sides == 0).any():  # through a corner
            a, b, c = np.roll(face, -int(np.argmax(sides == 0))).tolist()
            split += [(a, b, cut(b, c)), (a, cut(b, c), c)]
            continue
        a, b, c = np.roll(face, -int(np.argmax(sides == -np.sign(sides.sum())))).tolist()  # a is the lone one
        first, last = cut(a, b), cut(a, c)
        split += [(a, first, last), (first, b, c), (first, c, last)]
    return csr_matrix(vstack([weights, cuts])), np.concatenate([faces[~crossed], np.array(split).reshape(-1, 3)])


def _snapped(faces: NDArray[np.int64], heights: Array) -> Array:
    """Heights (P,), zero of points that lie nearly in the plane for an edge that it cuts."""
    edges = np.stack([faces, np.roll(faces, -1, axis=1)], axis=2).reshape(-1, 2)
    one, other = heights[edges].T
    is_cut = one * other < 0.0
    share = np.abs(one[is_cut]) / np.abs(one[is_cut] - other[is_cut])
    near = np.concatenate([edges[is_cut][share < _ON_PLANE, 0], edges[is_cut][share > 1.0 - _ON_PLANE, 1]])
    snapped = heights.copy()
    snapped[near] = 0.0
    return snapped


def check_patch(body: MeshBody, points: Array, faces: NDArray[np.int32]) -> None:
    """Reject a surface that is not a sheet or tube as described, with the places of its rims.

    Args:
        body: The description, with a surface.
        points: (P, 3) m, at rest.
        faces: (G, 3), of the patch.

    Raises:
        SoftformError: If it is in pieces, or has other rims, or holes through the body.
    """
    if not len(faces):
        raise SoftformError(
            f"Nothing of the outside of {body.file} lies between its supports and the plane in which the tube ends.",
            "Turn the end round (normal), or move it (end: at, m).",
        )
    count, part = parts_of(faces.astype(np.int64))
    wanted = 2 if body.surface == "tube" else 1
    if count != 1:
        middles = [place(points[np.unique(faces[part == one])].mean(axis=0)) for one in range(min(count, 3))]
        told = f"is in {count} pieces, around {', '.join(middles)}"
    else:
        rims = border_loops(faces)
        used, local = np.unique(faces, return_inverse=True)
        through = (2 - len(rims) - euler_characteristic(local.reshape(-1, 3).astype(np.int64), len(used))) // 2
        if len(rims) == wanted and through == 0:
            return
        told = f"has {len(rims)} rim{'s' if len(rims) != 1 else ''}"
        told += "".join(
            f"{',' if number else ':'} around {place(points[rim].mean(axis=0))}" for number, rim in enumerate(rims[:4])
        )
        told += f", and {through} hole{'s' if through != 1 else ''} through it" if through else ""
    advice = {
        "tube": "A tube has two rims and no hole: name the plane it ends in (end), or choose surface: sheet or none.",
        "sheet": "A sheet has one rim and no hole: choose surface: tube, or none, with a tip.",
    }
    raise SoftformError(f"The outside of {body.file} above its supports {told}.", advice[body.surface])
