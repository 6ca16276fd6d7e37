"""Results of a demo: figures for people and for `--json`, a table, a picture. Millimetres and milliseconds."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from softform_core.evaluation.measured_errors import MeasuredErrors, measure_errors
from softform_core.evaluation.reach_picture import MeasuredShape, write_picture
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.geometry.rigid import RigidTransform
from softform_core.robots import Robot
from softform_core.shapes.target import TargetShape
from softform_core.units import MM_PER_M
from softform_interfaces.action import ReachShape
from softform_ros.conversions import points_from_cloud

_REST_SAMPLES = 3600

_MOST_COLUMNS = 5
"""Values beside each other in the picture."""


@dataclass(frozen=True)
class DemoRun:
    """What the stack answered.

    Attributes:
        simulated: The plan of the simulation alone, moved and measured.
        learned: The plan with sim-to-real, moved and measured; None without a model.
        closed_loop: The closed loop, from the better of both.
        target: Target shape at its pose in the robot's frame, m.
        pose: Description of how that pose was chosen.
    """

    simulated: ReachShape.Result
    learned: ReachShape.Result | None
    closed_loop: ReachShape.Result
    target: TargetShape
    pose: str


@dataclass(frozen=True)
class DemoResult:
    """Figures of a run; `predicted` and `measured` are those of the closed loop's best round.

    `best_fit_mean_mm` is the least that the reality's true physics allows (`softform_rig.best_fit`): no model and no
    loop had a part in it.
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
    pose: str

    def figures(self) -> dict[str, object]:
        """Return what `--json` promises, as JSON takes it."""

        def plain(value: object) -> object:
            if isinstance(value, list):
                return [plain(one) for one in value]
            return str(value) if isinstance(value, Path) else round(value, 4) if isinstance(value, float) else value

        return {field.name: plain(getattr(self, field.name)) for field in fields(self)}


def summarise_run(
    run: DemoRun, best_fit_mm: float, name: str, sim_to_real: str, robot: Robot, report: Path, bag: Path
) -> DemoResult:
    """The figures of a run.

    Args:
        run: Results of the stack.
        best_fit_mm: The least mean error that the reality allows.
        name: Name of the target.
        sim_to_real: Name of the model, or `none`.
        robot: Robot that took the shape.
        report: Path of the picture.
        bag: Path of the recording.
    """
    best, open_loop = run.closed_loop, run.learned or run.simulated
    return DemoResult(
        target=name,
        predicted_mean_mm=best.solve.mean_error * MM_PER_M,
        predicted_max_mm=best.solve.max_error * MM_PER_M,
        measured_mean_mm=best.measured.mean_error * MM_PER_M,
        measured_max_mm=best.measured.max_error * MM_PER_M,
        rest_mean_mm=resting_errors(robot, run.target).mean * MM_PER_M,
        ik_ms=open_loop.solve.solve_time * 1e3,
        ik_iterations=open_loop.solve.iterations,
        report=report,
        bag=bag,
        sim_to_real=sim_to_real,
        measured_without_sim_to_real_mean_mm=run.simulated.measured.mean_error * MM_PER_M,
        measured_open_loop_mean_mm=open_loop.measured.mean_error * MM_PER_M,
        measured_closed_loop_mean_mm=best.measured.mean_error * MM_PER_M,
        best_fit_mean_mm=best_fit_mm,
        rounds=len(best.round_mean_errors) - 1,
        round_mean_mm=[error * MM_PER_M for error in best.round_mean_errors],
        pose=run.pose,
    )


def draw_run(run: DemoRun, figures: DemoResult, robot: Robot, reality: str) -> None:
    """Write the picture of a run to `figures.report`.

    Raises:
        SoftformError: If it cannot be written.
    """
    ways = [("simulation alone", run.simulated), ("with sim-to-real", run.learned), ("closed loop", run.closed_loop)]
    shapes = []
    for name, result in ways:
        if result is not None:
            cloud = points_from_cloud(result.measured.shape)
            measured = measure_errors(cloud, run.target, RigidTransform())
            shapes.append(MeasuredShape(name, measured.points, measured.errors * MM_PER_M, measured.even))
    rest = resting_errors(robot, run.target)
    write_picture(
        figures.report,
        run.target,
        shapes,
        rest.errors[rest.even] * MM_PER_M,
        figures.round_mean_mm,
        figures.best_fit_mean_mm,
        {
            "target": figures.target,
            "pose": run.pose.replace(": ", "\n").replace(" mm, ", " mm\n"),
            "robot": robot.name,
            "reality": reality,
            "sim-to-real": figures.sim_to_real,
            "best fit": f"{figures.best_fit_mean_mm:.2f} mm",
            "IK": f"{figures.ik_ms:.0f} ms, {figures.ik_iterations} iterations",
            robot.unit: values_in_rows(robot, run.closed_loop.actuators.value),
        },
        robot.extent,
    )


def values_in_rows(robot: Robot, values: Sequence[float]) -> str:
    """Actuator values (k,) in the robot's unit, in as many columns as the drawing of its body has, if they fit."""
    columns = min(len({outline.x for outline in robot.body.outlines()}), _MOST_COLUMNS)
    words = [f"{value:.0f}" if abs(value) >= 1000.0 else f"{value:.4g}" for value in values]
    return "\n".join("  ".join(words[i : i + columns]) for i in range(0, len(words), columns))


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
        f"  {'best fit of the true robot':<34}{figures.best_fit_mean_mm:6.2f} mm",
        f"  {'robot at rest, for scale':<34}{figures.rest_mean_mm:6.2f} mm",
        f"  {'inverse kinematics':<34}{figures.ik_ms:6.0f} ms in {figures.ik_iterations} iterations",
    ]


def resting_errors(robot: Robot, target: TargetShape) -> MeasuredErrors:
    """Errors of the robot at rest, as N_fk predicts it, where the target is (robot's frame, m), as those of a capture.

    Raises:
        SoftformError: If the target lies nowhere over the robot, or the robot's model is missing.
    """
    points = load_pipeline(robot, _REST_SAMPLES).points(robot.rest_actuation) / MM_PER_M
    return measure_errors(points, target, RigidTransform())
