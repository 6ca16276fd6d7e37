"""The closest to a target that the rig's real body can come: a global search on its true physics.

The search shares neither a network nor a solver with what it judges: scipy's bounded least squares from random starts
in the working range, on equilibria of the reality and their derivatives by the implicit function theorem. The best of
them, or what was tried before if that is better, is then led on to the least mean distance, which is what a scan
measures. The body's memory (hysteresis, creep) is
left out: it shifts which actuation makes a shape, not what shapes there are.
"""

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares

from softform_core.arrays import Array
from softform_core.evaluation.measured_errors import measure_errors
from softform_core.executors import Executor, InProcess
from softform_core.forward.simulated_models import SimulatedModel, SimulatedState
from softform_core.geometry.rigid import RigidTransform
from softform_core.inverse.closest_points import closest_points_on
from softform_core.inverse.counterpart import Footprint, RestingSurface
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape
from softform_core.simulation.simulated_body import rest_points
from softform_core.units import MM_PER_M
from softform_rig.gap import random_actuations
from softform_rig.reality import Reality, true_values

STARTS = 4

_SMALL_MM = 0.01
"""Distances below this count by their square, or the derivative of their mean would jump at zero: `soft_l1` is the sum
of sqrt(d^2 + this^2)."""

_SAME_MM = 0.01


@dataclass(frozen=True)
class BestFit:
    """What the search found.

    Attributes:
        mean_mm: Mean distance as a scan without noise and holes measures it.
        max_mm: Largest distance, so measured.
        actuation: (m,) commanded.
        of_starts_mm: (starts,) mean distance, so measured, that each start led to by least squares.
        seconds: Duration of the search.
    """

    mean_mm: float
    max_mm: float
    actuation: Array
    of_starts_mm: Array
    seconds: float

    @property
    def agreeing(self) -> int:
        """How many starts led to within 0.01 mm of the best of them."""
        return int((self.of_starts_mm <= self.of_starts_mm.min() + _SAME_MM).sum())

    @property
    def agreement(self) -> str:
        """Whether the starts led to one shape, in words."""
        count, low, high = len(self.of_starts_mm), self.of_starts_mm.min(), self.of_starts_mm.max()
        led_on = "" if low - self.mean_mm < _SAME_MM else f" ({low:.2f} mm by squares, led on to the least mean)"
        if self.agreeing == count:
            return f"all {count} starts agree{led_on}"
        return f"{self.agreeing} of {count} starts agree, they led to {low:.2f} … {high:.2f} mm{led_on}"

    def figures(self) -> dict[str, object]:
        """For the report."""
        return {
            "best_fit_mean_mm": round(self.mean_mm, 4),
            "best_fit_max_mm": round(self.max_mm, 4),
            "starts": len(self.of_starts_mm),
            "starts_that_agree": self.agreeing,
            "mean_mm_of_starts": np.round(self.of_starts_mm, 4).tolist(),
            "actuation": np.round(self.actuation, 3).tolist(),
            "seconds": round(self.seconds, 1),
        }


class Fit(NamedTuple):
    """Mean and largest distance as a scan measures them, at an actuation (m,)."""

    mean_mm: float
    max_mm: float
    actuation: Array


def find_best_fit(
    robot: Robot,
    reality: Reality,
    target: Shape,
    starts: int = STARTS,
    seed: int = 0,
    tried: Sequence[Fit] = (),
    on_start: Callable[[int, float], None] | None = None,
    executor: Executor | None = None,
) -> BestFit:
    """Search the reality of a robot with a surface for its shape closest to a target, m in the robot's frame.

    Args:
        robot: The robot.
        reality: Its reality.
        target: The target, where it is to be reached.
        starts: Number of random starts.
        seed: Seed of the random starts.
        tried: Actuations that the body was brought to; the fit is never worse than what was measured there.
        on_start: Called after each start with its number, from 1, and the mean distance that it led to, mm.
        executor: Where the starts are followed; in this process by default.

    Raises:
        SoftformError: If the target lies nowhere over the robot, or an actuation has no equilibrium.
    """
    begun = time.perf_counter()
    numbered = list(enumerate(random_actuations(robot, starts, seed), 1))
    found: dict[int, Fit] = {}
    follow = functools.partial(_follower, robot, reality, target)
    for number, nearest in (executor or InProcess()).run(follow, numbered):
        found[number] = nearest
        if on_start is not None:
            on_start(number, nearest.mean_mm)
    distance = _TrueDistance(robot, reality, target)
    looked_at = [Fit(*distance.measured(one.actuation), one.actuation) for one in tried]
    nearest = min([*found.values(), *looked_at], key=lambda one: one.mean_mm)
    led_on = distance.least_squares(nearest.actuation, loss="soft_l1", f_scale=_SMALL_MM)
    best = min(nearest, led_on, *tried, key=lambda one: one.mean_mm)
    of_starts = np.array([found[number].mean_mm for number, _ in numbered])
    return BestFit(best.mean_mm, best.max_mm, best.actuation, of_starts, time.perf_counter() - begun)


