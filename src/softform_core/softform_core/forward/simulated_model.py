"""A body at equilibrium as a forward model: what a solve needs of a simulation, without a network."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from softform_core.arrays import Array
from softform_core.forward.forward_model import ForwardModel, batch_of
from softform_core.robots import Robot
from softform_core.simulation.newton import NO_EQUILIBRIUM_ADVICE, NoEquilibriumError, find_equilibria
from softform_core.simulation.sensitivity import equilibrium_sensitivities
from softform_core.simulation.simulated_body import SimulatedBody
from softform_core.units import MM_PER_M

_STEP_PART = 1e-6


class SimulatedState(NamedTuple):
    """Equilibria at n actuations (n, m): points (n, P, 3) mm and unknowns (n, u) of the body."""

    points: Array
    unknowns: Array
    actuation: Array


class SimulatedModel(ForwardModel):
    """The points of a body: the vertices of its surface and then its named points, as of a tip.

    Each equilibrium is sought from the one before, as a solve moves in small steps; a body that can snap through may
    have another one from elsewhere.

    Args:
        robot: The robot.
        body: Its body, such as `robot.body.simulator()` or that of a reality.
        actuators_of: Values (n, k) of the actuators at actuations (n, m), affine; the robot's map by default.
    """

    def __init__(self, robot: Robot, body: SimulatedBody, actuators_of: Callable[[Array], Array] | None = None) -> None:
        self._body, self._actuators_of = body, actuators_of or robot.actuators_of
        self._inputs = tuple(robot.actuation_names)
        self._steps = np.diag(_STEP_PART * (robot.actuation_max - robot.actuation_min))
        self._last: Array | None = None

    @property
    def frames(self) -> dict[str, int]:
        """The point of each named frame of the body."""
        return self._body.frames

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the m degrees of freedom."""
        return self._inputs

    def forward(self, actuation: Array) -> SimulatedState:
        """Return equilibria under (n, m).

        Raises:
            NoEquilibriumError: If one of them has no equilibrium.
        """
        flat, _ = batch_of(actuation, len(self._inputs))
        start = self._last if self._last is not None and len(self._last) == len(flat) else None
        found = find_equilibria(self._body, self._actuators_of(flat), start)
        if reason := next(filter(None, found.failures), ""):
            raise NoEquilibriumError(reason, NO_EQUILIBRIUM_ADVICE)
        self._last = found.unknowns
        return SimulatedState(MM_PER_M * self._body.points(found.unknowns), found.unknowns, flat)

    def jacobian(self, state: SimulatedState) -> Array:
        """Return the points' derivative, (n, P, 3, m) mm per unit, by the implicit function theorem; NaN if slack."""
        values = self._actuators_of(state.actuation)
        steps = [(self._actuators_of(state.actuation + step) - values) / step.max() for step in self._steps]
        moves = equilibrium_sensitivities(self._body, state.unknowns, values) @ np.stack(steps, axis=2)
        return MM_PER_M * self._body.moved_points(state.unknowns, moves)
