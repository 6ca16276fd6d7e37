"""Inverse kinematics through the state: the configuration, and the way to it, that has the tip right after one move.

A robot that remembers reaches a target by many configurations, one for each way of coming there. What a model of paths
foretells decides which is commanded; of the ways the one is taken that is expected to end nearest, counting what the
model does not know of it, and the time that it takes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_studies.hysteresis.centre_lines import CentreLines
from softform_studies.hysteresis.curve_models import CurveModel, Known
from softform_studies.tendon_robot.configurations import nominal_configurations, pulls_of
from softform_studies.tendon_robot.execution import HELD_S

Way = Literal["straight", "from_below", "overshoot", "by_home"]
WAYS: tuple[Way, ...] = ("straight", "from_below", "overshoot", "by_home")
STEP = 0.004
"""How much further a tendon is let go before it is tightened, or tightened before it is let go, m: past dead band and
friction."""
LEAST = 5e-4
"""Least pull of a tendon that works, m: a slack one would be corrected no more."""
PRICE = 0.05
"""What a second of a longer way may cost in expected error, mm."""
_LEVELS, _HELICAL = 8, 24
"""Levels of the configurations at the best of which the search begins."""
_STARTS, _ROUNDS = 4, 8
_DAMPING = 0.3
"""Of a step: root of the squared error, in mm, that 1 mm of each pull is worth."""
_LARGEST_STEP = 0.002
_DIFFERENCE = 1e-4  # m, of slopes


class PathModel(Protocol):
    """What foretells tips of paths (n, h, k) m of configurations, the present one last."""

    def tips(self, paths: Array) -> Array:
        """Return tips (n, 3) mm."""

    def doubts(self, paths: Array) -> Array:
        """Return by how much (n,) mm they may be off."""


@dataclass(frozen=True, eq=False)
class CurveTips:
    """Tips of a model of centre lines.

    Attributes:
        lines: Of the robot.
        model: The model; one that has a `deviation` doubts each path apart, by it.
        off_mm: What it is off by, root mean square, where it was validated: a unit of `deviation` if it has that.
    """

    lines: CentreLines
    model: CurveModel
    off_mm: float

    @classmethod
    def of(cls, lines: CentreLines, model: CurveModel, known: Known) -> "CurveTips":
        """Return the tips of a model that was learned from something known, which also validates it."""
        found = cls(lines, model, 1.0)
        wrong = found.tips(known.other_paths) - lines.lines(known.other_bends).tip
        doubts = found.doubts(known.other_paths)
        return cls(lines, model, float(np.sqrt(np.square(wrong).sum() / np.square(doubts).sum())))

    def tips(self, paths: Array) -> Array:
        """See `PathModel`."""
        return self.lines.lines(self.model.bends(paths)).tip

    def doubts(self, paths: Array) -> Array:
        """See `PathModel`."""
        deviation = getattr(self.model, "deviation", None)
        return self.off_mm * (np.ones(len(paths)) if deviation is None else deviation(paths))


@dataclass(frozen=True, eq=False)
class Plans:
    """What n robots are to do.

    Attributes:
        ways: Of each.
        configurations: (n, k) m, at the end.
        expected: (n,) mm from the target, doubts included.
        seconds: (n,) that it takes, standing included.
    """

    ways: list[Way]
    configurations: Array
    expected: Array
    seconds: Array

    def of(self, rows: Array) -> "Plans":
        """Return those of some robots."""
        ways = [self.ways[int(row)] for row in rows]
        return Plans(ways, self.configurations[rows], self.expected[rows], self.seconds[rows])


def via(robot: Robot, way: Way, here: Array, configurations: Array) -> Array | None:
    """Return where a way leads on the way from (n, k) m to configurations (n, k) m; None if straight there."""
    if way == "straight":
        return None
    if way == "by_home":
        return np.zeros_like(configurations)
    if way == "overshoot":
        return np.where(configurations > 0.0, np.minimum(configurations + STEP, robot.actuator_max), 0.0)
    less = (configurations < here) & (configurations > 0.0)
    return np.where(less, np.maximum(configurations - STEP, LEAST), here)


def led_on(robot: Robot, past: Array, way: Way, configurations: Array) -> Array:
    """Return the paths (n, h, k) m of robots that come by a way from paths (n, h, k) m, as many configurations long."""
    between = via(robot, way, past[:, -1], configurations)
    steps = [configurations] if between is None else [between, configurations]
    return np.concatenate([past, np.stack(steps, axis=1)], axis=1)[:, len(steps) :]


def seconds_of(robot: Robot, way: Way, here: Array, configurations: Array) -> Array:
    """Return how long (n,) s a way takes from (n, k) m to configurations (n, k) m: moves, and standing after each."""
    between = via(robot, way, here, configurations)
    stops = [here, configurations] if between is None else [here, between, configurations]
    pulls = [pulls_of(robot, one) for one in stops]
    moves = [np.abs(after - before).max(axis=1) for before, after in zip(pulls, pulls[1:], strict=False)]
    return np.asarray(sum(one / float(robot.slew_rate.min()) + HELD_S for one in moves))


def planned(
    model: PathModel,
    robot: Robot,
    past: Array,
    targets: Array,
    ways: Sequence[Way] = WAYS,
    price: float = PRICE,
    near: Array | None = None,
) -> Plans:
    """Return the best way of each of n robots to its target, and the configuration at its end.

    Args:
        model: What foretells tips.
        robot: The robot.
        past: (n, h, k) m, configurations until now, the present one last: what is not known must not be given.
        targets: (n, 3) mm.
        ways: That may be taken.
        price: mm that a second is worth.
        near: (n, k) m, configurations about which alone is searched, as where a loop corrects; None: everywhere.

    Raises:
        SoftformError: If a past or a target is not finite.
    """
    if not np.isfinite(past).all():
        raise SoftformError(
            "A robot whose past is not known cannot be led through it.",
            "Home it first: from home on its past is known.",
        )
    if not np.isfinite(targets).all():
        raise SoftformError("A target is not finite.", "Give three coordinates of each, in mm.")
    everywhere = nominal_configurations(robot, _LEVELS, _HELICAL)
    begins = [everywhere] * len(past) if near is None else [one[None] for one in near]
    each = [
        [_found(model, robot, begin, before, target, way) for way in ways]
        for begin, before, target in zip(begins, past, targets, strict=True)
    ]
    chosen, expected, seconds, configurations = [], [], [], []
    for before, found in zip(past, each, strict=True):
        spent = [
            float(seconds_of(robot, way, before[-1:], configuration[None])[0])
            for way, (configuration, _) in zip(ways, found, strict=True)
        ]
        best = int(np.argmin([off + price * time for (_, off), time in zip(found, spent, strict=True)]))
        chosen.append(ways[best])
        configurations.append(found[best][0])
        expected.append(found[best][1])
        seconds.append(spent[best])
    return Plans(chosen, np.array(configurations), np.array(expected), np.array(seconds))


def _found(model: PathModel, robot: Robot, coarse: Array, past: Array, target: Array, way: Way) -> tuple[Array, float]:
    """Return the configuration (k,) m by which a robot with a past (h, k) comes nearest by a way, and its error."""

    def tips(asked: Array) -> tuple[Array, Array]:
        paths = led_on(robot, np.broadcast_to(past, (len(asked), *past.shape)), way, asked)
        return model.tips(paths), paths

    order = np.linalg.norm(tips(coarse)[0] - target, axis=1).argsort(kind="stable")
    asked = coarse[order[:_STARTS]]
    working = asked > 0.0
    for _ in range(_ROUNDS):
        steps = _DIFFERENCE * np.eye(asked.shape[1])
        moved = np.concatenate([asked, (asked[:, None] + steps).reshape(-1, asked.shape[1])])
        found = tips(moved)[0]
        here, there = found[: len(asked)], found[len(asked) :].reshape(len(asked), -1, 3)
        slopes = (there - here[:, None]).swapaxes(1, 2) / (1e3 * _DIFFERENCE) * working[:, None]  # mm / mm
        square = slopes.swapaxes(1, 2) @ slopes + _DAMPING**2 * np.eye(asked.shape[1])
        step = 1e-3 * np.linalg.solve(square, slopes.swapaxes(1, 2) @ (target - here)[..., None])[..., 0]
        step *= np.minimum(1.0, _LARGEST_STEP / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1e-12))
        asked = np.where(working, np.clip(asked + step, LEAST, robot.actuator_max), 0.0)
    asked = np.concatenate([asked, coarse[order[:_STARTS]]])
    found, paths = tips(asked)
    expected = np.hypot(np.linalg.norm(found - target, axis=1), model.doubts(paths))
    best = int(expected.argmin())
    return asked[best], float(expected[best])
