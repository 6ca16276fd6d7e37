"""Brings tips of robots that remember to targets, by several ways of approaching: which lets a closed loop converge.

A plan by the simulator alone gives pulls; the robot goes there, its tip is measured, and the pulls are corrected, by
the simulator's Jacobian first, and then by what each move has taught of the robot's own. To where the correction says,
the robot may go straight, which reverses some tendons; by way of home, so that each tendon is always tightened from
slack; or from below, so that those which have to be let go are let go further and tightened again.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.robots import TIP, Robot
from softform_core.simulation.sensitivity import equilibrium_sensitivities
from softform_core.simulation.simulated_body import SimulatedBody, equilibrium_unknowns
from softform_core.units import MM_PER_M
from softform_rig.reality import Reality, true_values
from softform_studies.tendon_robot.configurations import pulls_of
from softform_studies.tendon_robot.execution import HELD_S, PathBody

Approach = Literal["straight", "by_home", "from_below"]
APPROACHES: tuple[Approach, ...] = ("straight", "by_home", "from_below")
BELOW = 0.004
"""How much further a tendon is let go before it is tightened again, m: past the dead band and the friction."""
_LEAST = 5e-4
"""Least pull of a tendon that works, m: a slack one would be corrected no more."""
_LARGEST_STEP = 0.003
"""Of a correction, m of any tendon."""
_DAMPING = 1.0
"""Of a correction: root of the squared error, in mm, that 1 mm of each pull is worth."""
_TELLING = 2e-4
"""Shortest way of the pulls that teaches slopes, m."""
_WORKING = 2
"""Tendons that a configuration pulls at most."""
_TRIALS, _PROBE = 4, 2e-4
"""Of the search for the best fit: rounds, and the way that tells a slope, m."""
_WORTH = 2e-3
"""By how much a round before must have been better, m, to go back to it: a body that softens does not come again."""

See = Callable[[Array], Array]
"""What measures tips (n, 3) m of true ones."""


@dataclass
class Robots:
    """n robots of a reality, each at its own pulls.

    Attributes:
        at: (n, k) configurations, m.
    """

    body: PathBody
    robot: Robot
    reality: Reality
    count: int
    at: Array = field(init=False)
    unknowns: Array = field(init=False)
    state: Any = field(init=False)

    def __post_init__(self) -> None:
        self.unknowns, self.state = self.body.new(self.count)
        self.at = np.zeros((self.count, len(self.robot.actuators)))
        self.go(self.at)

    def of(self, rows: NDArray[np.int64]) -> "Robots":
        """Return others that are where some of these are, and have their past; these stay."""
        found = copy.copy(self)
        found.count, found.at, found.unknowns = len(rows), self.at[rows], self.unknowns[rows]
        found.state = self.state.part(rows)
        return found

    def go(self, configurations: Array) -> Array:
        """Go straight to configurations (n, k) m and stand there; returns the true tips (n, 3) m."""
        pulls = true_values(self.reality, self.robot, pulls_of(self.robot, configurations))
        seconds = np.maximum(np.abs(pulls - self.state.pulls).max(axis=1) / self.robot.slew_rate.min(), 1e-3)
        self.unknowns, self.state = self.body.advance(self.unknowns, pulls, self.state, seconds)
        self.unknowns, self.state = self.body.advance(self.unknowns, pulls, self.state, HELD_S)
        self.at = configurations.copy()
        return np.asarray(self.body.points(self.unknowns)[:, 0])

    def approach(self, configurations: Array, how: Approach) -> Array:
        """Go to configurations (n, k) m in a way; returns the true tips (n, 3) m."""
        if how == "by_home":
            self.go(np.zeros_like(configurations))
        elif how == "from_below":
            less = (configurations < self.at) & (configurations > 0.0)
            self.go(np.where(less, np.maximum(configurations - BELOW, _LEAST), self.at))
        return self.go(configurations)


def planned_tips(simulator: SimulatedBody, robot: Robot, configurations: Array) -> tuple[Array, Array]:
    """Return the simulator's tips (n, 3) m at configurations (n, k) m, and how they move with these, (n, 3, k).

    Raises:
        NoEquilibriumError: If one of them has no equilibrium.
    """
    pulls = pulls_of(robot, configurations)
    unknowns, tip = equilibrium_unknowns(simulator, pulls), simulator.frames[TIP]
    moves = simulator.moved_points(unknowns, equilibrium_sensitivities(simulator, unknowns, pulls))
    return simulator.points(unknowns)[:, tip], moves[:, tip]


def corrected(robot: Robot, configurations: Array, working: NDArray[np.bool_], slopes: Array, missing: Array) -> Array:
    """Return configurations (n, k) m by which the tips would move by `missing` (n, 3) m, only `working` ones changed.

    One damped step of Gauss and Newton with the slopes (n, 3, k) of the tips. A tendon whose range ends stays there,
    and the others make of it what they can.
    """
    asked = configurations + _step(slopes, working, missing)
    ends = np.where(working & ((asked > robot.actuator_max) | (asked < _LEAST)), asked, configurations)
    held = np.clip(ends, _LEAST, robot.actuator_max) - configurations
    is_free = working & (ends == configurations)
    left = missing - (slopes @ np.where(is_free, 0.0, held * working)[..., None])[..., 0]
    step = np.where(is_free, _step(slopes, is_free, left), held)
    step *= np.minimum(1.0, _LARGEST_STEP / np.maximum(np.abs(step * working).max(axis=1, keepdims=True), 1e-12))
    return np.where(working, np.clip(configurations + step, _LEAST, robot.actuator_max), 0.0)


def _step(slopes: Array, working: NDArray[np.bool_], missing: Array) -> Array:
    slopes = slopes * working[:, None, :]
    square = slopes.swapaxes(1, 2) @ slopes + _DAMPING**2 * np.eye(working.shape[1])
    return np.asarray(np.linalg.solve(square, slopes.swapaxes(1, 2) @ missing[..., None])[..., 0])


def learned(slopes: Array, way: Array, moved: Array) -> Array:
    """Return slopes (n, 3, k) that explain how tips moved (n, 3) m on a way (n, k) m, changed least (Broyden).

    Of a way that is too short to tell from noise nothing is learned.
    """
    length = np.square(way).sum(axis=1)
    share = np.where(length > _TELLING**2, 1.0 / np.maximum(length, _TELLING**2), 0.0)
    lacking = moved - (slopes @ way[..., None])[..., 0]
    return np.asarray(slopes + lacking[..., None] * way[:, None] * share[:, None, None])


@dataclass(frozen=True, eq=False)
class Closed:
    """A closed loop of n robots.

    Attributes:
        errors: (rounds + 1, n) mm, true, after the plan and each correction.
        end: (n,) mm, true, where they are left: who was measured better before has gone back there, the same way.
        last: (n, k) m, the configurations of the last round.
    """

    errors: Array
    end: Array
    last: Array


def closed_loop(robots: Robots, begin: Array, targets: Array, how: Approach, rounds: int, see: See) -> Closed:
    """Correct a plan so many times, and end at the best that was measured.

    The slopes are the simulator's to begin with; each move teaches what the robot's are.

    Args:
        robots: Where they are.
        begin: (n, k) m, the plan.
        targets: (n, 3) m.
        how: Way of each approach.
        rounds: Of corrections.
        see: What measures the tips.
    """
    working, asked = begin > 0.0, begin
    slopes = planned_tips(robots.robot.body.simulator(), robots.robot, begin)[1]
    errors, measured, configurations = [], [], []
    for last in range(rounds + 1):
        tips = robots.approach(asked, how)
        seen = see(tips)
        errors.append(MM_PER_M * np.linalg.norm(tips - targets, axis=1))
        if measured:
            slopes = learned(slopes, asked - configurations[-1], seen - measured[-1])
        measured.append(seen)
        configurations.append(asked)
        if last < rounds:
            asked = corrected(robots.robot, asked, working, slopes, targets - seen)
    seen_errors = np.linalg.norm(np.array(measured) - targets, axis=2)
    best = seen_errors.argmin(axis=0)
    end, back = errors[-1].copy(), np.flatnonzero(seen_errors[-1] > seen_errors.min(axis=0) + _WORTH)
    if back.size:
        there = np.array(configurations)[best[back], back]
        end[back] = MM_PER_M * np.linalg.norm(robots.of(back).approach(there, how) - targets[back], axis=1)
    return Closed(np.array(errors), end, configurations[-1])


def best_fit(robots: Robots, begin: Array, targets: Array) -> Array:
    """Return the least errors (n,) mm that the tips can have by way of home from where the robots are; these stay.

    Found by slopes of the true robots, from configurations (n, k) m near it: every trial begins at the same moment, so
    that no robot creeps or softens by it.
    """
    n, each = len(begin), np.arange(len(begin))
    at, working, least = begin, begin > 0.0, np.full(n, np.inf)
    columns = np.argsort(~working, axis=1, kind="stable")[:, :_WORKING].T
    for _ in range(_TRIALS):
        probes = [at.copy() for _ in columns]
        for probe, column in zip(probes, columns, strict=True):
            probe[each, column] -= _PROBE * working[each, column]
        moved = np.concatenate([at, *probes])
        tips = robots.of(np.tile(each, len(moved) // n)).approach(moved, "by_home").reshape(-1, n, 3)
        least = np.minimum(least, MM_PER_M * np.linalg.norm(tips[0] - targets, axis=1))
        slopes = np.zeros((n, 3, begin.shape[1]))
        for column, tip in zip(columns, tips[1:], strict=True):
            slopes[each, :, column] = np.where(working[each, column][:, None], (tips[0] - tip) / _PROBE, 0.0)
        at = corrected(robots.robot, at, working, slopes, targets - tips[0])
    return least
