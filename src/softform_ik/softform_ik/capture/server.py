"""The action `capture_shape`; the work is done in `capture`."""

from softform_client.actuator_values import values_to_message
from softform_client.reach_messages import target_from_message
from softform_client.shared_codes import CODE_OF_CAPTURING
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_ik.capture.capture import Capture, CaptureGoal, CaptureOutcome
from softform_ik.goals.goal_server import GoalServer
from softform_ik.reach.server import fit_to_message
from softform_interfaces.action import CaptureShape
from softform_ros.action_goals import GoalLedger
from softform_ros.conversions import cloud_from_points, marker_message
from softform_ros.goal_error import GoalError
from softform_ros.lifecycle import SoftformLifecycleNode

MAX_CAPTURES = 20
"""Most clouds of one capture."""


class CaptureServer(GoalServer[CaptureGoal, CaptureOutcome]):
    """Serves `capture_shape`; it moves nothing, and interrupts no goal that does."""

    action, name, unpack, codes = CaptureShape, "capture_shape", target_from_message, CODE_OF_CAPTURING

    def __init__(self, node: SoftformLifecycleNode, robot: Robot, capture: Capture, ledger: GoalLedger) -> None:
        self._devices = capture.devices
        super().__init__(node, robot, capture.run, ledger)

    def read(self, message: CaptureShape.Goal) -> CaptureGoal:
        """Check and unpack."""
        if message.via and message.via not in self._devices:
            raise GoalError(
                CaptureShape.Result.INVALID_DEVICE,
                f"'{self.robot.name}' is not captured via '{message.via}'.",
                f"Give {' or '.join(self._devices)}, or nothing.",
            )
        if message.captures > MAX_CAPTURES:
            raise GoalError(
                CaptureShape.Result.INVALID_CAPTURES,
                f"captures is {message.captures}.",
                f"Give at most {MAX_CAPTURES}, or 0 for the default.",
            )
        if message.target.width * message.target.height == 0:
            return CaptureGoal(None, message.captures, message.via)
        if not self.robot.surfaces:
            raise GoalError(
                CaptureShape.Result.INVALID_TARGET,
                f"Robot '{self.robot.name}' has a tip and no surface to compare with a target.",
                "Send no target: the tip is compared with its predicted place.",
            )
        return CaptureGoal(super().read(message), message.captures, message.via)

    def result(self, outcome: CaptureOutcome) -> CaptureShape.Result:
        """Pack."""
        result = CaptureShape.Result(error_code=outcome.code, error_msg=outcome.message)
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
