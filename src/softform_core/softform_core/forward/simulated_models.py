"""A simulated robot as a forward model, without a network: surface (Eq. 1), tip, line, bones; the kind `fem`."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softform_core.arrays import Array
from softform_core.contact.barrier import Touch
from softform_core.contact.touching_body import TouchingBody
from softform_core.errors import SoftformError
from softform_core.forward.centre_line import CentreLine
from softform_core.forward.forward_model import ForwardModel, SplineModel, batch_of
from softform_core.forward.live_surface import LiveSurface
from softform_core.forward.memory import NO_MEMORY
from softform_core.forward.rbf_warp import SimToReal
from softform_core.forward.robot_models import (
    AUTO,
    NONE,
    SIMULATED,
    FixedSurface,
    ModelRequest,
    RobotModels,
    TipModels,
)
from softform_core.forward.simulated_tracker import SimulatedTracker
from softform_core.forward.warped_surface import WarpedSurface
from softform_core.halton import halton_actuations
from softform_core.robots import TIP, Robot
from softform_core.simulation.newton import NO_EQUILIBRIUM_ADVICE, NoEquilibriumError, find_equilibria
from softform_core.simulation.problem import GuardedProblem, MixedProblem
from softform_core.simulation.sensitivity import equilibrium_sensitivities
from softform_core.simulation.simulated_body import (
    BodyOfBones,
    LinedBody,
    SimulatedBody,
    TrackedBody,
    rest_points,
    skin_count,
)
from softform_core.surface.curve import fit_curve
from softform_core.units import MM_PER_M

_STEP_PART = 1e-6
_REMEMBERED = 3
"""Equilibria from which the next one is sought: a servo asks by turns for what it aims at and for what it commands."""


class SimulatedState(NamedTuple):
    """Equilibria at n actuations (n, m): points (n, P, 3) mm and unknowns (n, u) of the body."""

    points: Array
    unknowns: Array
    actuation: Array


class _Solved(NamedTuple):
    """A state, the actuators' values (n, k), and, where it was asked for, how the unknowns move by them (n, u, k)."""

    state: SimulatedState
    values: Array
    moves: Array | None


