"""Carries out goals of `capture_shape`, one at a time in a worker thread; nothing moves, and nothing escapes it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from softform_client.shared_codes import in_codes_of_capturing
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.evaluation.measured_errors import MeasuredErrors, measure_errors
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.registration.rigid import RigidTransform
from softform_core.robots import Robot
from softform_core.shapes.target import TargetShape
from softform_core.units import MM_PER_M
from softform_ik.reach.capture_checks import check_capture
from softform_ik.robot.hardware import Hardware
from softform_ik.robot.stop_request import StopRequest
from softform_interfaces.action import CaptureShape
from softform_ros.goal_error import GoalError

Code = CaptureShape.Result

_STOPPED = {
    Code.CANCELLED: "The goal was cancelled.",
    Code.PREEMPTED: "A newer goal took its place.",
    Code.NODE_DEACTIVATED: "The node was deactivated. Activate it and send the goal again.",
}


@dataclass(frozen=True)
class CaptureGoal:
    """A checked goal.

    Attributes:
        target: What is compared with the capture, in the robot's frame, m; None: the prediction.
        captures: Clouds that make one capture; 0: the node's default.
    """

    target: TargetShape | None
    captures: int = 0


@dataclass(frozen=True)
class CaptureOutcome:
    """What became of a goal.

    Attributes:
        code: One of the action's error codes; `NONE` is success.
        message: What went wrong and what to do; empty on success.
        points: (N, 3) m in the robot's frame, what was captured and can be true; None if nothing was.
        values: (k,) of the actuators, measured before the capture; None if the robot did not stand still.
        measured: How the capture fits.
    """

    code: int
    message: str = ""
    points: Array | None = None
    values: Array | None = None
    measured: MeasuredErrors | None = None


class Pipelines(Protocol):
    """The models of a robot; `LivePipeline` is the one that ships."""

    @property
    def current(self) -> ForwardPipeline:
        """Of the real robot: with sim-to-real, if there is a model."""


class Capture:
    """Captures one robot as it stands.

    Args:
        robot: The robot.
        pipelines: Its forward kinematics.
        hardware: Driver and scanner; only looked at.
    """

    def __init__(self, robot: Robot, pipelines: Pipelines, hardware: Hardware) -> None:
        self._robot, self._pipelines, self._hardware = robot, pipelines, hardware

    def run(self, goal: CaptureGoal, stop: StopRequest, on_stage: Callable[[str], None]) -> CaptureOutcome:
        """Carry out a goal; returns an outcome whatever happens.

        Args:
            goal: What is asked.
            stop: The wish to end it.
            on_stage: Told `settling` and `capturing`.
        """
        points = values = measured = None
        code, message = Code.NONE, ""
        try:
            with in_codes_of_capturing():
                on_stage("settling")
                still = self._hardware.wait_until_still(stop)
                if still is not None:
                    values = still.pressures
                    on_stage("capturing")
                    seen = self._hardware.look_on(still, goal.captures, stop)
                    if seen is not None:
                        predicted = self._pipelines.current.points(self._robot.nearest_actuation(values))
                        points = check_capture(seen, predicted, self._robot)
                        measured = measure_errors(points, goal.target or self._shape(predicted), RigidTransform())
        except GoalError as error:
            code, message = error.code, str(error)
        except SoftformError as error:
            code, message = Code.CAPTURE_INVALID, str(error)
        except Exception as error:  # the worker must live on for the next goal
            code, message = Code.INTERNAL_ERROR, f"{type(error).__name__}: {error}"
        if measured is None and code == Code.NONE:
            code, message = stop.code, _STOPPED[stop.code]
        return CaptureOutcome(code, message, points, values, measured)

    def _shape(self, predicted: Array) -> TargetShape:
        return TargetShape.from_mesh(predicted / MM_PER_M, self._robot.patch.triangles(len(predicted)))
