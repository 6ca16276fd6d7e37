"""Described loads on a mesh: which nodes a grip holds, and in which elements the points of a cable lie."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.bodies.elements import tetrahedron_shapes, wedge_shapes
from softform_core.bodies.loads.cable import Cable, Segments
from softform_core.bodies.loads.description import CableLoad, GripLoad
from softform_core.bodies.loads.grip import Grip
from softform_core.bodies.loads.load import Load
from softform_core.errors import SoftformError

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


def weights_of(points: Array, nodes: Array, elements: NDArray[np.integer]) -> csr_matrix:
    """Weights (P, V) of the nodes in points (P, 3) m at rest; one outside of all elements is its nearest node.

    Args:
        points: The points.
        nodes: (V, 3) m.
        elements: As of `located`.
    """
    found = csr_matrix((len(points), len(nodes))).tolil()
    nearest = cKDTree(nodes).query(points)[1]
    for row, point in enumerate(points):
        place = located(point, nodes, elements)
        if place is None:
            found[row, nearest[row]] = 1.0
        else:
            found[row, elements[place[0]]] = place[1]
    return csr_matrix(found)


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


_ROUNDED = 1e-9  # of the extent: a node on a side of a box lies in it

InSupport = Callable[[Array, float], bool]
"""Whether a point (3,) m outside of the mesh lies in the support, where it is fixed in space, or so little above, m."""


def below_zero(point: Array, slack: float) -> bool:
    """`InSupport` of what stands on z = 0."""
    return bool(point[2] <= slack)


def loads_on_mesh(
    loads: Sequence[CableLoad | GripLoad],
    nodes: Array,
    elements: NDArray[np.integer],
    modulus: float,
    volume: float,
    in_support: InSupport = below_zero,
) -> tuple[Load, ...]:
    """The loads of a description.

    Args:
        loads: The descriptions.
        nodes: (V, 3) m, at rest.
        elements: (E, n) nodes of wedges or tetrahedra.
        modulus: Shear modulus, Pa.
        volume: Of all elements, m^3.
        in_support: Of points that lie outside of the elements.

    Raises:
        SoftformError: If a grip holds nothing, or too little to turn it; if a point of a cable lies outside.
    """
    element = modulus * (volume / len(elements)) ** (1.0 / 3.0)
    force = modulus * volume / float(np.ptp(nodes, axis=0).max())
    slack = _ROUNDED * float(np.ptp(nodes, axis=0).max())
    made: list[Load] = []
    for load in loads:
        if isinstance(load, GripLoad):
            held = _held(load, nodes, elements, slack)
            made.append(Grip(held, 0.5 * np.add(load.begin, load.end), nodes, element, force))
        else:
            segments = _segments(load, nodes, elements, lambda point: in_support(point, slack))
            made.append(Cable(segments, nodes, load.stiffness, force))
    return tuple(made)


def _held(load: GripLoad, nodes: Array, elements: NDArray[np.integer], slack: float) -> NDArray[np.int64]:
    inside = (nodes >= np.subtract(load.begin, slack)) & (nodes <= np.add(load.end, slack))
    held = np.intersect1d(np.flatnonzero(inside.all(axis=1)), elements)
    if len(held) < 3 or np.linalg.matrix_rank(nodes[held] - nodes[held].mean(axis=0), tol=10.0 * slack) < 2:
        raise SoftformError(
            f"Grip '{load.name}' holds {len(held)} nodes of the mesh, too few to lead the body by.",
            "Enlarge its box, or make the mesh finer.",
        )
    return held


def _segments(
    load: CableLoad, nodes: Array, elements: NDArray[np.integer], in_support: Callable[[Array], bool]
) -> Segments:
    count = elements.shape[1]
    of_segments, weights, offsets = [], [], []
    for run in load.runs:
        places = [_fixed(load, np.array(point), nodes, elements, in_support) for point in run]
        for (first, first_weights, first_place), (last, last_weights, last_place) in zip(
            places, places[1:], strict=False
        ):
            of_segments.append([*elements[first], *elements[last]])
            weights.append([*-first_weights, *last_weights])
            offsets.append(last_place - first_place)
    return Segments(np.array(of_segments), np.array(weights).reshape(-1, 2 * count), np.array(offsets))


def _fixed(
    load: CableLoad, point: Array, nodes: Array, elements: NDArray[np.integer], in_support: Callable[[Array], bool]
) -> tuple[int, Array, Array]:
    """Element, weights (n,) of its nodes, and what is added to their sum, (3,) m, of a point."""
    if (found := located(point, nodes, elements)) is not None:
        return *found, np.zeros(3)
    if in_support(point):
        return 0, np.zeros(elements.shape[1]), point
    raise SoftformError(
        f"Point {point.tolist()} of cable '{load.name}' lies neither in the body nor in its support.",
        "Move it into the material; a cable cannot be led through a chamber.",
    )
