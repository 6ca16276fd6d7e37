"""Kinematics of two arms as a body without physics: where they hold the object, by the joints alone."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.robots.description import Description
from softform_core.simulation.hessian import BlockHessian
from softform_shaping.arms import TwoArms, two_small_arms
from softform_shaping.arms_body import JOINTS, TwoArmsBody
from softform_shaping.objects import load_object
from softform_shaping.poses import motion_of
from softform_shaping.scene import grip_centres

__all__ = ["ArmPair", "Reality", "drawn_reality", "real_simulator", "simulator"]

_STEP = 1e-6


class Reality(Description):
    """No differences: those of the joints are the controller's."""

    kind: Literal["two_arms"] = "two_arms"


class ArmPair:
    """A `SimulatedBody` whose unknowns are its joints."""

    batch, largest_step, rounding, is_slack = 64, np.inf, 0.0, False

    def __init__(self, arms: TwoArms) -> None:
        self._arms = arms
        self.rest = self.unloaded = np.zeros(2 * JOINTS)
        self.frames = {"tip": 0, "left": 1, "right": 2}
        self.faces: NDArray[np.int32] = np.zeros((0, 3), dtype=np.int32)

    def points(self, unknowns: Array) -> Array:
        """Points (n, 3, 3) m: the middle, then both grippers' centres."""
        arms, found = self._arms, []
        for joints in unknowns.reshape(-1, 2, JOINTS):
            poses = arms.poses_at(joints).reshape(2, 6)
            grips = [motion_of(pose, centre).apply(centre) for pose, centre in zip(poses, arms.centres, strict=True)]
            found.append([np.mean(grips, axis=0), *grips])
        return np.array(found)

    def moved_points(self, unknowns: Array, moves: Array) -> Array:
        """Derivatives (n, 3, 3, k) m, by differences."""
        steps = np.moveaxis(_STEP * moves, 2, 0)
        change = [self.points(unknowns + step) - self.points(unknowns - step) for step in steps]
        return np.stack(change, axis=-1) / (2.0 * _STEP)

    def tolerance(self, actuators: Array) -> Array:
        """Of the gradient, (n,)."""
        return np.full(len(actuators), 1e-9)

    def start(self, actuators: Array) -> Array:
        """The values themselves."""
        return np.array(actuators, dtype=np.float64)

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Of a spring between unknowns and values, (n,)."""
        return 0.5 * ((unknowns - actuators) ** 2).sum(axis=1)

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, BlockHessian]:
        """Gradient (n, k) and Hessian."""
        blocks = np.tile(np.eye(unknowns.shape[1]), (len(unknowns), 1, 1, 1))
        return unknowns - actuators, BlockHessian(blocks)

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """Derivative of the gradient by the values, (n, k, k)."""
        return np.tile(-np.eye(unknowns.shape[1]), (len(unknowns), 1, 1))

    def has_run_away(self, unknowns: Array) -> NDArray[np.bool_]:
        """Never."""
        return np.zeros(len(unknowns), dtype=bool)


def simulator(body: TwoArmsBody) -> ArmPair:
    """The arms around their object; errors as of `load_object`."""
    return ArmPair(two_small_arms(grip_centres(load_object(body.object))))


def real_simulator(body: TwoArmsBody, reality: Any) -> ArmPair:
    """The same."""
    return simulator(body)


def drawn_reality(body: TwoArmsBody, draw: np.random.Generator) -> Reality:
    """No differences."""
    return Reality()
