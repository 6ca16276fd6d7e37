"""What a demo's run came to: figures for people and for `--json`, a table, a picture. Millimetres and milliseconds."""

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softform_client.reach_messages import pose_from_message
from softform_core.evaluation.errors import distances_to_shape, summarise_errors
from softform_core.evaluation.measured_errors import measure_errors
from softform_core.evaluation.reach_picture import MeasuredShape, write_picture
from softform_core.robots import Robot
from softform_core.shapes.target import TargetShape
from softform_core.units import MM_PER_M, PA_PER_KPA
from softform_interfaces.action import ReachShape
from softform_ros.conversions import points_from_cloud

_REST_SAMPLES_PER_SIDE = 60


@dataclass(frozen=True)
class DemoRun:
    """What the stack answered.

    Attributes:
        simulated: The plan of the simulation alone, moved and measured.
        learned: The plan with sim-to-real, moved and measured; None without a model.
        closed_loop: The closed loop, from the better of both.
    """

    simulated: ReachShape.Result
    learned: ReachShape.Result | None
    closed_loop: ReachShape.Result


@dataclass(frozen=True)
class DemoResult:
    """Figures of a run; `predicted` and `measured` are those of the closed loop's best round.

    `best_fit_mean_mm` is what the closed loop's last plan promised: by the model and all that was measured, no shape of
    the robot is closer to the target.
    """

    target: str
    predicted_mean_mm: float
    predicted_max_mm: float
    measured_mean_mm: float
    measured_max_mm: float
    rest_mean_mm: float
    ik_ms: float
    ik_iterations: int
    report: Path
    bag: Path
    sim_to_real: str
    measured_without_sim_to_real_mean_mm: float
    measured_open_loop_mean_mm: float
    measured_closed_loop_mean_mm: float
    best_fit_mean_mm: float
    rounds: int
    round_mean_mm: list[float]

    def figures(self) -> dict[str, object]:
        """Return what `--json` promises, as JSON takes it."""

        def plain(value: object) -> object:
            if isinstance(value, list):
                return [plain(one) for one in value]
            return str(value) if isinstance(value, Path) else round(value, 4) if isinstance(value, float) else value

        return {field.name: plain(getattr(self, field.name)) for field in fields(self)}


def summarise_run(
    run: DemoRun, name: str, sim_to_real: str, robot: Robot, target: TargetShape, report: Path, bag: Path
) -> DemoResult:
    """The figures of a run.

    Args:
        run: What the stack answered.
        name: Of the target.
        sim_to_real: Name of the model, or `none`.
        robot: Robot that took the shape.
        target: Target shape, m.
        report: Where the picture will be.
        bag: Where the recording is.
    """
    best, open_loop = run.closed_loop, run.learned or run.simulated
    rest = distances_to_shape(resting_surface(robot), _posed(target, best))
    return DemoResult(
        target=name,
        predicted_mean_mm=best.solve.mean_error * MM_PER_M,
        predicted_max_mm=best.solve.max_error * MM_PER_M,
        measured_mean_mm=best.measured.mean_error * MM_PER_M,
        measured_max_mm=best.measured.max_error * MM_PER_M,
        rest_mean_mm=summarise_errors(rest).mean_mm,
        ik_ms=open_loop.solve.solve_time * 1e3,
        ik_iterations=open_loop.solve.iterations,
        report=report,
        bag=bag,
        sim_to_real=sim_to_real,
        measured_without_sim_to_real_mean_mm=run.simulated.measured.mean_error * MM_PER_M,
        measured_open_loop_mean_mm=open_loop.measured.mean_error * MM_PER_M,
        measured_closed_loop_mean_mm=best.measured.mean_error * MM_PER_M,
        best_fit_mean_mm=best.promised_mean_error * MM_PER_M,
        rounds=len(best.round_mean_errors) - 1,
        round_mean_mm=[error * MM_PER_M for error in best.round_mean_errors],
    )


def draw_run(run: DemoRun, figures: DemoResult, robot: Robot, reality: str, target: TargetShape) -> None:
    """Write the picture of a run to `figures.report`.

    Raises:
        SoftformError: If it cannot be written.
    """
    ways = [("simulation alone", run.simulated), ("with sim-to-real", run.learned), ("closed loop", run.closed_loop)]
    shapes = []
    for name, result in ways:
        if result is not None:
            cloud = points_from_cloud(result.measured.shape)
            measured = measure_errors(cloud, target, pose_from_message(result.solve.target_pose))
            shapes.append(MeasuredShape(name, measured.points, measured.errors * MM_PER_M, measured.even))
    posed = _posed(target, run.closed_loop)
    per_row = len({outline.x for outline in robot.body.outlines()})
    kilopascals = [f"{pressure / PA_PER_KPA:.2f}" for pressure in run.closed_loop.actuators.value]
    rows = ["  ".join(kilopascals[i : i + per_row]) for i in range(0, len(kilopascals), per_row)]
    write_picture(
        figures.report,
        posed,
        shapes,
        distances_to_shape(resting_surface(robot), posed),
        figures.round_mean_mm,
        figures.best_fit_mean_mm,
        {
            "target": figures.target,
            "robot": robot.name,
            "reality": reality,
            "sim-to-real": figures.sim_to_real,
            "best fit": f"{figures.best_fit_mean_mm:.2f} mm",
            "IK": f"{figures.ik_ms:.0f} ms, {figures.ik_iterations} iterations",
            "kPa": "\n".join(rows),
        },
    )


def table(figures: DemoResult) -> list[str]:
    """The figures as lines for the terminal."""
    scale = figures.measured_without_sim_to_real_mean_mm - figures.best_fit_mean_mm

    def line(name: str, mean: float) -> str:
        above = f"{(mean - figures.best_fit_mean_mm) / scale:8.0%}" if scale > 0.0 else ""
        share = f"{mean / figures.measured_without_sim_to_real_mean_mm:8.0%}"
        return f"  {name:<34}{mean:6.2f} mm{share}{above}"

    rows = [
        "",
        "  measured mean distance to the target      mean   share   above best fit",
        line("planned by the simulation alone", figures.measured_without_sim_to_real_mean_mm),
    ]
    if figures.sim_to_real != "none":
        rows.append(line("planned with sim-to-real", figures.measured_open_loop_mean_mm))
    rounds = "1 round" if figures.rounds == 1 else f"{figures.rounds} rounds"
    return [
        *rows,
        line(f"closed loop, {rounds}", figures.measured_closed_loop_mean_mm),
        f"  {'best fit of the corrected model':<34}{figures.best_fit_mean_mm:6.2f} mm",
        f"  {'robot at rest, for scale':<34}{figures.rest_mean_mm:6.2f} mm",
        f"  {'inverse kinematics':<34}{figures.ik_ms:6.0f} ms in {figures.ik_iterations} iterations",
    ]


def resting_surface(robot: Robot) -> NDArray[np.float64]:
    """Points of the unpressurised membrane, (n, 3) m."""
    width, length = robot.extent
    x, y = np.meshgrid(
        np.linspace(-width / 2, width / 2, _REST_SAMPLES_PER_SIDE),
        np.linspace(-length / 2, length / 2, _REST_SAMPLES_PER_SIDE),
    )
    return np.stack([x.ravel(), y.ravel(), np.zeros(x.size)], axis=1)


def _posed(target: TargetShape, result: ReachShape.Result) -> TargetShape:
    pose = pose_from_message(result.solve.target_pose)
    return target.transformed(pose.rotation, pose.translation)
