"""The action `capture_shape`: the robot is captured as it stands, and nothing is moved; the outcome as a message."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from softform_client.actuator_values import values_to_message
from softform_client.driver_watch import MeasuredValues
from softform_client.reach_messages import target_from_message
from softform_core.arrays import Array
from softform_core.evaluation.measured_errors import MeasuredErrors
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M
from softform_ik.capture.devices import MotionCapture, Predicted, Scanner, Seen
from softform_ik.goals.goal_server import GoalServer
from softform_ik.reach.reach import fit_to_message
from softform_ik.robot.hardware import Hardware
from softform_ik.robot.stop_request import StopRequest
from softform_interfaces.action import CaptureShape
from softform_ros.action_goals import GoalLedger
from softform_ros.conversions import cloud_from_points, marker_message
from softform_ros.goal_error import GoalCode, GoalError, Outcome, failure, in_code
from softform_ros.lifecycle import SoftformLifecycleNode


@dataclass(frozen=True)
class CaptureGoal:
    """A checked goal, in the robot's frame; its fields are the arguments of `ShapeClient.capture`."""

    target: Shape | None
    captures: int
    via: str


@dataclass(frozen=True)
class CaptureOutcome(Outcome):
    """Outcome of a goal.

    Attributes:
        seen: Capture that passed the checks; None without one.
        values: (k,) of the actuators, measured before the capture; None if the robot did not stand still.
        measured: Errors of the capture.
    """

    seen: Seen | None = None
    values: Array | None = None
    measured: MeasuredErrors | None = None


class Capture:
    """Captures one robot as it stands, with the device that a goal names, else the first."""

    def __init__(
        self,
        hardware: Hardware,
        predict: Callable[[MeasuredValues], Predicted],
        devices: Mapping[str, Scanner | MotionCapture],
    ) -> None:
        self._hardware, self._predict, self.devices = hardware, predict, devices

    def run(
        self, goal: CaptureGoal, stop: StopRequest, tell: Callable[[CaptureShape.Feedback], None]
    ) -> CaptureOutcome:
        """Carry out a goal; returns an outcome whatever happens."""
        seen = values = measured = None
        code, message = GoalCode.NONE, ""
        device = self.devices[goal.via or next(iter(self.devices))]
        try:
            tell(CaptureShape.Feedback(stage="settling"))
            still = self._hardware.wait_until_still(stop)
            if still is not None:
                values = still.values
                tell(CaptureShape.Feedback(stage="capturing"))
                predicted = self._predict(still)
                seen = device.see(still, predicted, goal.captures, stop)
                if seen is not None:
                    measured = device.compare(seen, predicted, goal.target)
        except Exception as error:
            code, message = failure(error, GoalCode.CAPTURE_INVALID)
        if measured is None and code is GoalCode.NONE:
            code, message = stop.ending()
        return CaptureOutcome(code, message, seen, values, measured)


MAX_CAPTURES = 20
"""Most clouds of one capture."""


class CaptureServer(GoalServer[CaptureGoal, CaptureOutcome]):
    """Serves `capture_shape`; it moves nothing, and interrupts no goal that does."""

    action, name, unpack = CaptureShape, "capture_shape", target_from_message

    def __init__(self, node: SoftformLifecycleNode, robot: Robot, capture: Capture, ledger: GoalLedger) -> None:
        self._devices = capture.devices
        super().__init__(node, robot, capture.run, ledger)

    def read(self, message: CaptureShape.Goal) -> CaptureGoal:
        """Check and unpack."""
        if message.via and message.via not in self._devices:
            raise GoalError(
                GoalCode.INVALID_DEVICE,
                f"'{self.robot.name}' is not captured via '{message.via}'.",
                f"Give {' or '.join(self._devices)}, or nothing.",
            )
        if message.captures > MAX_CAPTURES:
            raise GoalError(
                GoalCode.INVALID_CAPTURES,
                f"captures is {message.captures}.",
                f"Give at most {MAX_CAPTURES}, or 0 for the default.",
            )
        if message.target.width * message.target.height == 0:
            return CaptureGoal(None, message.captures, message.via)
        if not self.robot.surfaces:
            raise GoalError(
                GoalCode.INVALID_TARGET,
                f"Robot '{self.robot.name}' has a tip and no surface to compare with a target.",
                "Send no target: the tip is compared with its predicted place.",
            )
        with in_code(GoalCode.INVALID_TARGET):
            return CaptureGoal(super().read(message), message.captures, message.via)

    def result(self, outcome: CaptureOutcome) -> CaptureShape.Result:
        """Pack."""
        result = CaptureShape.Result()
        frame, stamp = self.robot.base_frame, self.node.get_clock().now().to_msg()
        if outcome.values is not None:
            result.actuators = values_to_message(outcome.values, self.robot)
        if (seen := outcome.seen) is not None:
            if seen.names:
                result.markers = marker_message(seen.names, seen.points, frame, stamp, 0)
            else:
                result.cloud = cloud_from_points(seen.points, frame, stamp)
        if outcome.measured is not None:
            result.measured = fit_to_message(outcome.measured, frame, stamp)
        return result

    def summary(self, outcome: CaptureOutcome) -> str:
        """Return the number of points and mean error."""
        if outcome.seen is None or outcome.measured is None:
            return ""
        return f"{len(outcome.seen.points)} points captured, mean error {outcome.measured.mean * MM_PER_M:.3f} mm"
