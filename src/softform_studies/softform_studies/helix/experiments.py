"""The experiments of paper 002 on an arm: circles, drags, jumps and targets out of reach; tips are in m.

Against the model, an error is that of the commands: the tip in balance under them, against where it is led. Against
the reality it is that of the marker. A closed loop moves the target by how far the marker is from where the model has
the tip under the pulls that motors are read to have: neither what the model itself misses, before a target out of
reach, nor the lag of motors adds up.
"""

from dataclasses import dataclass

import numpy as np

from softform_core.arrays import Array
from softform_core.robots import TIP, Robot
from softform_core.simulation.newton import find_equilibria
from softform_core.units import MM_PER_M
from softform_studies.helix.arms import RATE, LedArm, RealArm, Tick
from softform_studies.helix.poses import node_errors

SPEED = 0.17
"""Of the paper's circle, rad/s (Fig. 7)."""
RADIUS, DEPTH = 1.0 / 6.0, 8.0 / 9.0
"""Of the circle, over the arm's length: the paper prints neither."""
CIRCLES = ((RADIUS, DEPTH), (0.25, 0.8), (0.1, 0.94))
"""Radii and depths over the length."""
HALFWAY = 0.5
"""Where the second hand holds the side, 0 at the base ... 1."""
BALLOON = 0.05
"""Radius of a balloon, m."""
_POPPING = 2.5  # s that the needle has
_FEEDBACK = 0.7
"""Share of what is newly seen of the marker's distance from the model's tip."""
_APPROACH = 2.0  # s to the first target
_RESTING = 1.0  # s after a jump
_SETTLING = 2.0  # s in which the arm comes to rest before a target out of reach
_STILL_MM = 1.0
_MOST_GAP_MM = 1.0


@dataclass(frozen=True, eq=False)
class Tracked:
    """One run.

    Attributes:
        targets: (n, 3) m, one for each tick.
        aims: (n, 3) m, where the model's tip is led for that: elsewhere in a closed loop.
        ticks: n of them.
        seen: (s,) ticks at which the tip was looked at.
        model: (s, 3) m, tip of the model in balance there.
        reached: (s, 3) m, the same under the pulls to which the motors have come; NaN without a reality.
        real: (s, 3) m, marker of the reality there; NaN without one.
    """

    targets: Array
    aims: Array
    ticks: list[Tick]
    seen: Array
    model: Array
    reached: Array
    real: Array

    @property
    def model_mm(self) -> Array:
        """Errors of the model's tip, (s,) mm: what inverse kinematics leaves."""
        return MM_PER_M * np.linalg.norm(self.model - self.aims[self.seen], axis=1)

    @property
    def lag_mm(self) -> Array:
        """By how much the model's tip is behind for motors that are late, (s,) mm."""
        return MM_PER_M * np.linalg.norm(self.reached - self.model, axis=1)

    @property
    def sim_to_real_mm(self) -> Array:
        """Distance of the marker from the model's tip under the pulls that motors have come to, (s,) mm."""
        return MM_PER_M * np.linalg.norm(self.real - self.reached, axis=1)

    @property
    def real_mm(self) -> Array:
        """Errors of the marker, (s,) mm."""
        return MM_PER_M * np.linalg.norm(self.real - self.targets[self.seen], axis=1)


def circle(
    length: float, speed: float = SPEED, turns: float = 1.0, radius: float = RADIUS, depth: float = DEPTH
) -> Array:
    """Targets (n, 3) m on a circle below the base of a hanging arm, for each tick; radius and depth over its length."""
    angle = speed * np.arange(round(turns * 2.0 * np.pi / speed * RATE)) / RATE
    return length * np.stack([radius * np.cos(angle), radius * np.sin(angle), np.full(len(angle), depth)], axis=1)


def drags(length: float, count: int, seed: int, move: float = 0.6, hold: float = 0.4) -> Array:
    """Targets (n, 3) m that are dragged abruptly between places of the workspace, and held there for a while."""
    draw = np.random.default_rng(seed)
    places = [np.array([0.0, 0.0, 0.97 * length])]
    for _ in range(count):
        angle, out, away = draw.uniform(0.0, 2.0 * np.pi), draw.uniform(0.1, 0.35), draw.uniform(0.82, 0.92)
        depth = np.sqrt(away**2 - out**2)
        places.append(length * np.array([out * np.cos(angle), out * np.sin(angle), depth]))
    share = np.arange(1, round(move * RATE) + 1) / round(move * RATE)
    along = share**3 * (10.0 - 15.0 * share + 6.0 * share**2)  # least jerk
    legs = [a + along[:, None] * (b - a) for a, b in zip(places, places[1:], strict=False)]
    held = round(hold * RATE)
    return np.concatenate([np.concatenate([leg, np.tile(leg[-1], (held, 1))]) for leg in legs])


def tracked(arm: LedArm, targets: Array, every: int, real: RealArm | None = None, closed: bool = False) -> Tracked:
    """Lead the tip through targets (n, 3) m, looked at each `every` ticks; first it is brought to the first one.

    Raises:
        NoEquilibriumError: If the reality has no balance under a command.
    """
    offset = np.zeros(3)
    for _ in range(round(_APPROACH * RATE)):
        tick = arm.tick(targets[0])
        if real is not None:
            real.follow(tick.command)
    if real is not None and closed:
        for _ in range(3):
            offset = offset + _FEEDBACK * (arm.tip(real.readings()) - real.marker() - offset)
            for _ in range(round(0.3 * RATE)):
                tick = arm.tick(targets[0] + offset)
                real.follow(tick.command)
    ticks, aims, seen, model, reached, marked = [], [], [], [], [], []
    for number, target in enumerate(targets):
        aims.append(target + offset)
        ticks.append(arm.tick(aims[-1]))
        if real is not None:
            real.follow(ticks[-1].command)
        if number % every == every - 1:
            seen.append(number)
            model.append(arm.tip(ticks[-1].command))
            reached.append(np.full(3, np.nan) if real is None else arm.tip(real.readings()))
            marked.append(np.full(3, np.nan) if real is None else real.marker())
            if closed:
                offset = offset + _FEEDBACK * (reached[-1] - marked[-1] - offset)
    places = [np.array(each) for each in (model, reached, marked)]
    return Tracked(targets, np.array(aims), ticks, np.array(seen), *places)


