"""Connections of a client to the actions of a stack, opened when they are wanted first."""

from collections.abc import Callable
from typing import Any, Self

from rcl_interfaces.srv import GetParameters

from softform_core.errors import SoftformError
from softform_core.robots import Robot, load_robot
from softform_interfaces.action import CaptureShape, FollowWaypoints, PlanToShape, ReachShape
from softform_ros.action_caller import ActionCaller, NotConnectedError
from softform_ros.action_goals import NO_ERROR
from softform_ros.service_calls import call_service


class GoalFailedError(SoftformError):
    """The goal was rejected or not reached; the message says why and what to do.

    Attributes:
        code: One of the action's error codes: what went wrong, e.g. `Code.INVALID_TARGET` or `Code.CANCELLED`.
        result: The result message, with what was found until then.
    """

    def __init__(self, message: str, code: int, result: Any) -> None:
        super().__init__(message)
        self.code, self.result = code, result


class ClientConnection:
    """Callers of the stack's actions that plan for the robot or command it; the one of `reach_shape` is always open.

    Args:
        namespace: ROS namespace of the stack.
        frame: Frame of targets and paths, any that TF knows; empty for that of the robot.
        timeout: Time to wait for a node, s.
    """

    def __init__(self, namespace: str = "/softform", frame: str = "", timeout: float = 10.0) -> None:
        self._frame, self._timeout = frame, timeout

        def caller(action: Any, name: str, server: str) -> ActionCaller:
            return ActionCaller(action, name, server, f"{name}_client", namespace, timeout)

        self._reaching = caller(ReachShape, "reach_shape", "inverse_kinematics")
        self._following = caller(FollowWaypoints, "follow_waypoints", "inverse_kinematics")
        self._capturing = caller(CaptureShape, "capture_shape", "inverse_kinematics")
        self._planning = caller(PlanToShape, "plan_to_shape", "motion_planner")

    def connect(self) -> Self:
        """Open the connection and wait for the node `inverse_kinematics`.

        Raises:
            NotConnectedError: If it does not answer in time.
            SoftformError: If its robot's description is not on this machine; then name the frame.
        """
        self._reaching.connect()
        if not self._frame:
            self._frame = self.robot().base_frame
        return self

    def robot(self) -> Robot:
        """The robot that is served.

        Raises:
            NotConnectedError: If `connect` was not called, or the node does not answer.
            SoftformError: If its description is not on this machine.
        """
        server, request = "inverse_kinematics", GetParameters.Request(names=["robot"])
        asked = f"{server}/get_parameters"
        answer = call_service(self._reaching.node, server, GetParameters, asked, request, self._timeout)
        if answer is None:
            raise NotConnectedError(f"The {server} node does not say which robot it serves.", "Name the frame.")
        return load_robot(str(answer.values[0].string_value))

    @property
    def is_served(self) -> bool:
        """Whether the node is there."""
        return self._reaching.is_served

    def close(self) -> None:
        """Close the connection; a goal that runs goes on without this client."""
        for caller in self._callers:
            caller.close()

    def __enter__(self) -> Self:
        return self.connect()

    def __exit__(self, *error: object) -> None:
        self.close()

    def cancel(self) -> bool:
        """Cancel the goal that is waited for, which then raises `GoalFailedError` with the best so far.

        Returns:
            Whether there was one.
        """
        cancelled = [caller.cancel() for caller in self._callers]
        return any(cancelled)

    @property
    def _callers(self) -> tuple[ActionCaller, ...]:
        return self._reaching, self._following, self._capturing, self._planning

    def _call(self, caller: ActionCaller, pack: Callable[[Any], Any], on_feedback: Callable[[Any], None] | None) -> Any:
        """Send a goal, packed with its stamp, and wait for its end.

        Raises:
            NotConnectedError: If `connect` was not called, or the node is not there.
            GoalFailedError: If it is rejected, or was not reached.
        """
        if self._reaching.is_connected and not caller.is_connected:
            caller.connect()
        result = caller.call(pack(caller.now()), on_feedback)
        if result.error_code != NO_ERROR:
            raise GoalFailedError(result.error_msg, result.error_code, result)
        return result
