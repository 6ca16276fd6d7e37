"""The live body of a reality: its shape under the actuators of the moment, solved only when somebody looks."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.robots.actuators import Quantity
from softform_core.simulation.newton import NO_EQUILIBRIUM_ADVICE, NoEquilibriumError, find_equilibria
from softform_core.simulation.sensitivity import equilibrium_sensitivities
from softform_core.simulation.simulated_body import (
    LinedBody,
    PathDependentBody,
    PulledBody,
    SimulatedBody,
    TendonLoads,
    YieldingBody,
    equilibrium_unknowns,
    rest_points,
)
from softform_rig.reality import Reality, SettledDevices, memory_of

HELD_S = 10.0
"""From a commanded actuation to the look at its shape: the time that a frame takes to collect."""

_BEYOND = 0.5  # of the working range; further outside the body is not modelled (it would tear or lie on the floor)
_NEAR, _NEAR_M = 0.02, 3e-3
"""Of the working range, and m that points move: so far the first order holds to 0.05 mm (where layers begin to touch
0.12), below a scanner's noise. Looks of motion capture would be solved too often if it were less."""


_SAME: dict[Quantity, float] = {"pressure": 2.0, "displacement": 2e-6, "position": 2e-6, "rotation": 2e-5}
"""By quantity, in SI units: closer values do not move the body by more than the scanner's noise."""
_SLIGHT: dict[Quantity, float] = {"pressure": 200.0, "displacement": 5e-4, "position": 5e-4, "rotation": 5e-3}
"""By quantity, in SI units: a slight load."""


_LEAST_S = 1e-3
"""Least time in which a body is led on."""
_STILL_S = 0.2
"""How long a body that depends on its path is not led on while its actuators stay: it creeps by less than is seen."""


class _Solved(NamedTuple):
    """The last equilibrium.

    Attributes:
        asked: (k,) values of the actuators that it was led to, as the material feels them.
        effective: (k + ...) values under which it is one, those of the actuators first.
        unknowns: (m,).
        points: (P, 3) m.
        state: Of a body that depends on its path.
    """

    asked: Array
    effective: Array
    unknowns: Array
    points: Array
    state: Any = None


