"""Section `algorithm2` of `bench ik`: ours beside Algorithm 2 of paper 000, and beside others, on the same targets.

- `algorithm_2`: as printed, gradient descent with line search by automatic differentiation through the whole of
  Algorithm 1, and ICP in turn with it where the pose is free;
- `algorithm_2_compiled`: with the paper's analytic gradient (Eqs. 16-31) on our pipeline: what is left is the method;
- `lm_autograd`: our Levenberg-Marquardt, its derivatives by automatic differentiation (forward mode).

All have our closest points. Targets are shapes that the robot can take and shapes that it cannot: those, stretched, and
for sheets a terrain.
"""

import statistics
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from softform_core.forward.robot_pipeline import SURFACE_POINTS
from softform_core.geometry.rigid import RigidTransform
from softform_core.inverse.ik_options import IkOptions
from softform_core.inverse.inverse import solve_prepared
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.paths import DEFAULT_ROBOT
from softform_core.robots import load_robot
from softform_core.shapes.dem import dem_target
from softform_core.shapes.shape import Shape
from softform_core.threads import one_thread
from softform_studies.ik.autograd_pipeline import AutogradPipeline
from softform_studies.ik.gradient_descent import descend
from softform_studies.ik.ik_prediction import shipped_pipeline
from softform_studies.ik.ik_solver import reachable_targets
from softform_studies.ik.race import RULES, Race, Racer, Timing, race, race_options

TARGETS = 3
"""Random reachable targets by default, each with its pose fixed and free."""

_STRETCHED = np.array([1.0, 1.0, 1.4])
_RAISED_M = np.array([0.0, 0.0, 0.004])

_MOVED = RigidTransform().moved(np.array([0.05, -0.03, 0.08]), np.array([0.01, -0.006, 0.012]), np.zeros(3))


def algorithm2(
    points: int = SURFACE_POINTS, targets: int = TARGETS, robot_name: str = DEFAULT_ROBOT
) -> dict[str, object]:
    """Ours beside Algorithm 2 of the paper, two ways, and LM by autograd, in reach and out of reach."""
    robot = load_robot(robot_name)
    network, _ = load_forward_kinematics(robot)
    pipeline = shipped_pipeline(robot, points)
    autograd = AutogradPipeline(extract_mlp(network), pipeline.uv, pipeline.sim_to_real, robot.patches)
    ours = Racer(solve_prepared, pipeline)
    opponents = {
        "algorithm_2": Racer(descend, autograd),
        "algorithm_2_compiled": Racer(descend, pipeline),
        "lm_autograd": Racer(solve_prepared, autograd),
    }
    fixed, free = race_options(robot, fix_pose=True), race_options(robot, fix_pose=False)
    clouds = [target.cloud for target in reachable_targets(robot, pipeline, targets)]

    def in_reach() -> Iterator[tuple[str, Shape, IkOptions]]:
        for number, cloud in enumerate(clouds):
            yield f"reachable_{number}", cloud, fixed
            yield f"reachable_{number}_moved", cloud.transformed(_MOVED.rotation, _MOVED.translation), free

    def out_of_reach() -> Iterator[tuple[str, Shape, IkOptions]]:
        if not robot.body.goes_around:
            yield "dem", dem_target(robot), fixed
            yield "dem_free", dem_target(robot), free
        for number, cloud in enumerate(clouds):
            yield f"stretched_{number}", Shape.from_cloud(cloud.points * _STRETCHED + _RAISED_M), fixed

    kinds = {"reachable": in_reach, "out_of_reach": out_of_reach}
    with one_thread():
        races = {
            kind: {name: race(ours, opponents, target, options) for name, target, options in drawn()}
            for kind, drawn in kinds.items()
        }
    speedups = {kind: {name: _speedup(of_kind, name) for name in opponents} for kind, of_kind in races.items()}
    return {
        "stop_at_relative_decrease": fixed.relative_decrease,
        "speedup_vs_algorithm2": speedups["reachable"]["algorithm_2"]["equal_error"],
        "speedup_under_the_same_rule": speedups["reachable"]["algorithm_2"]["same_rule"],
        "speedup_vs_strongest": {
            kind: {
                rule: dict([min(((name, of[rule]) for name, of in one.items()), key=lambda pair: pair[1])])
                for rule in RULES
            }
            for kind, one in speedups.items()
        },
        "speedups": speedups,
        "medians": {kind: _medians(list(of_kind.values())) for kind, of_kind in races.items()},
        **{kind: {name: one.figures() for name, one in of_kind.items()} for kind, of_kind in races.items()},
    }


def _speedup(races: Mapping[str, Race], opponent: str) -> dict[str, float]:
    """Return geometric means of the ratios by rule, and the share of targets where the opponent reached equal error.

    Where it did not, its ratio is less than that at equal error.
    """
    found = {rule: statistics.geometric_mean(one.ratio(opponent, rule) for one in races.values()) for rule in RULES}
    reached = [one.opponents[opponent]["equal_error"].reached for one in races.values()]
    return {**found, "reached_equal_error": statistics.fmean(reached)}


def _medians(races: list[Race]) -> dict[str, Any]:
    """Return medians over the targets of a solve's processor time and mean error: ours, and each opponent's by rule."""
    medians: dict[str, Any] = {"ours": _median([one.ours for one in races])}
    for name in races[0].opponents:
        medians[name] = {rule: _median([one.opponents[name][rule] for one in races]) for rule in RULES}
    return medians


def _median(solves: list[Timing]) -> dict[str, float]:
    return {
        "processor_ms_per_solve_p50": statistics.median(solve.solve_ms for solve in solves),
        "mean_error_mm_p50": statistics.median(solve.mean_error_mm for solve in solves),
    }
