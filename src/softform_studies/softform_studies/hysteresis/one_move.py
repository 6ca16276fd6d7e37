"""`softform bench one-move`: how near a tip is after one move, memory-free and through the state; then in a loop.

Robots of the reality that remembers, each with a past of its own, are sent to places where the tip of the true robot
has been. All ways begin at the same moment of the same robots.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.executors import Executor
from softform_core.robots import Robot, load_robot
from softform_core.units import MM_PER_M
from softform_rig.reality import load_reality
from softform_studies.hysteresis.laboratory import Plan, prepare
from softform_studies.hysteresis.state_ik import LEAST, WAYS, CurveTips, PathModel, Plans, Way, led_on, planned, via
from softform_studies.hysteresis.tasks import Runner, Task
from softform_studies.tendon_robot.approaches import Robots
from softform_studies.tendon_robot.configurations import nominal_configurations
from softform_studies.tendon_robot.execution import path_body

_MOVES = 4
"""Configurations that each robot was led through before."""
ROUNDS = 3

_WORKING = 2
"""Tendons that a configuration pulls at most."""
_TRIALS, _PROBE = 4, 2e-4
"""Of the search for the best fit: rounds, and the way that tells a slope, m."""
_LARGEST_STEP = 0.003  # m of any tendon
_DAMPING = 1.0
"""Of a step: root of the squared error, in mm, that 1 mm of each pull is worth."""

Report = Callable[[str], None]


def one_move(
    path: Path, plan: Plan, robots: int, seed: int, folder: Path, executor: Executor, report: Report
) -> dict[str, Any]:
    """Return errors after one move, what it takes, and errors of the closed loop; JSON-ready.

    Args:
        path: Store of `softform histories`.
        plan: How much is learned from.
        robots: How many, each with a target of its own.
        seed: Of pasts, targets and the noise of what is measured.
        folder: Where what is found in the shapes is kept.
        executor: Fits centre lines.
        report: Called with lines on the way.

    Raises:
        SoftformError: If there are no such shapes, or too few.
    """
    prepared = prepare(path, plan, executor, report, folder)
    runner, shapes = Runner(prepared), prepared.shapes
    ours = Task(("ours",), "ours", most=plan.ours)
    free = Task(("memory_free_curve",), "memory_free_curve", most=plan.ours)
    of_home = Task(("from_home",), "memory_free_curve", most=plan.ours, from_home=True)
    models = {
        one.key[0]: CurveTips.of(runner.lines, runner.curve(one), runner.known(one)) for one in (ours, free, of_home)
    }
    random = np.random.default_rng([seed, 7])
    robot = load_robot(shapes.robot)
    reality = load_reality("printed", robot)
    led, past = _led(robot, Robots(path_body(robot, reality), robot, reality, robots), random)
    judged = prepared.rows("printed")[2]
    targets = shapes.tip[judged[random.integers(len(judged), size=robots)]]
    cases: dict[str, tuple[CurveTips, Sequence[Way]]] = {
        "memory_free": (models["memory_free_curve"], ("straight",)),
        "memory_free_by_home": (models["from_home"], ("by_home",)),
        **{f"state_{way}": (models["ours"], (way,)) for way in WAYS},
        "state": (models["ours"], WAYS),
    }
    found: dict[str, Any] = {"robots": robots, "learned_from": plan.ours}
    for name, (model, ways) in cases.items():
        plans = planned(model, robot, past, targets, ways)
        off = _off(executed(led, plans)[0], targets)
        found[name] = {**_figures(off), "expected_mm": _mean(plans.expected), "seconds": round(_mean(plans.seconds), 1)}
        if len(ways) > 1:
            found[name]["ways"] = {way: plans.ways.count(way) for way in ways}
        report(f"  {name}: {found[name]}")
    found["fall"] = round(1.0 - found["state"]["mean_mm"] / found["memory_free"]["mean_mm"], 3)

    def see(tips: Array) -> Array:
        return tips + MM_PER_M * reality.motion_capture.noise * random.standard_normal(tips.shape)

    loop = closed_loop(models["ours"], robot, led, past, targets, see)
    best = best_fit(led, loop.best, targets / MM_PER_M)
    best = np.minimum(best, loop.errors.min(axis=0))
    found["closed_loop"] = {
        "rounds_mm": [_mean(one) for one in loop.errors],
        "end_mm": _mean(loop.end),
        "best_fit_mm": _mean(best),
        "worse_than_begun": int((loop.end > loop.errors[0] + 2.0 * MM_PER_M * reality.motion_capture.noise).sum()),
        "seconds": round(_mean(loop.seconds), 1),
    }
    report(f"  closed loop: {found['closed_loop']}")
    return found


def _led(robot: Robot, robots: Robots, random: np.random.Generator) -> tuple[Robots, Array]:
    """Lead robots through random configurations; returns them and their paths (n, h, k) m."""
    nominal = nominal_configurations(robot)
    steps = [np.zeros((robots.count, len(robot.actuators)))]
    for _ in range(_MOVES):
        steps.append(nominal[random.integers(len(nominal), size=robots.count)])
        robots.go(steps[-1])
    return robots, np.stack(steps, axis=1)


def executed(robots: Robots, plans: Plans) -> tuple[Array, Robots]:
    """Execute plans from where robots are; returns the true tips (n, 3) mm and the robots there. These stay."""
    tips, after = np.zeros((robots.count, 3)), robots.of(np.arange(robots.count))
    after.state = after.state.part(np.arange(robots.count))  # of its own, to be written into
    after.unknowns, after.at = after.unknowns.copy(), after.at.copy()
    for way in dict.fromkeys(plans.ways):
        rows = np.flatnonzero([one == way for one in plans.ways])
        some, asked = robots.of(rows), plans.configurations[rows]
        between = via(robots.robot, way, some.at, asked)
        if between is not None:
            some.go(between)
        tips[rows] = MM_PER_M * some.go(asked)
        after.unknowns[rows], after.at[rows] = some.unknowns, some.at
        after.state.put(rows, some.state)
    return tips, after


@dataclass(frozen=True, eq=False)
class Loop:
    """A closed loop of n robots.

    Attributes:
        errors: (rounds + 1, n) mm, true, after the plan and after each correction.
        end: (n,) mm, true, where the robots are left.
        best: (n, k) m, its configurations.
        seconds: (n,) that all of it took.
    """

    errors: Array
    end: Array
    best: Array
    seconds: Array


def closed_loop(
    model: PathModel, robot: Robot, robots: Robots, past: Array, targets: Array, see: Callable[[Array], Array],
    rounds: int = ROUNDS,
) -> Loop:  # fmt: skip
    """Plan, measure, and correct what is foretold by what is missing; each round comes by way of home, as the first.

    So each finds the same body. Whoever was measured to be worse in the end than after the plan goes back to the best,
    the same way; others stay, for what was measured does not come again just as it came.
    """
    ways: tuple[Way, ...] = ("by_home",)
    off: list[Array] = []
    seen: list[Array] = []
    asked: list[Array] = []
    offset, spent = np.zeros_like(targets), np.zeros(len(targets))
    for _ in range(rounds + 1):
        # what is missing was learned about here: elsewhere it says nothing
        plans = planned(model, robot, past, targets - offset, ways, near=asked[-1] if asked else None)
        foretold = model.tips(led_on(robot, past, "by_home", plans.configurations))
        tips, robots = executed(robots, plans)
        past = led_on(robot, past, "by_home", plans.configurations)
        measured = see(tips)
        offset = measured - foretold
        off.append(_off(tips, targets))
        seen.append(_off(measured, targets))
        asked.append(plans.configurations)
        spent += plans.seconds
    each = np.arange(len(targets))
    chosen = np.array(seen).argmin(axis=0)
    best, end = np.array(asked)[chosen, each], off[-1].copy()
    back = np.flatnonzero(seen[-1] > seen[0])
    if back.size:
        plans = Plans(["by_home"] * len(back), best[back], end[back], spent[back])
        end[back] = _off(executed(robots.of(back), plans)[0], targets[back])
        spent[back] += spent[back] / (rounds + 1)
    return Loop(np.array(off), end, best, spent)


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
        at = _nearer(robots.robot, at, working, slopes, targets - tips[0])
    return least


def _nearer(robot: Robot, configurations: Array, working: NDArray[np.bool_], slopes: Array, missing: Array) -> Array:
    """Return configurations (n, k) m by which the tips would move by `missing` (n, 3) m, only `working` ones changed.

    One damped step of Gauss and Newton with the slopes (n, 3, k) of the tips. A tendon whose range ends stays there,
    and the others make of it what they can.
    """
    asked = configurations + _step(slopes, working, missing)
    ends = np.where(working & ((asked > robot.actuator_max) | (asked < LEAST)), asked, configurations)
    held = np.clip(ends, LEAST, robot.actuator_max) - configurations
    is_free = working & (ends == configurations)
    left = missing - (slopes @ np.where(is_free, 0.0, held * working)[..., None])[..., 0]
    step = np.where(is_free, _step(slopes, is_free, left), held)
    step *= np.minimum(1.0, _LARGEST_STEP / np.maximum(np.abs(step * working).max(axis=1, keepdims=True), 1e-12))
    return np.where(working, np.clip(configurations + step, LEAST, robot.actuator_max), 0.0)


def _step(slopes: Array, working: NDArray[np.bool_], missing: Array) -> Array:
    slopes = slopes * working[:, None, :]
    square = slopes.swapaxes(1, 2) @ slopes + _DAMPING**2 * np.eye(working.shape[1])
    return np.asarray(np.linalg.solve(square, slopes.swapaxes(1, 2) @ missing[..., None])[..., 0])


def _off(tips: Array, targets: Array) -> Array:
    return np.asarray(np.linalg.norm(tips - targets, axis=1))


def _mean(values: Array) -> float:
    return round(float(np.mean(values)), 3)


def _figures(off: Array) -> dict[str, Any]:
    return {"mean_mm": _mean(off), "median_mm": round(float(np.median(off)), 3)}
