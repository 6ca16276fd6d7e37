"""A bar between two grippers: its tip is the mean of where they lead a point, with no physics."""

from typing import Any, Literal

import numpy as np
from scipy.spatial.transform import Rotation

from softform_core.arrays import Array
from softform_core.robots.body import Body, Outline
from softform_core.robots.description import Description
from softform_core.simulation.hessian import BlockHessian

_STEP = 1e-6


class Bar:
    """A `simulation.simulated_body.SimulatedBody` whose unknowns are its actuators' values."""

    batch, largest_step, rounding, is_slack = 64, np.inf, 0.0, False
    frames, faces = {"tip": 0}, np.zeros((0, 3), dtype=np.int32)

    def __init__(self, length: float) -> None:
        self._arm = np.array([0.5 * length, 0.0, 0.0])
        self.rest = self.unloaded = np.zeros(12)

    def points(self, unknowns: Array) -> Array:
        """Points (n, 1, 3) m."""
        poses = unknowns.reshape(-1, 2, 6)
        led = [
            poses[:, side, :3] + Rotation.from_rotvec(poses[:, side, 3:]).apply(sign * self._arm) - sign * self._arm
            for side, sign in ((0, 1.0), (1, -1.0))
        ]
        return np.mean(led, axis=0)[:, None, :]

    def moved_points(self, unknowns: Array, moves: Array) -> Array:
        """Derivatives (n, 1, 3, k) m, by differences."""
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

    def has_run_away(self, unknowns: Array) -> Any:
        """Never."""
        return np.zeros(len(unknowns), dtype=bool)


class HeldBar(Body):
    """A bar between two grippers; `length` in m."""

    kind: Literal["held_bar"]
    length: float

    @property
    def inputs(self) -> list[str]:
        """Six of each gripper."""
        return [f"g{number}_{name}" for number in (1, 2) for name in ("x", "y", "z", "rx", "ry", "rz")]

    @property
    def size(self) -> float:
        """Its length."""
        return self.length

    @property
    def frames(self) -> dict[str, int]:
        """Its middle."""
        return {"tip": 3}

    def outlines(self) -> list[Outline]:
        """None that mean anything."""
        return [Outline("grippers", "ellipse", 0.01 * place, 0.0, 0.01, 0.01) for place in range(12)]

    def simulator(self) -> Bar:
        """The bar."""
        return Bar(self.length)

    def real_simulator(self, reality: Any) -> Bar:
        """The same bar."""
        return Bar(self.length)

    @classmethod
    def reality_type(cls) -> type[Description]:
        """No differences."""
        return Description

    def drawn_reality(self, draw: np.random.Generator) -> Description:
        """No differences."""
        return Description()
