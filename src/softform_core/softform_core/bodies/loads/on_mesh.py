"""Described loads on a mesh: which nodes a grip holds, in which elements the points of a cable lie."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.loads.cable import Cable, Segments
from softform_core.bodies.loads.description import CableLoad, GripLoad
from softform_core.bodies.loads.grip import Grip
from softform_core.bodies.loads.load import Load
from softform_core.bodies.loads.locate import located
from softform_core.errors import SoftformError

_ROUNDED = 1e-9  # of the extent: a node on a side of a box lies in it


def loads_on_mesh(
    loads: Sequence[CableLoad | GripLoad],
    nodes: Array,
    elements: NDArray[np.integer],
    modulus: float,
    volume: float,
    support_height: float = 0.0,
) -> tuple[Load, ...]:
    """The loads of a description.

    Args:
        loads: The descriptions.
        nodes: (V, 3) m, at rest.
        elements: (E, n) nodes of wedges or tetrahedra.
        modulus: Shear modulus, Pa.
        volume: Of all elements, m^3.
        support_height: Points outside of the elements up to this height are fixed in space, m: in the support.

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
            segments = _segments(load, nodes, elements, support_height + slack)
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


def _segments(load: CableLoad, nodes: Array, elements: NDArray[np.integer], fixed_up_to: float) -> Segments:
    count = elements.shape[1]
    of_segments, weights, offsets = [], [], []
    for run in load.runs:
        places = [_fixed(load, np.array(point), nodes, elements, fixed_up_to) for point in run]
        for (first, first_weights, first_place), (last, last_weights, last_place) in zip(
            places, places[1:], strict=False
        ):
            of_segments.append([*elements[first], *elements[last]])
            weights.append([*-first_weights, *last_weights])
            offsets.append(last_place - first_place)
    return Segments(np.array(of_segments), np.array(weights).reshape(-1, 2 * count), np.array(offsets))


def _fixed(
    load: CableLoad, point: Array, nodes: Array, elements: NDArray[np.integer], fixed_up_to: float
) -> tuple[int, Array, Array]:
    """Element, weights (n,) of its nodes, and what is added to their sum, (3,) m, of a point."""
    if (found := located(point, nodes, elements)) is not None:
        return *found, np.zeros(3)
    if point[2] <= fixed_up_to:
        return 0, np.zeros(elements.shape[1]), point
    raise SoftformError(
        f"Point {point.tolist()} of cable '{load.name}' lies neither in the body nor in its support.",
        "Move it into the material; a cable cannot be led through a chamber.",
    )