class SimulatedModel(ForwardModel):
    """The points of a body: the vertices of its surface and then its named points, as of a tip.

    Each equilibrium is sought from the nearest of the last ones, along its derivative where that is known, or from rest
    where that is nearer; a body that can snap through may have another one from elsewhere.

    Args:
        robot: The robot.
        body: Its body, such as `robot.body.simulator()` or that of a reality.
        actuators_of: Values (n, k) of the actuators at actuations (n, m), affine; the robot's map by default.

    Attributes:
        frames: Point of each named frame of the body.
    """

    def __init__(self, robot: Robot, body: SimulatedBody, actuators_of: Callable[[Array], Array] | None = None) -> None:
        self._body, self._actuators_of = body, actuators_of or robot.actuators_of
        self._inputs = tuple(robot.actuation_names)
        self._steps = np.diag(_STEP_PART * (robot.actuation_max - robot.actuation_min))
        self._span = np.maximum(robot.actuator_max - robot.actuator_min, 1e-300)
        self._solved: tuple[_Solved, ...] = ()  # replaced whole: a stream and a goal ask in threads of their own
        self._hint: Array | None = None
        self._is_mixed = isinstance(body, MixedProblem)
        self._is_guarded = isinstance(body, GuardedProblem)  # a step along the derivative may lead into an obstacle
        self.frames = body.frames

    def forward(self, actuation: Array) -> SimulatedState:
        """Return equilibria under (n, m); those of the last calls, if they are asked for again.

        Raises:
            NoEquilibriumError: If one of them has no equilibrium.
        """
        flat, _ = batch_of(actuation, len(self._inputs))
        known = next((one for one in self._solved if np.array_equal(flat, one.state.actuation)), None)
        if known is not None:
            return known.state
        values = self._actuators_of(flat)
        found = find_equilibria(self._body, values, *self._begin(values))
        if reason := next(filter(None, found.failures), ""):
            raise NoEquilibriumError(reason, NO_EQUILIBRIUM_ADVICE)
        state = SimulatedState(MM_PER_M * self._points(found.unknowns), found.unknowns, flat.copy())
        self._remember(_Solved(state, values, None))
        return state

    def seek_from(self, unknowns: Array) -> None:
        """Have the next equilibrium sought from unknowns (1, u), where more is known of it than of the last one."""
        self._solved, self._hint = (), unknowns

    def start(self, actuation: Array) -> Array:
        """Return unknowns (1, u) to begin from at an actuation (m,): those of the last equilibrium, or at rest."""
        last = self._solved[0].state.unknowns if self._solved else self._hint
        return last if last is not None and len(last) == 1 else self._body.start(self._actuators_of(actuation[None]))

    def jacobian(self, state: SimulatedState) -> Array:
        """Return the points' derivative, (n, P, 3, m) mm per unit, by the implicit function theorem; NaN if slack."""
        known = next((one for one in self._solved if one.state is state), None)
        values = self._actuators_of(state.actuation) if known is None else known.values
        moves = None if known is None else known.moves
        if moves is None:
            moves = equilibrium_sensitivities(self._body, state.unknowns, values)
            self._remember(_Solved(state, values, moves))
        steps = [(self._actuators_of(state.actuation + step) - values) / step.max() for step in self._steps]
        return MM_PER_M * self._moved(state.unknowns, moves @ np.stack(steps, axis=2))

    def _remember(self, solved: _Solved) -> None:
        others = [one for one in self._solved if one.state is not solved.state]
        self._solved, self._hint = (solved, *others[: _REMEMBERED - 1]), None

    def _begin(self, values: Array) -> tuple[Array | None, Array | None]:
        """Return where to begin (n, u) under actuator values (n, k), and those under which that is in balance."""
        if self._hint is not None and len(self._hint) == len(values):
            return self._hint, None
        alike = [one for one in self._solved if one.values.shape == values.shape]
        if not alike:
            return None, None
        ways = np.array([np.linalg.norm((values - one.values) / self._span, axis=1) for one in alike])
        number = int(ways.sum(axis=1).argmin())
        last, rest = alike[number], self._body.unloaded
        nearer = (ways[number] <= np.linalg.norm((values - rest) / self._span, axis=1))[:, None]
        if not nearer.any():
            return None, None
        if not nearer.all():
            start = np.where(nearer, last.state.unknowns, self._body.start(values))
            return start, np.where(nearer, last.values, rest)
        if last.moves is not None and not self._is_guarded:
            step = (last.moves @ (values - last.values)[..., None])[..., 0]
            if np.abs(step).max() <= self._body.largest_step and self._is_nearer(last, step, values):  # no NaN is
                return last.state.unknowns + step, values
        return last.state.unknowns, last.values

    def _is_nearer(self, last: _Solved, step: Array, values: Array) -> bool:
        """Return whether a step lowers the energies under actuator values; a saddle's, that they are known there."""
        led = self._body.energy(last.state.unknowns + step, values)
        if self._is_mixed:
            return bool(np.isfinite(led).all())
        return bool((led <= self._body.energy(last.state.unknowns, values)).all())

    def _points(self, unknowns: Array) -> Array:
        """Return the points (n, P, 3) m of the model; subclasses may have others of the body."""
        return self._body.points(unknowns)

    def _moved(self, unknowns: Array, moves: Array) -> Array:
        """Return derivatives (n, P, 3, k) m of `_points` as the unknowns (n, u) move by (n, u, k)."""
        return self._body.moved_points(unknowns, moves)


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

    is_solved = True

    def __init__(self, robot: Robot, uv: Array) -> None:
        super().__init__(robot.patches, uv, robot.actuation_names)
        body = robot.body.simulator()
        self._model, vertices = SimulatedModel(robot, body), rest_points(body)
        self._vertices = skin_count(body)
        self._fitted = robot.parametrised(vertices[: self._vertices], body.faces)
        self._body, self.actuators_of = body, robot.actuators_of
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

    @cached_property
    def fit_matrix(self) -> Array:
        """Control points of vertices, (C, V)."""
        count = -(-self._vertices // 3)
        units = np.eye(self._vertices, 3 * count).reshape(self._vertices, count, 3)
        return np.moveaxis(self._fitted.fit(np.moveaxis(units, 1, 0)), 0, 1).reshape(-1, 3 * count)[:, : self._vertices]

    @cached_property
    def by_actuation(self) -> Array:
        """Derivative of the actuators' values by the actuation, (k, m)."""
        nothing = np.zeros((1, len(self.inputs)))
        return np.asarray((self.actuators_of(np.eye(len(self.inputs))) - self.actuators_of(nothing)).T)

    def vertices_of(self, points: Array) -> Array:
        """Those of the points (P, …) of the body that are vertices of the surface, (V, …)."""
        return points[: self._vertices]

    def touches(self, actuation: Array) -> list[Touch]:
        """Where the body touches what at an actuation (m,), and how hard; nothing where it has no contact.

        Raises:
            NoEquilibriumError: If there is no equilibrium.
        """
        if not isinstance(self._body, TouchingBody):
            return []
        return self._body.touches(self._model.forward(actuation[None]).unknowns[0])

    def seek_from(self, unknowns: Array) -> None:
        """See `SimulatedModel.seek_from`."""
        self._model.seek_from(unknowns)

    def tracker(self, actuation: Array) -> "SimulatedTracker | None":
        """See `ForwardModel.tracker`; of a body whose balance is cheap to follow."""
        if not isinstance(self._body, TrackedBody):
            return None
        return SimulatedTracker(self, self._body, actuation, self._model.start(actuation))


class SimulatedNodes(SimulatedModel):
    """The nodes of a body's centre line.

    Args:
        robot: The robot.

    Attributes:
        along: (N,) where the nodes are along the body at rest, 0 at its base and 1 at its end.
    """

    def __init__(self, robot: Robot) -> None:
        body: LinedBody = robot.body.simulator()
        super().__init__(robot, body)
        self._lined, self.along = body, np.asarray(body.along)

    def _points(self, unknowns: Array) -> Array:
        return self._lined.line(unknowns)

    def _moved(self, unknowns: Array, moves: Array) -> Array:
        return self._lined.moved_line(unknowns, moves)


class SimulatedBones(SimulatedModel):
    """The places of the bones of a body, three each, by its simulator; derivatives by the implicit function theorem.

    Args:
        robot: A robot whose body is one of bones.
    """

    def __init__(self, robot: Robot) -> None:
        self._boned: BodyOfBones = robot.body.simulator()
        super().__init__(robot, self._boned)
        self._chosen: NDArray[np.int64] | slice = slice(None)

    def at(self, uv: Array) -> Self:
        """Return the places of `Robot.rider_parameters` (M, 2)."""
        other = copy(self)
        other._chosen, other._solved = bone_places(uv), ()
        return other

    def _points(self, unknowns: Array) -> Array:
        return self._boned.bones(unknowns).reshape(len(unknowns), -1, 3)[:, self._chosen]

    def _moved(self, unknowns: Array, moves: Array) -> Array:
        moved = self._boned.moved_bones(unknowns, moves)
        return moved.reshape(len(unknowns), -1, *moved.shape[3:])[:, self._chosen]


def bone_places(uv: Array) -> NDArray[np.int64]:
    """Return which places of bones, three each, are those of `Robot.rider_parameters` (M, 2), (M,)."""
    return uv[:, 1].astype(np.int64)


def has_bones(robot: Robot) -> bool:
    """Return whether a robot without a surface has a simulator that tells its bones."""
    return not robot.surfaces and robot.body.is_simulated and isinstance(robot.body.simulator(), BodyOfBones)


class SimulatedLine(CentreLine):
    """The centre line by the simulator: its nodes, and the curve that passes nearest to them, in which it is linear.

    Args:
        robot: A robot whose body has a centre line.
    """

    def __init__(self, robot: Robot) -> None:
        super().__init__(robot)
        self._nodes = SimulatedNodes(robot)

    def predict_control(self, actuation: Array) -> tuple[Array, Any]:
        """Return control points (n, C, 3) mm at (n, m), and the equilibria.

        Raises:
            NoEquilibriumError: If one of them has no equilibrium.
        """
        state = self._nodes.forward(actuation)
        return fit_curve(state.points, self._nodes.along, self._count), state

    def control_jacobian(self, predicted: Any) -> Array:
        """Return the derivative of the control points, (n, C, 3, m) mm per unit."""
        slopes = np.moveaxis(self._nodes.jacobian(predicted), -1, 1)
        return np.moveaxis(fit_curve(slopes, self._nodes.along, self._count), 1, -1)


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
    memory = NO_MEMORY

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


class LiveSimulation(LiveSurface):
    """A simulation with N_s2r behind it."""

    simulated: SimulatedSurface

    def corrected(self, sim_to_real: SimToReal) -> WarpedSurface:
        """See `LiveSurface.corrected`."""
        return WarpedSurface(self.simulated, sim_to_real)

    def description(self) -> dict[str, str]:
        """See `RobotModels.description`."""
        return {"model": SIMULATED, **super().description()}


def fem(request: ModelRequest) -> RobotModels:
    """Return the simulator of a robot with surfaces, with a sim-to-real model where its folder is given, or with a tip.

    Raises:
        SoftformError: If the body has no physics, or the sim-to-real model cannot be used, or is that of a tip.
    """
    robot, learned = request.robot, request.sim_to_real not in (AUTO, NONE)
    if learned and not robot.surfaces:
        raise SoftformError(
            f"sim-to-real {request.sim_to_real} corrects the learned model of '{robot.name}', not its simulator.",
            "Leave sim_to_real out, or take model:=learned.",
        )
    if not robot.body.is_simulated:
        raise SoftformError(
            f"'{robot.name}' is known by data alone: it has no simulator.", "Take model:=learned for it."
        )
    if robot.surfaces:
        surface = SimulatedSurface(robot, robot.patches.samples(request.points))
        if learned:
            return LiveSimulation(robot, surface, Path(request.sim_to_real), is_needed=True)
        return FixedSurface(surface, SIMULATED)
    line = SimulatedLine(robot) if robot.learns_line else None
    return TipModels(SimulatedTip.of(robot), NONE, line, bones=SimulatedBones(robot) if has_bones(robot) else None)