class LiveBody:
    """Keeps the last shape and starts the next solve from it; may be asked by several threads, one at a time.

    All solves run in one thread of its own: a factor of SuperLU that another thread lets go of than the one that made
    it is never freed (https://github.com/scipy/scipy/issues/15921), 3 MB a solve.

    Attributes:
        faces: Triangles (F, 3) over the points; none of a body without a surface.
        rest: Points (P, 3) m of the undeformed body.
        failure: Why the last solve failed, or None; the last good shape stays meanwhile.
        solve_seconds: Time of the last solve.
        slowest_solve: Longest time of one, s.
    """

    def __init__(self, robot: Robot, reality: Reality) -> None:
        self._robot, self._reality = robot, reality
        self._same = np.array([_SAME[quantity] for quantity in robot.actuator_quantities])
        self.simulated: SimulatedBody = robot.body.real_simulator(reality.body)
        self.faces, self.rest = self.simulated.faces, rest_points(self.simulated)
        self._solver = ThreadPoolExecutor(1, thread_name_prefix="body")
        self.failure: str | None = None
        self.solves = 0
        self.solve_seconds = self.slowest_solve = 0.0
        span = robot.actuator_max - robot.actuator_min
        margin, self._near = _BEYOND * span, _NEAR * span
        self._lowest, self._highest = robot.actuator_min - margin, robot.actuator_max + margin
        self._devices, self._memory = SettledDevices(reality, robot), memory_of(reality, robot)
        self._looked_at = time.monotonic()
        self._effective: Array | None = None
        self._solved: _Solved | None = None
        self._path = self.simulated if isinstance(self.simulated, PathDependentBody) else None
        self._since_led = 0.0
        self._ahead = np.zeros(len(span))  # of what the material feels, the actuators
        self._sensitivity: Array | None = None
        self._loads: tuple[_Solved, TendonLoads] | None = None
        self._points = self.rest

    def shape(self, values: Array, held: float | None = None) -> Array:
        """Points (P, 3) m of the body; the last good ones if no equilibrium is found.

        Args:
            values: (k,) true values of the actuators.
            held: For how long they have been so, s; None for since the last look.
        """
        return self._solver.submit(self._shape, values, held).result()

    def tendon_loads(self) -> TendonLoads | None:
        """Loads of the motors of its tendons at the last equilibrium; None before one, and without tendons."""
        return self._solver.submit(self._tendon_loads).result()

    def centre_line(self) -> Array | None:
        """Nodes (N, 3) m of the centre line at the last equilibrium; None before one, and of a body that tells none."""
        solved = self._solved
        if solved is None or not isinstance(self.simulated, LinedBody):
            return None
        return self.simulated.line(solved.unknowns[None])[0]

    def commanded_shape(self, actuation: Array) -> Array:
        """Points (P, 3) m `HELD_S` after the devices began to regulate their readings to an actuation (m,).

        Raises:
            SoftformError: If no equilibrium is found.
        """
        points = self.shape(self._devices.settle(self._robot.actuators_of(actuation), HELD_S), HELD_S)
        if self.failure is not None:
            raise SoftformError(
                f"Reality '{self._reality.name}' has no shape: {self.failure}", "Soften its differences."
            )
        return points.copy()

    def shape_between_solves(self, values: Array) -> Array:
        """As `shape`, but to first order about the last solve where that is near: nothing is solved for most looks."""
        return self._solver.submit(self._shape_between_solves, values).result()

    def warm_up(self, look: Callable[[Array], object]) -> None:
        """Compile what is compiled by a solve that is forgotten, and by a look at its points.

        Raises:
            NoEquilibriumError: If the body has no equilibrium under a slight load.
        """
        values = np.array([[_SLIGHT[quantity] for quantity in self._robot.actuator_quantities]])
        look(self._solver.submit(self._compile, values).result())

    def _compile(self, values: Array) -> Array:
        """All that is asked of a body while it lives: a compilation later would stop every thread of the rig."""
        if self._path is not None:
            new, state = self._path.new(1)
            self._path.advance(new, values, state, 1.0)
        unknowns = equilibrium_unknowns(self.simulated, values)
        equilibrium_sensitivities(self.simulated, unknowns, values)
        if isinstance(self.simulated, PulledBody):
            self.simulated.tendon_loads(unknowns, values)
        return self.simulated.points(unknowns)[0]

    def _tendon_loads(self) -> TendonLoads | None:
        solved, body = self._solved, self.simulated
        if solved is None or not isinstance(body, PulledBody):
            return None
        unknowns, values = solved.unknowns[None], solved.effective[None]
        if self._loads is None or self._loads[0] is not solved:
            loads = body.tendon_loads(unknowns, values)
            if isinstance(body, YieldingBody):
                compliance = body.compliance(unknowns, values)
                if np.isfinite(compliance).all():
                    loads = loads._replace(compliance=compliance)
            self._loads = solved, loads
        return self._loads[1]._replace(pulls=solved.asked + self._ahead)  # the motors', ahead of what the tendons feel

    def _shape(self, values: Array, held: float | None) -> Array:
        effective = self._feel(values, held)
        return self._points if effective is None else self._shape_of(effective)

    def _lead(self, effective: Array) -> None:
        """Lead a body that depends on its path from where it was to effective values, in the time that has passed.

        It goes as fast as its actuators can and stays there for the rest of that time.
        """
        assert self._path is not None
        solved = self._solved
        unknowns, state = self._path.new(1) if solved is None else (solved.unknowns[None], solved.state)
        here = np.zeros(len(effective)) if solved is None else solved.asked
        seconds, self._since_led = max(self._since_led, _LEAST_S), 0.0
        going = float((np.abs(effective - here) / self._robot.slew_rate).max())
        stays = seconds - going
        spent = (going, stays) if going > _LEAST_S and stays > _STILL_S else (seconds,)
        try:
            for part in spent:
                unknowns, state = self._path.advance(unknowns, effective[None], state, part)
        except NoEquilibriumError as error:
            self.failure = error.message
            return
        values = self._path.in_balance(unknowns, state)[0]
        self._solved = _Solved(effective, values, unknowns[0], self.simulated.points(unknowns)[0], state)
        self._points, self.failure = self._solved.points, None

    def _feel(self, values: Array, held: float | None) -> Array | None:
        """What the body feels; None far outside the working range."""
        now = time.monotonic()
        seconds, self._looked_at = now - self._looked_at if held is None else held, now
        self._since_led += seconds
        if ((values < self._lowest) | (values > self._highest)).any():
            self.failure = f"Values {values.tolist()} {self._robot.unit} lie far outside the robot's working range."
            self._effective = None
            return None
        effective = self._memory.feel(values, seconds)
        self._ahead = values - effective
        return effective

    def _shape_of(self, effective: Array) -> Array:
        is_same = self._effective is not None and (np.abs(effective - self._effective) <= self._same).all()
        if is_same and (self._path is None or self._since_led < _STILL_S):
            return self._points
        self._effective = effective
        started = time.monotonic()
        if self._path is None:
            self._solve(effective)
        else:
            self._lead(effective)
        self.solves += 1
        self.solve_seconds = time.monotonic() - started
        self.slowest_solve = max(self.slowest_solve, self.solve_seconds)
        return self._points

    def _solve(self, effective: Array) -> None:
        """Bring the body to equilibrium under the effective values; if it has none, it stays."""
        if self.simulated.is_slack and (np.abs(effective) < self._same).all():
            self._solved, self._points, self.failure = None, self.rest, None
            return
        start = None if self._solved is None else self._solved.unknowns[None]
        found = find_equilibria(self.simulated, effective[None], start)
        if found.failures[0]:
            self.failure = f"{found.failures[0]} {NO_EQUILIBRIUM_ADVICE}"
            return
        self._solved = _Solved(effective, effective, found.unknowns[0], self.simulated.points(found.unknowns)[0])
        self._points, self._sensitivity, self.failure = self._solved.points, None, None

    def _shape_between_solves(self, values: Array) -> Array:
        effective, solved = self._feel(values, None), self._solved
        if effective is None:
            return self._points
        if self._path is not None:
            return self._shape_of(effective)
        if self.failure is not None or solved is None or (np.abs(effective - solved.effective) > self._near).any():
            return self._shape_of(effective)
        if self._sensitivity is None:
            unknowns = solved.unknowns[None]
            by_values = equilibrium_sensitivities(self.simulated, unknowns, solved.effective[None])
            self._sensitivity = self.simulated.moved_points(unknowns, by_values)[0]
        moves = self._sensitivity @ (effective - solved.effective)
        if not np.abs(moves).max() <= _NEAR_M:  # also where the sensitivity is infinite
            return self._shape_of(effective)
        return solved.points + moves
