"""A simulated robot as the models that servers take: its surface as B-splines (Eq. 1), or its tip. No network."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from softform_core.arrays import Array
from softform_core.forward.forward_model import batch_of
from softform_core.forward.simulated_model import SimulatedModel, SimulatedState
from softform_core.forward.surface_model import SplineModel
from softform_core.halton import halton_actuations
from softform_core.robots import TIP, Robot
from softform_core.simulation.simulated_body import rest_points

_NUDGE = 0.005
"""Offset at which derivatives are taken, as a share of the range: where a body hangs slack it has no stiffness."""

_WORKSPACE = 64
"""Actuations from which the width of a tip's workspace is estimated."""


class SimulatedSurface(SplineModel):
    """The surface of a robot by its simulator; one equilibrium for each actuation, sought from the one before.

    The control points are those that the least squares of paper 000, Sec. II-A, fit to the vertices. They are linear in
    the vertices, so that derivatives are exact.

    Args:
        robot: A robot with surfaces.
        uv: (P, 2) surface parameters.

    Raises:
        SoftformError: If the body has no physics, or its mesh cannot be flattened.
    """

    def __init__(self, robot: Robot, uv: Array) -> None:
        super().__init__(robot.patches, uv, robot.actuation_names)
        body = robot.body.simulator()
        self._model, vertices = SimulatedModel(robot, body), rest_points(body)
        self._vertices = int(body.faces.max()) + 1
        self._fitted = robot.parametrised(vertices[: self._vertices], body.faces)
        span = robot.actuation_max - robot.actuation_min
        self._limits = robot.actuation_min + _NUDGE * span, robot.actuation_max - _NUDGE * span

    def predict_control(self, actuation: Array) -> tuple[Array, SimulatedState]:
        """Return the control points (n, C, 3) mm at (n, m), and the equilibria.

        Raises:
            NoEquilibriumError: If one of them has no equilibrium.
        """
        state = self._model.forward(actuation)
        return self._fitted.fit(state.points[:, : self._vertices]), state

    def control_jacobian(self, predicted: SimulatedState) -> Array:
        """Return the derivative of the control points, (n, C, 3, m) mm per unit."""
        slopes = self._model.jacobian(predicted)
        if not np.isfinite(slopes).all():
            slopes = self._model.jacobian(self._model.forward(np.clip(predicted.actuation, *self._limits)))
        moves = np.moveaxis(slopes[:, : self._vertices], -1, 1)
        return np.asarray(np.moveaxis(self._fitted.fit(moves), 1, -1))


@dataclass(frozen=True)
class SimulatedTip:
    """The tip of a robot by its simulator, as `TipModel` is it by networks."""

    robot: Robot
    model: SimulatedModel

    @classmethod
    def of(cls, robot: Robot) -> "SimulatedTip":
        """Return the tip of a robot's own simulator."""
        return cls(robot, SimulatedModel(robot, robot.body.simulator()))

    sim_to_real = None

    @property
    def without_sim_to_real(self) -> "SimulatedTip":
        """Itself."""
        return self

    @property
    def actuation_min(self) -> Array:
        """Lowest actuation, (m,)."""
        return self.robot.actuation_min

    @property
    def actuation_max(self) -> Array:
        """Highest actuation, (m,)."""
        return self.robot.actuation_max

    @property
    def dimensions(self) -> int:
        """Number n of the tip's coordinates."""
        return self.robot.tip_dimensions

    @cached_property
    def workspace_width_mm(self) -> float:
        """Largest extent of the places of the tip, mm."""
        tried = list(halton_actuations(self.actuation_min, self.actuation_max, _WORKSPACE, seed=0))
        return float(np.ptp(self.tip(np.array(tried)), axis=0).max())

    def tip(self, actuation: ArrayLike) -> Array:
        """Return tips (…, n) mm at actuations (…, m)."""
        flat, lead = batch_of(actuation, len(self.actuation_min))
        return self._of_tip([self.model.forward(one[None]).points for one in flat]).reshape(*lead, -1)

    def tip_and_jacobian(self, actuation: ArrayLike) -> tuple[Array, Array]:
        """Return tips (…, n) mm and Jacobians (…, n, m) mm per unit at actuations (…, m)."""
        flat, lead = batch_of(actuation, len(self.actuation_min))
        states = [self.model.forward(one[None]) for one in flat]
        slopes = self._of_tip([self.model.jacobian(state) for state in states])
        return self._of_tip([state.points for state in states]).reshape(*lead, -1), slopes.reshape(
            *lead, *slopes.shape[1:]
        )

    def _of_tip(self, values: list[Array]) -> Array:
        """Return the rows of the tip's n coordinates among values (1, P, 3, ...) of each actuation."""
        return np.concatenate(values)[:, self.model.frames[TIP], : self.dimensions]
