"""Property run: solves from every corner of the actuation range, for noisy, lagging, partial and far targets.

None may leave the bounds in any iteration. None may end where the merit is larger than where it began, both by the
rules that hold at the end: points that turned out to have no counterpart on the target count neither here nor there.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from softform_core.arrays import Array
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.geometry.rigid import RigidTransform
from softform_core.inverse.closest_points import closest_points_on
from softform_core.inverse.ik_options import IkOptions
from softform_core.inverse.inverse import solve_prepared
from softform_core.robots import load_robot
from softform_core.shapes.shape import Shape
from softform_core.simulation.sampling import corner_actuations
from softform_core.threads import one_thread
from softform_core.units import MM_PER_M

POINTS = 100
TARGETS = 21
"""Number of targets: with the 512 corners of nine chambers, 10 752 solves."""

SEED = 4

_TARGET_POINTS = 900
_NOISE = 0.003
"""Standard deviation of a noisy target's points, m: twenty times that of a scanner."""

_LAG_PART = 0.2
"""Part of its range by which most of an actuation was lower when a lagging target had its shape."""

_SLEW_PART = 0.06
_AFAR = RigidTransform().moved(np.array([0.3, -0.2, 0.5]), np.array([0.2, -0.3, 0.4]), np.zeros(3))


@dataclass
class PropertyCounts:
    """Counts of solves out of bounds in any iteration, and of those that end at a larger merit or no finite error."""

    solves: int = 0
    bounds_violated: int = 0
    diverged: int = 0
    iterations: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Disturbed:
    """A target, what disturbs it, and how it is asked for; `slew_limited`: within a part of the range of the start."""

    kind: str
    shape: Shape
    options: IkOptions
    slew_limited: bool = False


def bounds(targets: int = TARGETS) -> dict[str, object]:
    """Solves from every corner of the actuation range: bounds violated, diverged."""
    robot = load_robot("membrane")
    with one_thread():
        pipeline = load_pipeline(robot, POINTS)
        options = IkOptions(robot.actuation_min, robot.actuation_max, max_iterations=100, max_seconds=60.0)
        corners = list(corner_actuations(robot.actuation_min, robot.actuation_max))
        kinds: dict[str, PropertyCounts] = {}
        begun = time.perf_counter()
        for target in disturbed_targets(pipeline, options, targets, SEED):
            solve_from(corners, pipeline, target, kinds.setdefault(target.kind, PropertyCounts()))
        seconds = time.perf_counter() - begun
    return {
        "points": len(pipeline.uv),
        "corners": len(corners),
        "solves": sum(one.solves for one in kinds.values()),
        "bounds_violated": sum(one.bounds_violated for one in kinds.values()),
        "diverged": sum(one.diverged for one in kinds.values()),
        "seconds": seconds,
        "kinds": {
            kind: {
                "solves": one.solves,
                "bounds_violated": one.bounds_violated,
                "diverged": one.diverged,
                "iterations_p50": float(np.median(one.iterations)),
                "iterations_max": max(one.iterations),
            }
            for kind, one in kinds.items()
        },
    }


def disturbed_targets(pipeline: ForwardPipeline, options: IkOptions, count: int, seed: int) -> Iterator[Disturbed]:
    """Yield targets of every kind in turn, each from another hidden actuation.

    Args:
        pipeline: Forward kinematics of the robot, at any points.
        options: Bounds.
        count: Number of targets.
        seed: Seed of actuations and noise.
    """
    rng = np.random.default_rng(seed)
    fine, faces = pipeline.at(pipeline.patches.samples(_TARGET_POINTS)), pipeline.patches.triangles(_TARGET_POINTS)
    for number in range(count):
        hidden = rng.uniform(options.actuation_min, options.actuation_max)
        points = fine.points(hidden) / MM_PER_M
        mesh = Shape(points, None, faces)
        match number % 7:
            case 0:
                yield Disturbed("exact", mesh, options)
            case 1:
                yield Disturbed("noisy", Shape(points + rng.normal(0.0, _NOISE, points.shape)), options)
            case 2:
                lower = np.maximum(hidden - _LAG_PART * options.range, options.actuation_min)
                lagging = 0.7 * fine.points(lower) / MM_PER_M + 0.3 * points
                yield Disturbed("lagging", Shape(lagging, None, faces), options)
            case 3:
                yield Disturbed("unreachable", Shape(points * [1.0, 1.0, 2.0], None, faces), options)
            case 4:
                part = points[points[:, 0] < 0.05]
                strays = part[::8] + rng.uniform(0.005, 0.05, (len(part[::8]), 3))
                cloud = Shape(np.concatenate([part, strays]))
                yield Disturbed("part with strays", cloud, replace(options, partial=True))
            case 5:
                moved = mesh.transformed(_AFAR.rotation, _AFAR.translation)
                yield Disturbed("moved afar", moved, replace(options, fix_pose=False))
            case _:
                yield Disturbed("slew-limited", mesh, options, slew_limited=True)


def solve_from(starts: list[Array], pipeline: ForwardPipeline, target: Disturbed, counts: PropertyCounts) -> None:
    """Solve for a target from each start (k,), and count what happens."""
    search = closest_points_on(target.shape)
    for start in starts:
        options = replace(target.options, initial_actuation=start)
        if target.slew_limited:
            options = replace(options, previous_actuation=start, most_change=_SLEW_PART * options.range)
        result = solve_prepared(pipeline, search, options)
        low, high = options.bounds()
        seen = np.array([step.actuation for step in result.history] + [result.actuation])
        counts.solves += 1
        counts.bounds_violated += bool((seen < low).any() or (seen > high).any())
        begun = result.problem.evaluate(result.history[0].actuation, options.initial_pose)
        counts.diverged += not (result.merit <= begun.merit and np.isfinite(result.mean_error_mm))
        counts.iterations.append(result.iterations)
