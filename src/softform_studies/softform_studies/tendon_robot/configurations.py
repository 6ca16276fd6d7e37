"""Configurations of the tendon robot, and the orders in which paper 004, Sec. V-B and VI-D4, executes them.

The paper prints how many nominal configurations there are, 2773, and that neither all three straight tendons are
tensioned at once nor the helical one with another; not how many levels each tendon has. 29 levels of one or two
straight tendons, 162 of the helical one, and home are exactly as many.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_studies.tendon_robot.shapes import PARTS, REMEMBERED, Part

STRAIGHT_LEVELS, HELICAL_LEVELS = 29, 162
_CHAINS = 300
"""Most robots that share the work of a set of nominal configurations; each begins rested, at home."""
_LEAST_LENGTH = 3
"""Recorded shapes of each of them."""
WALK, WALKS = 1200, 48
TRAJECTORIES, LEGS = 6, 5


@dataclass(frozen=True, eq=False)
class Run:
    """What C robots execute, one after the other: L configurations each, of which some are recorded.

    Attributes:
        part: How the recorded shapes are approached.
        configurations: (C, L, k) m; each robot begins at home.
        is_recorded: (C, L).
    """

    part: Part
    configurations: Array
    is_recorded: NDArray[np.bool_]

    @property
    def past(self) -> Array:
        """The configurations before each, the oldest first, home where there was none, (C, L, h, k)."""
        chains, length, inputs = self.configurations.shape
        padded = np.concatenate([np.zeros((chains, REMEMBERED, inputs)), self.configurations], axis=1)
        return np.stack([padded[:, place : place + length] for place in range(REMEMBERED)], axis=2)


def check_tendons(robot: Robot) -> None:
    """Reject a robot that has other tendons than three straight ones and a helical one, last.

    Raises:
        SoftformError: If it has.
    """
    turns = [tendon.turns for tendon in getattr(robot.body, "tendons", [])]
    if len(turns) != 4 or any(turns[:3]) or not turns[3]:
        raise SoftformError(
            f"Robot '{robot.name}' has not three straight tendons and then a helical one.",
            "Give --robot tendon_robot, or one with such tendons.",
        )


def pulls_of(robot: Robot, configurations: Array) -> Array:
    """Return pulls (..., k) m of configurations (..., k) m: a tendon of configuration 0 hangs slack, as at home."""
    return np.where(configurations > 0.0, configurations, robot.safe)


def nominal_configurations(robot: Robot, straight: int = STRAIGHT_LEVELS, helical: int = HELICAL_LEVELS) -> Array:
    """Return the nominal configurations (n, 4) m, home first, with so many levels up to the largest pulls."""
    largest = robot.actuator_max
    rows = [np.zeros(4)]
    levels = np.arange(1, straight + 1) / straight
    for first in range(3):
        rows += [level * np.eye(4)[first] for level in levels]
        rows += [
            level * np.eye(4)[first] + other * np.eye(4)[second]
            for second in range(first + 1, 3)
            for level in levels
            for other in levels
        ]
    rows += [level * np.eye(4)[3] for level in np.arange(1, helical + 1) / helical]
    return np.array(rows) * largest


def planned_runs(nominal: Array, seed: int) -> list[Run]:
    """Return all runs of the paper: home, two times random, the walk, and the trajectories."""
    random = np.random.default_rng(seed)
    runs = [_approached(part, nominal, random) for part in PARTS[:3]]
    for part, chains, length in (("walk", WALKS, WALK // WALKS), ("trajectory", TRAJECTORIES, LEGS)):
        chosen = nominal[random.integers(len(nominal), size=(chains, length))]
        runs.append(Run(PARTS[PARTS.index(part)], chosen, np.ones(chosen.shape[:2], dtype=bool)))
    return runs


def _approached(part: Part, nominal: Array, random: np.random.Generator) -> Run:
    """Each nominal configuration once, in random order, behind home or behind a random nominal one."""
    chains = max(1, min(_CHAINS, len(nominal) // _LEAST_LENGTH))
    length = -(-len(nominal) // chains)
    order = np.concatenate([random.permutation(len(nominal)), np.full(chains * length - len(nominal), -1)])
    places = order.reshape(length, chains).T
    configurations = np.zeros((chains, 2 * length, nominal.shape[1]))
    configurations[:, 1::2] = nominal[places]
    if part != "home":
        configurations[:, 0::2] = nominal[random.integers(len(nominal), size=places.shape)]
    is_recorded = np.zeros(configurations.shape[:2], dtype=bool)
    is_recorded[:, 1::2] = places >= 0
    return Run(part, configurations, is_recorded)
