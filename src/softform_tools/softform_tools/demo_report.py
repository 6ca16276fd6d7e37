"""Results of a demo: figures for people and for `--json`, a table, a picture. Millimetres and milliseconds."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from softform_core.evaluation.measured_errors import MeasuredErrors, measure_errors, resting_surface
from softform_core.evaluation.reach_picture import write_picture
from softform_core.forward.robot_models import NONE
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.geometry.rigid import RigidTransform
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M
from softform_interfaces.action import ReachShape
from softform_rig.best_fit import BestFit, Fit
from softform_ros.conversions import points_from_cloud

_REST_SAMPLES = 3600

_MOST_COLUMNS = 3
"""Most values beside each other in the picture."""


@dataclass(frozen=True)
class DemoRun:
    """Answers of the stack.

    Attributes:
        simulated: The plan of the simulation alone, moved and measured.
        learned: The plan with sim-to-real, moved and measured; None without a model.
        closed_loop: The closed loop, from the better of both; None if it was not finished.
        target: Target shape at its pose in the robot's frame, m.
        pose: Description of how that pose was chosen.
        ended: Reason why the run ended early; None if all ways were finished.
    """

    simulated: ReachShape.Result
    learned: ReachShape.Result | None
    closed_loop: ReachShape.Result | None
    target: Shape
    pose: str
    ended: BaseException | None = None

    @property
    def last(self) -> ReachShape.Result:
        """The way that was finished last."""
        return self.closed_loop or self.learned or self.simulated

    @property
    def best_plan(self) -> ReachShape.Result:
        """The better one measured of the plans that no loop corrected."""
        return min(filter(None, (self.simulated, self.learned)), key=lambda one: one.measured.mean_error)

    def tried(self, robot: Robot) -> list[Fit]:
        """Return measurements of each way of planning."""
        return [
            Fit(
                one.measured.mean_error * MM_PER_M,
                one.measured.max_error * MM_PER_M,
                robot.actuation_of(np.asarray(one.actuators.value)),
            )
            for one in (self.simulated, self.learned, self.closed_loop)
            if one is not None
        ]


@dataclass(frozen=True)
class DemoResult:
    """Figures of a run; `predicted` and `measured` are of the last way, of the closed loop those of its best round.

    `best_fit_mean_mm` is the least that the reality's true physics allows (`softform_rig.best_fit`): it is
    never worse than what was measured. It is None while it was not searched for, as is what was not measured.
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
    measured_open_loop_mean_mm: float | None
    measured_closed_loop_mean_mm: float | None
    best_fit_mean_mm: float | None
    best_fit_agreement: str
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
    run: DemoRun, best_fit: BestFit | None, name: str, sim_to_real: str, robot: Robot, report: Path, bag: Path
) -> DemoResult:
    """Return the figures of a run.

    Args:
        run: Results of the stack.
        best_fit: The closest that the reality allows; None if it is not known.
        name: Name of the target.
        sim_to_real: Name of the model, or `none`.
        robot: Robot that took the shape.
        report: Path of the picture.
        bag: Path of the recording.
    """
    best, loop, planned = run.last, run.closed_loop, run.learned or run.simulated
    open_loop = planned if run.learned is not None or sim_to_real == NONE else None
    rounds = [] if loop is None else [error * MM_PER_M for error in loop.round_mean_errors]
    return DemoResult(
        target=name,
        predicted_mean_mm=best.solve.mean_error * MM_PER_M,
        predicted_max_mm=best.solve.max_error * MM_PER_M,
        measured_mean_mm=best.measured.mean_error * MM_PER_M,
        measured_max_mm=best.measured.max_error * MM_PER_M,
        rest_mean_mm=resting_errors(robot, run.target).mean * MM_PER_M,
        ik_ms=planned.solve.solve_time * 1e3,
        ik_iterations=planned.solve.iterations,
        report=report,
        bag=bag,
        sim_to_real=sim_to_real,
        measured_without_sim_to_real_mean_mm=run.simulated.measured.mean_error * MM_PER_M,
        measured_open_loop_mean_mm=None if open_loop is None else open_loop.measured.mean_error * MM_PER_M,
        measured_closed_loop_mean_mm=None if loop is None else loop.measured.mean_error * MM_PER_M,
        best_fit_mean_mm=None if best_fit is None else best_fit.mean_mm,
        best_fit_agreement="" if best_fit is None else best_fit.agreement,
        rounds=max(0, len(rounds) - 1),
        round_mean_mm=rounds,
        pose=run.pose,
    )


