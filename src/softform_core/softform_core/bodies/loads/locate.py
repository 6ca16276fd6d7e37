"""In which element of a mesh a point lies, and by which weights of its nodes."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.elements import tetrahedron_shapes, wedge_shapes

_BESIDE = 0.02
"""Of an element's reference coordinates: a point of a curved wall may lie so far beside the elements of the wall."""
_ITERATIONS = 12
_WITHIN = 1e-9  # of the reference coordinates

Shapes = Callable[[Array], tuple[Array, Array]]
"""Shape functions and their derivatives at reference coordinates, as of `bodies.elements`."""


def located(point: Array, nodes: Array, elements: NDArray[np.integer]) -> tuple[int, Array] | None:
    """The element that a point (3,) m lies in and the weights (n,) of its nodes; None if it lies in none.

    Args:
        point: The point.
        nodes: (V, 3) m.
        elements: (E, n) wedges of 18 nodes or tetrahedra of 10.
    """
    shapes = wedge_shapes if elements.shape[1] == 18 else tetrahedron_shapes
    corners = nodes[elements]
    low, high = corners.min(axis=1), corners.max(axis=1)
    slack = _BESIDE * (high - low).max(axis=1, keepdims=True)
    near = np.flatnonzero(((low - slack <= point) & (point <= high + slack)).all(axis=1))
    best, found = _BESIDE, None
    for element in near.tolist():
        place = _place(point, corners[element], shapes)
        beyond = _beyond(place, elements.shape[1]) if place is not None else np.inf
        if place is not None and beyond < best:
            best, found = beyond, (element, shapes(place[None])[0][0])
    return found


def _place(point: Array, corners: Array, shapes: Shapes) -> Array | None:
    """Reference coordinates (3,) of a point in an element with nodes (n, 3), by Newton's method; None if it fails."""
    place = np.array([1.0 / 3.0, 1.0 / 3.0, 0.0]) if len(corners) == 18 else np.full(3, 0.25)
    for _ in range(_ITERATIONS):
        values, slopes = shapes(place[None])
        try:
            step = np.linalg.solve(corners.T @ slopes[0], point - values[0] @ corners)
        except np.linalg.LinAlgError:
            return None
        place = place + step
        if np.abs(step).max() < _WITHIN:
            return place
        if np.abs(place).max() > 10.0:
            return None
    return None


def _beyond(place: Array, count: int) -> float:
    """How far reference coordinates (3,) lie outside an element; below 0 within."""
    if count == 18:
        inside = [*place[:2], 1.0 - place[0] - place[1], 1.0 - abs(place[2])]
    else:
        inside = [*place, 1.0 - place.sum()]
    return -float(min(inside))
