"""How scans of the true robot move the imported shapes: what the virtual rig of an imported body replays."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csc_matrix, diags, eye
from scipy.sparse.linalg import splu

from softform_core.arrays import Array
from softform_core.bodies.imported.law import Law, interpolated
from softform_core.frames.store import FrameStore, open_recording
from softform_core.geometry.triangle_tree import TriangleTree
from softform_core.shapes.shape import Shape

_ROUNDS = 2
"""How often a shape is led on to its scan: each time the points' feet are sought anew."""
_SMOOTH, _HELD = 3.0, 1e-4
"""Weights of smoothness and of not moving at all beside one scanned point a vertex."""
_FURTHEST = 0.15
"""Of the body's size: points further from the imported shape are not of the robot."""
_MOST_POINTS = 20_000

_known: dict[tuple[object, ...], Array] = {}


def scanned_law(path: Path, law: Law, faces: NDArray[np.int32]) -> tuple[Law, int]:
    """A law of shapes moved along their normals as scans show, and how many scans there are; `law` if none.

    Between the scans, as over their holes, what they show is interpolated.

    Raises:
        SoftformError: If the store cannot be read.
    """
    store = open_recording(path)
    if not isinstance(store, FrameStore) or store.attributes["source"].startswith("virtual rig"):
        return law, 0
    numbers = store.captured.tolist()
    actuation = store.actuation[numbers]
    if len(numbers) < 2:
        return law, 0
    shapes = law(actuation)
    key = str(path), store.attributes["created"], *numbers, shapes.tobytes()
    if key not in _known:  # a rig asks for the body more than once
        _known.clear()
        found = [_moves(*pair, faces) for pair in zip(shapes, map(store.points, numbers), strict=True)]
        _known[key] = np.array(found)
    gap = interpolated(actuation, _known[key], kernel="linear", degree=0)
    return lambda at: law(at) + gap(at), len(numbers)


def _moves(shape: Array, scan: NDArray[np.floating], faces: NDArray[np.int32]) -> Array:
    """How the vertices (V, 3) m of a shape move for its surface to be that of a scan (M, 3) m, (V, 3)."""
    points = scan[:: max(1, len(scan) // _MOST_POINTS)].astype(np.float64)
    smooth = _laplacian(len(shape), faces)
    moved, size = shape.copy(), float(np.ptp(shape, axis=0).max())
    for _ in range(_ROUNDS):
        normals = Shape.from_mesh(moved, faces).normals
        assert normals is not None
        triangle, feet, weights = TriangleTree(moved[faces]).query(points)
        near = np.linalg.norm(points - feet, axis=1) < _FURTHEST * size
        corners, weights = faces[triangle[near]], weights[near]
        at_feet = np.einsum("pc,pcx->px", weights, normals[corners])
        offset = np.einsum("px,px->p", points[near] - feet[near], at_feet)
        rows = np.repeat(np.arange(len(corners)), 3)
        seen = csc_matrix((weights.ravel(), (rows, corners.ravel())), shape=(len(corners), len(shape)))
        weight = len(shape) / max(len(corners), 1)
        matrix = weight * seen.T @ seen + _SMOOTH * smooth.T @ smooth + _HELD * eye(len(shape))
        height = splu(csc_matrix(matrix)).solve(weight * (seen.T @ offset))
        moved = moved + height[:, None] * normals
    return moved - shape


def _laplacian(vertices: int, faces: NDArray[np.int32]) -> csc_matrix:
    """Each vertex less the mean of its neighbours, (V, V)."""
    start, end = faces.ravel(), np.roll(faces, 1, axis=1).ravel()
    joined = coo_matrix((np.ones(len(start)), (start, end)), shape=(vertices, vertices)).tocsc()
    joined = ((joined + joined.T) > 0).astype(np.float64)
    degree = np.maximum(np.asarray(joined.sum(axis=1)).ravel(), 1.0)
    return eye(vertices, format="csc") - diags(1.0 / degree) @ joined
