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
from softform_core.errors import SoftformError
from softform_core.evaluation.errors import distances_to_shape, summarise_errors
from softform_core.evaluation.report import write_report
from softform_core.paths import reality_file
from softform_core.robots import Robot, load_robot
from softform_core.shapes.dem import dem_target
from softform_core.shapes.random import random_target
from softform_core.shapes.read import read_shape
from softform_core.shapes.target import TargetShape
from softform_core.shapes.validate import check_target
from softform_core.units import MM_PER_M

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
    """Figures of a run; millimetres and milliseconds, for people."""

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

    def figures(self) -> dict[str, object]:
        """Return the result as JSON takes it."""
        return {
            name: str(value) if isinstance(value, Path) else (round(value, 4) if isinstance(value, float) else value)
            for name, value in vars(self).items()
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
