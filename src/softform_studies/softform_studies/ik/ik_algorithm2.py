"""Section `algorithm2` of `bench ik`: ours beside Algorithm 2 of paper 000 on the same targets, in one run.

Algorithm 2 as printed: gradients by automatic differentiation through the whole of Algorithm 1, gradient descent with
line search, and ICP in turn with it where the pose is free. Both have the same trained networks, surface points,
targets and start, and end by the same rule (lambda). As lambda may end a slow descent far from the minimum, Algorithm 2
runs a second time, `patient`: until its error is no larger than ours, or it can get no better. That time against ours
is the speedup; where Algorithm 2 is left with a larger error, the speedup at equal error would be greater.
"""

import statistics
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from softform_core.forward.forward_model import ForwardModel
from softform_core.forward.robot_pipeline import SURFACE_POINTS
from softform_core.inverse.ik_options import IkOptions
from softform_core.inverse.ik_result import IkResult
from softform_core.inverse.inverse import solve_inverse_kinematics
from softform_core.networks.layers import extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.registration.rigid import RigidTransform
from softform_core.robots import load_robot
from softform_core.shapes.dem import dem_target
from softform_core.shapes.target import TargetShape
from softform_core.threads import one_thread
from softform_studies.ik.autograd_pipeline import AutogradPipeline
from softform_studies.ik.gradient_descent import solve_by_algorithm2
from softform_studies.ik.ik_prediction import shipped_pipeline
from softform_studies.ik.ik_solver import from_rest
from softform_studies.ik.ik_targets import reachable_targets

TARGETS = 3
"""Of the random reachable ones, each with its pose fixed and free."""

LIMIT_S = 60.0
"""Of one solve."""

_REPEATS = 5
_PATIENCE = 1e-7

_MOVED = RigidTransform().moved(np.array([0.05, -0.03, 0.08]), np.array([0.01, -0.006, 0.012]), np.zeros(3))


def algorithm2(points: int = SURFACE_POINTS) -> dict[str, object]:
    """Ours beside Algorithm 2 of the paper (autograd, gradient descent, ICP) on the same targets.

    Args:
        points: Surface points of Eq. 15.
    """
    robot = load_robot("membrane")
    network, _ = load_forward_kinematics(robot)
    ours = shipped_pipeline(robot, points)
    theirs = AutogradPipeline(extract_mlp(network), ours.uv, ours.sim_to_real, robot.patch)
    fixed = replace(from_rest(robot), max_iterations=5000, max_seconds=LIMIT_S)

    free = replace(fixed, fix_pose=False)

    def reachable() -> Iterator[tuple[str, TargetShape, IkOptions]]:
        for number, target in enumerate(reachable_targets(robot, ours, TARGETS)):
            moved = target.cloud.transformed(_MOVED.rotation, _MOVED.translation)
            yield f"reachable_{number}", target.cloud, fixed
            yield f"reachable_{number}_moved", moved, free

    terrain = dem_target(robot)
    with one_thread():
        reached = {name: _side_by_side(ours, theirs, target, options) for name, target, options in reachable()}
        afar = {
            name: _side_by_side(ours, theirs, terrain, options)
            for name, options in (("dem", fixed), ("dem_free", free))
        }
    return {
        "stop_at_relative_decrease": fixed.relative_decrease,
        "speedup_vs_algorithm2": _mean_ratio(reached, "patient_time_ratio"),
        "speedup_under_the_same_rule": _mean_ratio(reached, "time_ratio"),
        "reachable": reached,
        "out_of_reach": afar,
    }


def _side_by_side(
    ours: ForwardModel, theirs: ForwardModel, target: TargetShape, options: IkOptions
) -> dict[str, object]:
    best = _median(solve_inverse_kinematics, ours, target, options, _REPEATS)
    ruled = _median(solve_by_algorithm2, theirs, target, options, 1)
    patience = replace(options, relative_decrease=_PATIENCE, tolerance_mm=best.mean_error_mm)
    patient = _median(solve_by_algorithm2, theirs, target, patience, 1)
    return {
        "ours": _figures(best),
        "algorithm_2": _figures(ruled),
        "algorithm_2_patient": _figures(patient),
        "time_ratio": _seconds(ruled) / _seconds(best),
        "patient_time_ratio": _seconds(patient) / _seconds(best),
    }


def _median(
    solve: Callable[[ForwardModel, TargetShape, IkOptions], IkResult],
    model: ForwardModel,
    target: TargetShape,
    options: IkOptions,
    repeats: int,
) -> IkResult:
    """The run of median time, after a short one that warms the caches up."""
    solve(model, target, replace(options, max_iterations=2))
    results = [solve(model, target, options) for _ in range(repeats)]
    return sorted(results, key=_seconds)[repeats // 2]


def _seconds(result: IkResult) -> float:
    return result.prepare_seconds + result.seconds


def _figures(result: IkResult) -> dict[str, object]:
    return {
        "total_ms": _seconds(result) * 1e3,
        "iterations": result.iterations,
        "coarse_iterations": result.coarse_iterations,
        "mean_error_mm": result.mean_error_mm,
        "max_error_mm": result.max_error_mm,
        "objective_mm2": result.objective,
        "termination": result.termination.name.lower(),
    }


def _mean_ratio(targets: dict[str, dict[str, object]], key: str) -> float:
    return statistics.geometric_mean(float(str(figures[key])) for figures in targets.values())
