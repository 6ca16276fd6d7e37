"""Correction of the simulated mesh by what was seen: by the farthest pair, as printed."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.geometry.rigid import RigidTransform
from softform_shaping.alignment import Alignment, align
from softform_shaping.model import HeldModel, HeldShape
from softform_shaping.visual_mesh import VisualMesh

__all__ = ["Corrected", "corrected", "farthest_pair", "slice_nodes"]

SLICE = 0.01
"""Of Eq. 12, m."""


class Corrected(NamedTuple):
    """A shape after the correction.

    Attributes:
        shape: The corrected mesh.
        alignment: The last ICP.
        steps: Corrections that were made.
    """

    shape: HeldShape
    alignment: Alignment
    steps: int


def farthest_pair(cloud: Array, places: Array) -> tuple[int, int]:
    """Eq. 11: the point of a cloud (N, 3) that is farthest from its nearest visual node (Q, 3), and that node."""
    distance, nearest = cKDTree(places).query(cloud)
    point = int(np.argmax(distance))
    return point, int(nearest[point])


def slice_nodes(nodes: Array, axis: Array, through: Array, width: float = SLICE) -> NDArray[np.int64]:
    """Eq. 12: nodes (V, 3) m with |a . n - a . n*| <= 0.01 m, a the unit axis between the grippers."""
    return np.flatnonzero(np.abs((nodes - through) @ axis) <= width)


def corrected(
    model: HeldModel,
    visual: VisualMesh,
    shape: HeldShape,
    cloud: Array,
    *,
    reach: float,
    fitness: float = 0.8,
    most: int = 5,
    start: RigidTransform | None = None,
) -> Corrected:
    """ICP, and while its fitness is not above `fitness` a correction by the farthest pair (Figs. 8, 9, 19).

    Args:
        model: Of the object.
        visual: Its visual mesh.
        shape: As simulated between the grippers.
        cloud: (N, 3) m.
        reach: Of ICP, m.
        fitness: From which the shape counts as seen.
        most: Corrections at most; a number is not printed.
        start: T of before.

    Raises:
        SoftformError: If the cloud has too few points.
        NoEquilibriumError: If the mesh cannot follow.
    """
    found = _aligned(visual, shape, cloud, reach, start)
    for step in range(most):
        if found.fitness > fitness:
            return Corrected(shape, found, step)
        seen, places = found.motion.apply(cloud), visual.places(shape.nodes)
        point, node = farthest_pair(seen, places)
        shift = seen[point] - places[node]
        axis = shape.nodes[model.held[1]].mean(axis=0) - shape.nodes[model.held[0]].mean(axis=0)
        chosen = slice_nodes(shape.nodes, axis / np.linalg.norm(axis), places[node])
        gripper = next((index for index, held in enumerate(model.held) if np.isin(chosen, held).any()), None)
        if gripper is not None:  # the particle of that gripper is moved instead
            poses = shape.poses.copy()
            poses[6 * gripper : 6 * gripper + 3] += shift
            shape = model.shape(poses, shape, shape.pins)
        else:
            pins = model.pinned(chosen, shape.nodes[chosen] + shift)
            shape = model.shape(shape.poses, shape, pins)
        found = _aligned(visual, shape, cloud, reach, found.motion)
    return Corrected(shape, found, most)


def _aligned(
    visual: VisualMesh, shape: HeldShape, cloud: Array, reach: float, start: RigidTransform | None
) -> Alignment:
    places = visual.places(shape.nodes)
    return align(cloud, places, visual.normals(places), reach, start)
