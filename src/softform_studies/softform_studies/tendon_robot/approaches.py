"""Brings tips of robots that remember to targets, by several ways of approaching: which lets a closed loop converge.

A plan by the simulator alone gives pulls; the robot goes there, its tip is measured, and the pulls are corrected by the
simulator's Jacobian, as a closed loop does. To where the correction says, the robot may go straight, which reverses
some tendons; by way of home, so that each tendon is always tightened from slack; or from below, so that those which
have to be let go are let go further and tightened again.
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
_DAMPING = 2.0
"""Of a correction: root of the squared error, in mm, that 1 mm of each pull is worth."""

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


def corrected(
    simulator: SimulatedBody, robot: Robot, configurations: Array, working: NDArray[np.bool_], missing: Array
) -> Array:
    """Return configurations (n, k) m by which the tips would move by `missing` (n, 3) m, only `working` ones changed.

    One damped step of Gauss and Newton with the simulator's Jacobian.
    """
    slopes = planned_tips(simulator, robot, configurations)[1] * working[:, None, :]
    square = slopes.swapaxes(1, 2) @ slopes + _DAMPING**2 * np.eye(working.shape[1])
    step = np.linalg.solve(square, slopes.swapaxes(1, 2) @ missing[..., None])[..., 0]
    step *= np.minimum(1.0, _LARGEST_STEP / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1e-12))
    return np.where(working, np.clip(configurations + step, _LEAST, robot.actuator_max), 0.0)


def closed_loop(
    robots: Robots, begin: Array, targets: Array, how: Approach, rounds: int, see: See
) -> tuple[Array, Array]:
    """Return true errors (rounds + 1, n) mm of tips after the plan and each correction, and the last configurations.

    Args:
        robots: Where they are.
        begin: (n, k) m, the plan.
        targets: (n, 3) m.
        how: Way of each approach.
        rounds: Of corrections.
        see: What measures the tips.
    """
    simulator, working, asked = robots.robot.body.simulator(), begin > 0.0, begin
    errors = []
    for last in range(rounds + 1):
        tips = robots.approach(asked, how)
        errors.append(MM_PER_M * np.linalg.norm(tips - targets, axis=1))
        if last < rounds:
            asked = corrected(simulator, robots.robot, asked, working, targets - see(tips))
    return np.array(errors), asked