def _follower(robot: Robot, reality: Reality, target: Shape) -> Callable[[tuple[int, Array]], tuple[int, Fit]]:
    """What follows a numbered start, an actuation (m,)."""
    distance = _TrueDistance(robot, reality, target)
    return lambda numbered: (numbered[0], distance.least_squares(numbered[1]))


class _TrueDistance:
    """Distances of the true surface, at the middle of each triangle, to the target; each solve starts at the last."""

    def __init__(self, robot: Robot, reality: Reality, target: Shape) -> None:
        body = robot.body.real_simulator(reality.body)
        self._model = SimulatedModel(robot, body, lambda at: true_values(reality, robot, robot.actuators_of(at)))
        self._low, self._span = robot.actuation_min, robot.actuation_max - robot.actuation_min
        self._faces, self._target, self._search = body.faces, target, closest_points_on(target)
        self._rest = RestingSurface(Shape.from_mesh(rest_points(body), body.faces))
        self._footprint = Footprint(self._rest, self._search)
        self._last: tuple[Array, tuple[Array, Array, SimulatedState]] | None = None

    def least_squares(self, start: Array, loss: str = "linear", f_scale: float = 1.0) -> Fit:
        """Where scipy's `least_squares` leads from an actuation (m,) within the working range."""
        low, span = self._low, self._span
        solution = least_squares(
            lambda x: self.of(low + x * span),
            (start - low) / span,
            lambda x: self.derivative(low + x * span) * span,
            bounds=(0.0, 1.0),
            ftol=1e-6,
            xtol=1e-6,
            loss=loss,
            f_scale=f_scale,
        )
        reached = low + solution.x * span
        return Fit(*self.measured(reached), reached)

    def of(self, actuation: Array) -> Array:
        """Distance of each sample, (F,) mm."""
        return self._look(actuation)[0]

    def derivative(self, actuation: Array) -> Array:
        """Their derivative by the actuation, (F, m) mm per unit."""
        distances, away, state = self._look(actuation)
        moved = self._model.jacobian(state)[0][self._faces].mean(axis=1)
        return np.asarray(np.einsum("fx,fxm->fm", away / np.maximum(distances, 1e-9)[:, None], moved))

    def measured(self, actuation: Array) -> tuple[float, float]:
        """Mean and largest distance, mm, of a dense and even look at the surface."""
        corners = self._look(actuation)[2].points[0][self._faces] / MM_PER_M
        shares = np.array([[1, 1, 1], [4, 1, 1], [1, 4, 1], [1, 1, 4]]) / np.array([[3], [6], [6], [6]])
        errors = measure_errors(
            np.einsum("sc,fcx->sfx", shares, corners).reshape(-1, 3), self._target, RigidTransform(), self._rest
        )
        return errors.mean * MM_PER_M, errors.maximum * MM_PER_M

    def _look(self, actuation: Array) -> tuple[Array, Array, SimulatedState]:
        """Distances (F,) mm, vectors from the target (F, 3) mm, and the equilibrium."""
        if self._last is None or not np.array_equal(self._last[0], actuation):  # asked for twice: with its derivative
            self._last = actuation.copy(), self._solved(actuation)
        return self._last[1]

    def _solved(self, actuation: Array) -> tuple[Array, Array, SimulatedState]:
        state = self._model.forward(actuation[None])
        points = state.points[0][self._faces].mean(axis=1)
        matches = self._search.query(points)
        away = points - matches.points
        counts = ~self._footprint.lacks(points, matches, RigidTransform())
        return matches.distances * counts, away * counts[:, None], state
