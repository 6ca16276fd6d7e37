"""The action `capture_shape`; the work is done in `capture`."""

from collections.abc import Callable

from softform_client.actuator_values import values_to_message
from softform_client.goal_frames import bring_into
from softform_client.reach_messages import target_from_message
from softform_client.shared_codes import in_codes_of_capturing
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_ik.capture.capture import Capture, CaptureGoal, CaptureOutcome
from softform_ik.goals.goal_server import GoalServer
from softform_ik.reach.messages import fit_to_message
from softform_ik.robot.stop_request import StopRequest
from softform_interfaces.action import CaptureShape
from softform_ros.action_goals import GoalLedger
from softform_ros.conversions import cloud_from_points
from softform_ros.goal_error import GoalError
from softform_ros.lifecycle import SoftformLifecycleNode

MAX_CAPTURES = 20
"""More clouds than this in one capture are a mistake."""


class CaptureServer(GoalServer[CaptureGoal, CaptureOutcome]):
    """Serves `capture_shape`; it moves nothing, and so takes the robot from nobody.

    Args:
        node: Node that serves the action and has parameters and clock.
        robot: Robot that is captured.
        capture: Carries out goals.
        ledger: What became of the node's goals.
    """

    def __init__(self, node: SoftformLifecycleNode, robot: Robot, capture: Capture, ledger: GoalLedger) -> None:
        self._robot, self._capture = robot, capture
        super().__init__(node, CaptureShape, "capture_shape", ledger)

    def read(self, message: CaptureShape.Goal) -> CaptureGoal:
        """Check and unpack."""
        if message.captures > MAX_CAPTURES:
            raise GoalError(
                CaptureShape.Result.INVALID_CAPTURES,
                f"captures is {message.captures}.",
                f"Give at most {MAX_CAPTURES}, or 0 for the default.",
            )
        if message.target.width * message.target.height == 0:
            return CaptureGoal(None, message.captures)
        now = self.node.get_clock().now().nanoseconds * 1e-9
        frame, max_age = self._robot.base_frame, self.node.parameters["max_target_age"]
        bring_into(frame, message, self.node.frames)
        with in_codes_of_capturing():
            return CaptureGoal(target_from_message(message, self._robot, frame, now, max_age), message.captures)

    def run(
        self, goal: CaptureGoal, stop: StopRequest, send_feedback: Callable[[CaptureShape.Feedback], None]
    ) -> CaptureOutcome:
        """Wait, capture, check, compare."""
        return self._capture.run(goal, stop, lambda stage: send_feedback(CaptureShape.Feedback(stage=stage)))

    def result(self, outcome: CaptureOutcome) -> CaptureShape.Result:
        """Pack."""
        result = CaptureShape.Result(error_code=outcome.code, error_msg=outcome.message)
        frame, stamp = self._robot.base_frame, self.node.get_clock().now().to_msg()
        if outcome.values is not None:
            result.actuators = values_to_message(outcome.values, self._robot)
        if outcome.points is not None:
            result.cloud = cloud_from_points(outcome.points, frame, stamp)
        if outcome.measured is not None:
            result.measured = fit_to_message(outcome.measured, frame, stamp)
        return result

    def summary(self, outcome: CaptureOutcome) -> str:
        """Number of points and mean error."""
        if outcome.points is None or outcome.measured is None:
            return ""
        return f"{len(outcome.points)} points captured, mean error {outcome.measured.mean * MM_PER_M:.3f} mm"