def draw_run(run: DemoRun, figures: DemoResult, robot: Robot, reality: str) -> None:
    """Write the picture of a run to `figures.report`.

    Raises:
        SoftformError: If it cannot be written.
    """
    ways = [("simulation alone", run.simulated), ("with sim-to-real", run.learned), ("closed loop", run.closed_loop)]
    reached, rest_surface = {}, resting_surface(load_pipeline(robot, _REST_SAMPLES), robot)
    for name, result in ways:
        if result is not None:
            cloud = points_from_cloud(result.measured.shape)
            reached[name] = measure_errors(cloud, run.target, RigidTransform(), rest_surface)
    rest = measure_errors(rest_surface.shape.points, run.target, RigidTransform(), rest_surface)
    write_picture(
        figures.report,
        run.target,
        reached,
        rest.errors[rest.even] * MM_PER_M,
        figures.round_mean_mm,
        figures.best_fit_mean_mm,
        {
            "target": figures.target,
            "pose": run.pose.replace(": ", "\n").replace(" mm, ", " mm\n"),
            "robot": robot.name,
            "reality": reality,
            "sim-to-real": figures.sim_to_real,
            "best fit": "–" if figures.best_fit_mean_mm is None else f"{figures.best_fit_mean_mm:.2f} mm",
            "IK": f"{figures.ik_ms:.0f} ms, {figures.ik_iterations} iterations",
            robot.unit: values_in_rows(robot, run.last.actuators.value),
        },
        rest_surface.shape,
    )


def values_in_rows(robot: Robot, values: Sequence[float]) -> str:
    """Return named actuator values (k,) in the robot's unit, in as many columns as its drawing has, if they fit."""
    columns = min(len({outline.x for outline in robot.body.outlines()}), _MOST_COLUMNS)
    words = [f"{value:.0f}" if abs(value) >= 1000.0 else f"{value:.4g}" for value in values]
    wide, long = (max(map(len, each)) for each in (robot.actuators, words))
    cells = [f"{name:<{wide}} {word:>{long}}" for name, word in zip(robot.actuators, words, strict=True)]
    return "\n".join("  ".join(cells[i : i + columns]) for i in range(0, len(cells), columns))


def table(figures: DemoResult) -> list[str]:
    """Return the figures as lines for the terminal."""
    of_simulation, best_fit = figures.measured_without_sim_to_real_mean_mm, figures.best_fit_mean_mm

    def line(name: str, mean: float) -> str:
        above = ""
        if best_fit is not None and of_simulation > best_fit:
            above = f"{(mean - best_fit) / (of_simulation - best_fit):8.0%}"
        return f"  {name:<34}{mean:6.2f} mm{mean / of_simulation:8.0%}{above}"

    rows = [
        "",
        f"  measured mean distance to the target      mean   share{'' if best_fit is None else '   above best fit'}",
        line("planned by the simulation alone", of_simulation),
    ]
    if figures.measured_open_loop_mean_mm is not None and figures.sim_to_real != NONE:
        rows.append(line("planned with sim-to-real", figures.measured_open_loop_mean_mm))
    if figures.measured_closed_loop_mean_mm is not None:
        rounds = "1 round" if figures.rounds == 1 else f"{figures.rounds} rounds"
        rows.append(line(f"closed loop, {rounds}", figures.measured_closed_loop_mean_mm))
    if best_fit is not None:
        rows.append(f"  {'best fit of the true robot':<34}{best_fit:6.2f} mm; {figures.best_fit_agreement}")
    return [
        *rows,
        f"  {'the model at rest, for scale':<34}{figures.rest_mean_mm:6.2f} mm",
        f"  {'inverse kinematics':<34}{figures.ik_ms:6.0f} ms in {figures.ik_iterations} iterations",
    ]


def resting_errors(robot: Robot, target: Shape) -> MeasuredErrors:
    """Return errors of the robot at rest, by N_fk, where the target is (robot's frame, m), as of a capture.

    Raises:
        SoftformError: If the target lies nowhere over the robot, or the robot's model is missing.
    """
    rest = resting_surface(load_pipeline(robot, _REST_SAMPLES), robot)
    return measure_errors(rest.shape.points, target, RigidTransform(), rest)
