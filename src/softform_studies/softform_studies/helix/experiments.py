"""The experiments of paper 002 on an arm: circles, drags, jumps and targets out of reach; tips are in m.

Against the model, an error is that of the commands: the tip in balance under them, against where it is led. Against
the reality it is that of the marker. A closed loop moves the target by how far the marker is from where the model has
the tip under the pulls that motors are read to have: neither what the model itself misses, before a target out of
reach, nor the lag of motors adds up.
"""

from dataclasses import dataclass

import numpy as np

from softform_core.arrays import Array
from softform_core.robots import Robot
from softform_core.simulation.newton import find_equilibria
from softform_core.units import MM_PER_M
from softform_studies.helix.arms import RATE, LedArm, RealArm, Tick

SPEED = 0.17
"""Of the paper's circle, rad/s (Fig. 7)."""
RADIUS, DEPTH = 1.0 / 6.0, 8.0 / 9.0
"""Of the circle, over the arm's length: the paper prints neither."""
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
        real: (s, 3) m, marker of the reality there; NaN without one.
    """

    targets: Array
    aims: Array
    ticks: list[Tick]
    seen: Array
    model: Array
    real: Array

    @property
    def model_mm(self) -> Array:
        """Errors of the model's tip, (s,) mm."""
        return MM_PER_M * np.linalg.norm(self.model - self.aims[self.seen], axis=1)

    @property
    def real_mm(self) -> Array:
        """Errors of the marker, (s,) mm."""
        return MM_PER_M * np.linalg.norm(self.real - self.targets[self.seen], axis=1)


def circle(length: float, speed: float = SPEED, turns: float = 1.0) -> Array:
    """Targets (n, 3) m on a circle below the base of a hanging arm, for each tick."""
    angle = speed * np.arange(round(turns * 2.0 * np.pi / speed * RATE)) / RATE
    radius = RADIUS * length
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), np.full(len(angle), DEPTH * length)], axis=1)


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
    ticks, aims, seen, model, marked = [], [], [], [], []
    for number, target in enumerate(targets):
        aims.append(target + offset)
        ticks.append(arm.tick(aims[-1]))
        if real is not None:
            real.follow(ticks[-1].command)
        if number % every == every - 1:
            seen.append(number)
            model.append(arm.tip(ticks[-1].command))
            marked.append(np.full(3, np.nan) if real is None else real.marker())
            if real is not None and closed:
                offset = offset + _FEEDBACK * (arm.tip(real.readings()) - marked[-1] - offset)
    return Tracked(targets, np.array(aims), ticks, np.array(seen), np.array(model), np.array(marked))


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
    "OutOfReach",
    "Tracked",
    "circle",
    "converged",
    "drags",
    "jumps",
    "out_of_reach",
    "tracked",
]
