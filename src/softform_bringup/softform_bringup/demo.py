"""The main job, once: launch the stack, reach a target through the action, verify by scan, report."""

import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softform_bringup.launched_stack import LaunchedStack
from softform_bringup.run_folder import new_run_folder
from softform_bringup.stack_state import wait_until_active
from softform_core.errors import SoftformError
from softform_core.evaluation.errors import distances_to_shape, summarise_errors
from softform_core.evaluation.report import write_report
from softform_core.paths import reality_file
from softform_core.registration.rigid import RigidTransform
from softform_core.robots import Robot, load_robot
from softform_core.shapes.dem import dem_target
from softform_core.shapes.random import random_target
from softform_core.shapes.read import read_shape
from softform_core.shapes.target import TargetShape
from softform_core.shapes.validate import check_target
from softform_core.units import MM_PER_M, PA_PER_KPA
from softform_ik.client import Mode, ShapeClient
from softform_ik.measured_errors import measure_errors
from softform_ik.messages import pose_from_message
from softform_interfaces.action import ReachShape
from softform_ros.conversions import points_from_cloud

START_TIMEOUT = 60.0
"""Seconds that the stack may take to come up; it takes about ten on two cores."""

_HIGHEST_ROS_DOMAIN = 101
_REST_SAMPLES_PER_SIDE = 60

Say = Callable[[str], None]


@dataclass(frozen=True)
class DemoRequest:
    """What to show.

    Attributes:
        target: `dem`, `random`, or the path of a mesh or cloud.
        unit: Unit of the file, `m` or `mm`; None for the others.
        robot: Name or description of the robot.
        reality: Name or description of the virtual rig's reality.
        seed: Of a random target and of the scanner's noise.
    """

    target: str
    unit: str | None
    robot: str
    reality: str
    seed: int


@dataclass(frozen=True)
class DemoResult:
    """Figures of a run; millimetres and milliseconds, for people. `gap_mean_mm` is scan to predicted surface."""

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
    gap_mean_mm: float

    def figures(self) -> dict[str, object]:
        """Return what `--json` promises, as JSON takes it."""
        return {
            name: str(value) if isinstance(value, Path) else (round(value, 4) if isinstance(value, float) else value)
            for name, value in vars(self).items()
            if name != "gap_mean_mm"
        }


def choose_target(request: DemoRequest, robot: Robot) -> TargetShape:
    """Return the target that `request` names, checked against the robot.

    Raises:
        SoftformError: If it cannot be read, has no unit, or is not a shape for this robot.
    """
    if request.target == "dem":
        target = dem_target(robot)
    elif request.target == "random":
        target = random_target(robot, request.seed)
    elif not Path(request.target).exists():
        raise SoftformError(f"There is no file {request.target}.", "Give the path of a shape, or dem, or random.")
    elif request.unit is None:
        raise SoftformError(
            f"The unit of {request.target} is not known: mesh files do not state one.", "Add --unit mm or --unit m."
        )
    else:
        target = read_shape(request.target, request.unit)
    check_target(target.points, robot)
    return target


def resting_surface(robot: Robot) -> NDArray[np.float64]:
    """Return points of the unpressurised membrane, (n, 3) m."""
    width, length = robot.extent
    x, y = np.meshgrid(
        np.linspace(-width / 2, width / 2, _REST_SAMPLES_PER_SIDE),
        np.linspace(-length / 2, length / 2, _REST_SAMPLES_PER_SIDE),
    )
    return np.stack([x.ravel(), y.ravel(), np.zeros(x.size)], axis=1)


