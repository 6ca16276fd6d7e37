"""How near the model comes to a target, and whether it would come nearer if the object were grasped elsewhere.

By the model alone: no camera, nothing moves. A target of nodes may be out of reach of two grippers at the ends, and in
reach of the same ones farther in.
"""

from itertools import product
from typing import Any, NamedTuple

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_shaping.control import shape_errors
from softform_shaping.model import HeldModel
from softform_shaping.objects import ShapedObject
from softform_shaping.poses import limited, moved

__all__ = ["Grasp", "advised_grasp", "held_at", "nearest"]

_ROUNDS, _SHIFT, _TURN, _DAMPING = 25, 0.03, 0.3, 1e-6
_ENOUGH = 0.99
"""Of the error of the round before, above which no further one is made."""
_INWARDS = (0.0, 0.1, 0.2)
"""Of the object's length, by which each gripper may hold it farther in."""
_WORTH = 0.7
"""Of the error at the present grasp, below which another one is advised."""


class Grasp(NamedTuple):
    """Where to grasp an object for a target, by the model.

    Attributes:
        inwards: (2,) by which the left and the right gripper hold it farther in than they do, m.
        rms: Root mean square error that it then comes to, mm.
        present: That of the present grasp, mm.
    """

    inwards: tuple[float, float]
    rms: float
    present: float

    def __str__(self) -> str:
        """A sentence for people."""
        if not any(self.inwards):
            return f"The model comes to {self.present:.2f} mm; no grasp farther in is much better."
        left, right = (1e3 * one for one in self.inwards)
        return (
            f"The model comes to {self.present:.2f} mm; held {left:.0f} mm farther in at the left and {right:.0f} mm "
            f"at the right it would come to {self.rms:.2f} mm."
        )


def nearest(model: HeldModel, target: Array) -> tuple[Array, float]:
    """Poses (12,) near the grasp of which the model makes the shape nearest to a target (V, 3) m, and its error, mm.

    Raises:
        SoftformError: If the target has another number of nodes.
    """
    if np.shape(target) != model.rest_nodes.shape:
        raise SoftformError(
            f"The target has {len(target)} nodes, the model {len(model.rest_nodes)}.", "Give one place for each node."
        )
    here, best = model.rest, shape_errors(target, model.rest.nodes)[0]
    for _ in range(_ROUNDS):
        jacobian = model.sensitivity(here).reshape(-1, 12)
        scale = np.linalg.norm(jacobian, axis=0)
        scaled = jacobian / scale
        normal = scaled.T @ scaled + _DAMPING * np.eye(12)
        step = np.linalg.solve(normal, scaled.T @ (target - here.nodes).ravel()) / scale
        try:
            found = model.shape(moved(here.poses, limited(step, _SHIFT, _TURN)), here)
        except SoftformError:
            break
        error = shape_errors(target, found.nodes)[0]
        if error >= best:
            break
        is_enough, here, best = error > _ENOUGH * best, found, error
        if is_enough:
            break
    return here.poses, best


def advised_grasp(described: ShapedObject, target: Array) -> Grasp:
    """Try grasps farther in, each gripper by up to a fifth of the length, and advise the best if it is much better.

    It takes some seconds for each: the body is held anew.

    Args:
        described: The object, of two grips.
        target: (V, 3) m, of the nodes of its model.

    Raises:
        SoftformError: If the object is wrong, or the target is not of its nodes.
    """
    body = described.body
    length = float(np.ptp(HeldModel(body.simulator()).rest_nodes[:, 2]))
    errors: dict[tuple[float, float], float] = {}
    for left, right in product(_INWARDS, _INWARDS):
        inwards = left * length, right * length
        model = HeldModel(described.model_copy(update={"body": held_at(body, inwards)}).body.simulator())
        errors[inwards] = nearest(model, target)[1]
    present = errors[0.0, 0.0]
    inwards = min(errors, key=lambda one: errors[one])
    if errors[inwards] > _WORTH * present:
        inwards = 0.0, 0.0
    return Grasp(inwards, errors[inwards], present)


def held_at(body: Any, inwards: tuple[float, float]) -> Any:
    """The same body, whose two grips hold it so much farther in, m, the left one first."""
    loads = []
    for load, along in zip(body.loads, (inwards[0], -inwards[1]), strict=True):
        begin, end = ((x, y, z + along) for x, y, z in (load.begin, load.end))
        loads.append(load.model_copy(update={"begin": begin, "end": end}))
    return body.model_copy(update={"loads": loads})