def two_hands(length: float, count: int, seed: int) -> Array:
    """Targets (n, 2, 3) m for a point halfway and the tip, dragged by two hands at once, abruptly and held by turns."""
    tip = drags(length, count, seed)
    middle = drags(length, count, seed + 1) * [0.4, 0.4, 0.45 / 0.9]
    return np.stack([middle, tip], axis=1)


@dataclass(frozen=True, eq=False)
class Dragged:
    """Several points led at once, against a reality; means over what was looked at, mm.

    Attributes:
        model_mm: What inverse kinematics leaves of the points' distances from their targets, root mean square.
        node_mm: Distance of all of the real outside from the model's under the commands: lag and sim-to-real.
    """

    model_mm: float
    node_mm: float


def dragged_by_two_hands(arm: LedArm, targets: Array, every: int, real: RealArm) -> Dragged:
    """Lead a point halfway and the tip through targets (n, 2, 3) m, looked at each `every` ticks, by physics alone.

    Raises:
        NoEquilibriumError: If model or reality has no balance on the way.
    """
    points, missed, apart = arm.points_on(["", TIP], [HALFWAY]), [], []
    for number, target in enumerate(targets):
        tick = arm.lead(points, target)
        real.follow(tick.command)
        if number % every == every - 1:
            missed.append(tick.error_mm)
            apart.append(node_errors(arm.outside(tick.command), arm, real.outside(), real).mean())
    return Dragged(float(np.mean(missed)), float(np.mean(apart)))


@dataclass(frozen=True)
class Balloon:
    """A balloon at a place that was measured, and a needle at the tip (paper 002, Fig. 9).

    Attributes:
        seconds: Until the needle was in it; NaN if it never was.
        missed_mm: Least distance of the needle from its middle.
    """

    seconds: float
    missed_mm: float


def pop(arm: LedArm, real: RealArm, middle: Array, every: int) -> Balloon:
    """Lead the needle to the middle (3,) m of a balloon by physics alone, looked at each `every` ticks.

    Raises:
        NoEquilibriumError: If the reality has no balance on the way.
    """
    seconds, least = np.nan, np.inf
    for number in range(round(_POPPING * RATE)):
        real.follow(arm.tick(middle).command)
        if number % every == every - 1:
            least = min(least, float(np.linalg.norm(real.marker() - middle)))
            if least < BALLOON and np.isnan(seconds):
                seconds = (number + 1) / RATE
    return Balloon(seconds, MM_PER_M * least)


def jumps(arm: LedArm, count: int, seed: int) -> Array:
    """Errors (count,) mm of the model's tip 1 s after its target jumped."""
    places = drags(arm.robot.body.size, count, seed, move=1.0 / RATE, hold=0.0)
    errors = []
    for place in places:
        for _ in range(round(_RESTING * RATE)):
            tick = arm.tick(place)
        errors.append(MM_PER_M * float(np.linalg.norm(arm.tip(tick.command) - place)))
    return np.array(errors)


@dataclass(frozen=True)
class OutOfReach:
    """How the arm rests before a target out of reach.

    Attributes:
        settled: Whether it moved no more, in balance, after 2 s.
        moved_mm: By how much its distance to the target changed in the next half second.
        gap_mm: Largest gap of that time.
        over_best: Distance to the target over the least of another while.
    """

    settled: bool
    moved_mm: float
    gap_mm: float
    over_best: float


def out_of_reach(arm: LedArm, target: Array, longer: float = 3.0) -> OutOfReach:
    """Follow a target (3,) m that the tip cannot reach."""
    for _ in range(round(_SETTLING * RATE)):
        tick = arm.tick(target)
    rested, misses, gaps = tick.error_mm, [tick.error_mm], [tick.gap_mm]
    for _ in range(round(0.5 * RATE)):
        tick = arm.tick(target)
        misses.append(tick.error_mm)
        gaps.append(tick.gap_mm)
    moved = float(np.ptp(misses))
    for _ in range(round(longer * RATE)):
        tick = arm.tick(target)
        misses.append(tick.error_mm)
    over = rested / min(misses)
    return OutOfReach(moved <= _STILL_MM and max(gaps) <= _MOST_GAP_MM, moved, max(gaps), over)


def converged(robot: Robot, count: int, seed: int) -> float:
    """Share of random actuations that have an equilibrium which is found."""
    body, draw = robot.body.simulator(), np.random.default_rng(seed)
    found = 0
    for _ in range(count):
        command = draw.uniform(robot.actuator_min, robot.actuator_max)
        found += not find_equilibria(body, command[None]).failures[0]
    return found / count


__all__ = [
    "BALLOON",
    "CIRCLES",
    "Balloon",
    "Dragged",
    "OutOfReach",
    "Tracked",
    "circle",
    "converged",
    "dragged_by_two_hands",
    "drags",
    "jumps",
    "out_of_reach",
    "pop",
    "tracked",
    "two_hands",
]