def run_demo(request: DemoRequest, say: Say) -> DemoResult:
    """Launch the stack, reach the target (plan, move and verify), write the report, and take the stack down.

    Args:
        request: What to show.
        say: Takes one line of progress at a time.

    Raises:
        SoftformError: If the target, a node or the motion fails; the folder of the run keeps the logs and the bag.
    """
    robot = load_robot(request.robot)
    reality_file(request.reality)
    target = choose_target(request, robot)
    folder = new_run_folder("demo")
    bag = folder / "bag"
    started = time.monotonic()

    def tell(line: str) -> None:
        say(f"[{time.monotonic() - started:5.1f} s] {line}")

    # A domain of its own: a demo must not reach, or be reached by, another stack on this machine.
    os.environ["ROS_DOMAIN_ID"] = str(random.SystemRandom().randint(1, _HIGHEST_ROS_DOMAIN))
    arguments = {
        "robot": request.robot,
        "reality": request.reality,
        "seed": str(request.seed),
        "run_dir": str(folder),
        "record": "true",
        "bag": str(bag),
    }
    tell(f"launching the stack; its log is {folder / 'launch.log'}")
    with (folder / "launch.log").open("wb") as log, LaunchedStack("softform", arguments, output=log) as stack:
        try:
            wait_until_active("softform", START_TIMEOUT, lambda: stack.exit_code is not None)
            tell(f"all nodes are active; sending the target '{request.target}'")
            with ShapeClient("/softform") as client:
                result = client.reach(target, Mode.PLAN_MOVE_AND_VERIFY, on_feedback=_StageTeller(tell))
        except SoftformError as error:
            raise SoftformError(str(error), f"See {folder / 'launch.log'}.") from error
        tell("taking the stack down")
    figures = _report(request, robot, target, result, folder, bag)
    tell(f"report: {figures.report}")
    tell(f"bag:    {bag}")
    for line in _table(figures):
        say(line)
    return figures


class _StageTeller:
    """Tells each stage of the action once."""

    def __init__(self, tell: Say) -> None:
        self._tell = tell
        self._stage = ""

    def __call__(self, feedback: ReachShape.Feedback) -> None:
        if feedback.stage != self._stage:
            self._stage = feedback.stage
            self._tell(f"{feedback.stage} (predicted mean error {feedback.mean_error * MM_PER_M:.2f} mm)")


def _report(
    request: DemoRequest, robot: Robot, target: TargetShape, result: ReachShape.Result, folder: Path, bag: Path
) -> DemoResult:
    pose: RigidTransform = pose_from_message(result.target_pose)
    posed = target.transformed(pose.rotation, pose.translation)
    predicted = points_from_cloud(result.predicted_shape)
    predicted_errors = distances_to_shape(predicted, posed)
    measured = measure_errors(points_from_cloud(result.measured_shape), target, pose)
    rest_errors = distances_to_shape(resting_surface(robot), posed)
    gap = distances_to_shape(measured.points, TargetShape.from_cloud(predicted))
    figures = DemoResult(
        target=request.target,
        predicted_mean_mm=result.predicted_mean_error * MM_PER_M,
        predicted_max_mm=result.predicted_max_error * MM_PER_M,
        measured_mean_mm=result.measured_mean_error * MM_PER_M,
        measured_max_mm=result.measured_max_error * MM_PER_M,
        rest_mean_mm=summarise_errors(rest_errors).mean_mm,
        ik_ms=result.solve_time * 1e3,
        ik_iterations=result.iterations,
        report=folder / "report.png",
        bag=bag,
        gap_mean_mm=summarise_errors(gap).mean_mm,
    )
    per_row = robot.membrane.columns
    kilopascals = [f"{pressure / PA_PER_KPA:.2f}" for pressure in result.pressures]
    pressures = "\n".join("  ".join(kilopascals[i : i + per_row]) for i in range(0, len(kilopascals), per_row))
    write_report(
        figures.report,
        posed,
        predicted,
        predicted_errors,
        measured.points,
        measured.errors * MM_PER_M,
        rest_errors,
        [error * MM_PER_M for error in result.error_history],
        {
            "target": request.target,
            "robot, reality": f"{robot.name}, {request.reality}",
            "pressures (kPa)": pressures,
            "inverse kinematics": f"{figures.ik_ms:.0f} ms, {figures.ik_iterations} iterations",
            "reality gap": f"{figures.gap_mean_mm:.2f} mm, scan to predicted surface",
        },
    )
    return figures


def _table(figures: DemoResult) -> list[str]:
    return [
        "",
        "  distance to the target       mean       max",
        f"  predicted by the model   {figures.predicted_mean_mm:6.2f} mm {figures.predicted_max_mm:6.2f} mm",
        f"  measured by the scanner  {figures.measured_mean_mm:6.2f} mm {figures.measured_max_mm:6.2f} mm",
        f"  robot at rest, for scale {figures.rest_mean_mm:6.2f} mm",
        f"  reality gap              {figures.gap_mean_mm:6.2f} mm   scan to predicted surface: sim-to-real's part",
        f"  inverse kinematics       {figures.ik_ms:6.0f} ms in {figures.ik_iterations} iterations",
    ]
