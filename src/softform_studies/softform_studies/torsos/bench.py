"""Table III: inverse kinematics of the mannequin to torsos, pose free, from rest; ours beside Algorithm 2."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.robot_pipeline import SURFACE_POINTS, load_pipeline
from softform_core.inverse.closest_points import closest_points_on
from softform_core.inverse.inverse import solve_prepared
from softform_core.inverse.out_of_reach import largest_deformation
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.paths import models_of
from softform_core.robots import Robot
from softform_core.threads import one_thread
from softform_core.units import MM_PER_M
from softform_studies.ik.autograd_pipeline import AutogradPipeline
from softform_studies.ik.gradient_descent import descend
from softform_studies.ik.ik_prediction import SHIPPED, shipped_pipeline
from softform_studies.ik.ik_solver import best_error_mm
from softform_studies.ik.race import REPEATS, RULES, Race, Racer, Timing, race, race_options
from softform_studies.torsos.targets import TorsoTarget

ALGORITHM_2 = "algorithm_2"


@dataclass(frozen=True)
class Case:
    """One torso.

    Attributes:
        target: The torso.
        rest_error_mm: Mean error of the resting robot, with the pose that fits it best.
        race: Ours beside Algorithm 2.
        best_error_mm: Least mean error known.
    """

    target: TorsoTarget
    rest_error_mm: float
    race: Race
    best_error_mm: float

    def figures(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            "of_the_mannequins_size": self.target.fits,
            "stature_m": self.target.stature,
            "girths_life_size_mm": [round(2.0 * MM_PER_M * one) for one in self.target.girths],
            "rest_mean_error_mm": self.rest_error_mm,
            "best_mean_error_mm": self.best_error_mm,
            **self.race.figures(),
        }


def torso_pipeline(robot: Robot) -> ForwardPipeline:
    """Return the mannequin's pipeline, with the virtual rig's shipped sim-to-real model if the robot has one."""
    if (models_of(robot.name) / SHIPPED).is_dir():
        return shipped_pipeline(robot)
    return load_pipeline(robot, SURFACE_POINTS)


def compare(
    robot: Robot,
    pipeline: ForwardPipeline,
    targets: Sequence[TorsoTarget],
    report: Callable[[str], None],
    starts: int,
    repeats: int = REPEATS,
) -> list[Case]:
    """Solve for each target.

    Args:
        robot: The mannequin.
        pipeline: Its forward kinematics.
        targets: Torsos.
        report: Called with a line for each target.
        starts: Number of starts of the search for the least error.
        repeats: Runs of our solve; that of median time counts.
    """
    network, _ = load_forward_kinematics(robot)
    autograd = AutogradPipeline(extract_mlp(network), pipeline.uv, pipeline.sim_to_real, robot.patches)
    options, cases = race_options(robot, fix_pose=False), []
    rest = options.start()
    ours, opponents = Racer(solve_prepared, pipeline), {ALGORITHM_2: Racer(descend, autograd)}
    with one_thread():
        for target in targets:
            search = closest_points_on(target.shape)
            resting = solve_prepared(pipeline, search, replace(options, actuation_min=rest, actuation_max=rest))
            run = race(ours, opponents, target.shape, options, repeats)
            again = replace(options, initial_pose=run.found.pose)
            solves = (run.ours, *run.opponents[ALGORITHM_2].values())
            best = min(
                best_error_mm(robot, pipeline, run.found.actuation, search, again, starts),
                *(one.mean_error_mm for one in solves),
            )
            cases.append(Case(target, resting.mean_error_mm, run, best))
            report(f"{target.name}: {resting.mean_error_mm:.2f} -> {run.ours.mean_error_mm:.2f} mm")
    return cases


def deformation_mm(robot: Robot, pipeline: ForwardPipeline) -> float:
    """Return the largest mean distance between two of its shapes: what errors are to be seen beside."""
    return largest_deformation(pipeline.points, robot.actuation_min, robot.actuation_max)


class PrintedRow(NamedTuple):
    """A target of Table III of paper 000; times are means over the iterations."""

    target: str
    forward_ms: float
    gradient_ms: float
    icp_ms: float
    total_ms: float
    iterations: int


TABLE_3 = (
    PrintedRow("M1", 65.8, 137.7, 171.0, 374.5, 10),
    PrintedRow("M2", 75.7, 139.6, 174.3, 389.6, 22),
    PrintedRow("M3", 83.5, 118.8, 175.2, 377.5, 19),
    PrintedRow("M4", 69.9, 120.6, 213.8, 404.3, 15),
    PrintedRow("S1", 65.1, 131.1, 210.7, 406.9, 13),
    PrintedRow("S2", 74.8, 133.8, 180.3, 388.9, 25),
    PrintedRow("S3", 75.1, 125.3, 193.4, 393.8, 12),
    PrintedRow("S4", 80.1, 125.8, 186.7, 392.6, 17),
    PrintedRow("S5", 68.3, 139.3, 179.2, 386.8, 14),
    PrintedRow("S6", 73.5, 122.4, 178.5, 374.4, 19),
)
"""Table III as printed, by C++ with libTorch on an Intel i7-12700H; its bodies are of the CAESAR survey."""


def printed_means() -> dict[str, float]:
    """Return means of the columns, and of the time of a solve: iterations times the time of one, ms."""
    count = len(TABLE_3)
    means = {
        key: sum(float(getattr(row, key)) for row in TABLE_3) / count
        for key in ("forward_ms", "gradient_ms", "icp_ms", "total_ms", "iterations")
    }
    return means | {"solve_ms": sum(row.total_ms * row.iterations for row in TABLE_3) / count}


_COLUMNS = ("forward_ms", "gradient_ms", "closest_ms", "rest_ms", "total_ms", "iterations", "solve_ms")


def figures_of(cases: Sequence[Case], largest_deformation_mm: float, sim_to_real: bool) -> dict[str, Any]:
    """Return figures of all targets, their means, and the paper's."""

    def mean(timings: list[Timing]) -> dict[str, float]:
        return {column: statistics.fmean(getattr(one, column) for one in timings) for column in _COLUMNS}

    return {
        "with_sim_to_real": sim_to_real,
        "largest_deformation_mm": largest_deformation_mm,
        "paper_table_3": {"rows": [row._asdict() for row in TABLE_3], "mean": printed_means()},
        "mean": {
            "ours": mean([case.race.ours for case in cases]),
            ALGORITHM_2: {rule: mean([case.race.opponents[ALGORITHM_2][rule] for case in cases]) for rule in RULES},
        },
        "solve_time_ratio_at_equal_error": statistics.geometric_mean(
            case.race.ratio(ALGORITHM_2, "equal_error") for case in cases
        ),
        "targets": {case.target.name: case.figures() for case in cases},
    }
