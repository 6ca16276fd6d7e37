"""A plain Python object that sends shapes to the robot, for planners that need not know ROS.

from softform_core.shapes.read import read_shape
from softform_ik.client import Mode, ShapeClient

with ShapeClient() as robot:
    result = robot.reach(read_shape("target.ply", unit="mm"), Mode.PLAN_MOVE_AND_VERIFY, on_feedback=print)
    print(result.pressures, result.measured_mean_error)
"""

import contextlib
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from numpy.typing import NDArray
from rclpy.action import ActionClient
from rclpy.action.client import ClientGoalHandle
from rclpy.executors import ExternalShutdownException, ShutdownException, SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions

from softform_core.errors import SoftformError
from softform_core.shapes.target import TargetShape
from softform_ik.goal_checks import Code, Mode, ReachGoal
from softform_ik.messages import goal_to_message
from softform_interfaces.action import ReachShape
from softform_ros import qos

__all__ = [
    "Code",
    "GoalFailedError",
    "GoalRejectedError",
    "Mode",
    "NotConnectedError",
    "ShapeClient",
]

_POLL_SECONDS = 0.05
_REASON_SECONDS = 1.0
_JOINING_SECONDS = 0.3
_ACCEPTANCE_SECONDS = 20.0


class NotConnectedError(SoftformError):
    """No inverse-kinematics node answers."""


class GoalRejectedError(SoftformError):
    """The node did not accept the goal; the message is its reason."""


class GoalFailedError(SoftformError):
    """The goal was accepted but not reached.

    Attributes:
        code: One of `Code`: what went wrong, e.g. `Code.CANCELLED`.
        result: What was found until then.
    """

    def __init__(self, message: str, code: int, result: ReachShape.Result) -> None:
        """Keep code and result beside the message."""
        super().__init__(message)
        self.code, self.result = code, result


class ShapeClient:
    """Sends target shapes to the node `inverse_kinematics`; usable from any thread, one goal at a time.

    Args:
        namespace: Where the stack runs.
        frame: Frame of the targets.
        timeout: How long `connect` waits for the node, s.
    """

    def __init__(self, namespace: str = "/softform", frame: str = "base_link", timeout: float = 10.0) -> None:
        """Nothing is opened before `connect`."""
        self._namespace, self._frame, self._timeout = namespace.rstrip("/"), frame, timeout
        self._context: rclpy.Context | None = None
        self._thread: threading.Thread | None = None
        self._handle: ClientGoalHandle | None = None
        self._lock = threading.Lock()
        self._refused_goals: int | None = None
        self._refusal = ""

    def connect(self) -> "ShapeClient":
        """Open the connection and wait for the node.

        Raises:
            NotConnectedError: If it does not answer in time.
        """
        self._context = rclpy.Context()
        # The planner's own process keeps its signal handlers.
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self._node = rclpy.create_node(
            "shape_client", namespace=self._namespace or "/", context=self._context, use_global_arguments=False
        )
        self._client = ActionClient(self._node, ReachShape, "reach_shape")
        self._node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, qos.DIAGNOSTICS)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._thread = threading.Thread(target=self._spin, name="shape_client", daemon=True)
        self._thread.start()
        if not self._client.wait_for_server(timeout_sec=self._timeout):
            self.close()
            raise NotConnectedError(
                f"No inverse_kinematics node in {self._namespace or '/'} answered within {self._timeout:g} s.",
                "Launch the stack first, and check the namespace and ROS_DOMAIN_ID.",
            )
        # The node may see this client later than the client sees it; an answer sent before that would be lost.
        time.sleep(_JOINING_SECONDS)
        return self

    def close(self) -> None:
        """Close the connection; a goal that runs goes on without this client."""
        if self._context is None:
            return
        rclpy.shutdown(context=self._context)
        if self._thread is not None:
            self._thread.join()
        self._client.destroy()
        self._node.destroy_node()
        self._context = None

    def __enter__(self) -> "ShapeClient":
        """Connect."""
        return self.connect()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def reach(
        self,
        target: TargetShape,
        mode: Mode = Mode.PLAN_ONLY,
        *,
        fix_pose: bool = True,
        seed_pressures: NDArray[np.float64] | None = None,
        tolerance: float = 0.0,
        max_time: float = 0.0,
        max_rounds: int = 0,
        without_sim_to_real: bool = False,
        on_feedback: Callable[[ReachShape.Feedback], None] | None = None,
    ) -> ReachShape.Result:
        """Bring the robot to a target shape and wait until it is there.

        Args:
            target: m, in the robot's frame.
            mode: Plan only, move too, verify by a capture as well, or correct by captures until it fits.
            fix_pose: False: the target may be re-posed to fit the robot (R, t of Eq. 15).
            seed_pressures: (k,) Pa where the solver starts.
            tolerance: m, mean error at which the solver may stop; 0: the node's default.
            max_time: s for each solve; 0: the node's default.
            max_rounds: Closed loop: corrections after the open-loop round at most; 0: the node's default.
            without_sim_to_real: Plan with the simulated shape alone, to compare.
            on_feedback: Called with each feedback message, from the client's thread.

        Returns:
            The result message: pressures, pose, predicted and measured errors (SI units).

        Raises:
            NotConnectedError: If `connect` was not called, or the node disappears.
            GoalRejectedError: If the node refuses the goal, with its reason.
            GoalFailedError: If the goal ended with an error code: cancelled, preempted, driver fault, time out ...
        """
        if self._context is None:
            raise NotConnectedError("The client is not connected.", "Call connect() or use it in a `with` block.")
        goal = ReachGoal(target, mode, fix_pose, seed_pressures, tolerance, max_time, max_rounds, without_sim_to_real)
        message = goal_to_message(goal, self._frame, self._node.get_clock().now().to_msg())
        forward = None if on_feedback is None else lambda feedback: on_feedback(feedback.feedback)
        refused_before = self._refused_goals
        handle = self._ask(
            lambda: self._client.send_goal_async(message, feedback_callback=forward), timeout=_ACCEPTANCE_SECONDS
        )
        if not handle.accepted:
            raise GoalRejectedError(self._reason_of_refusal(refused_before))
        with self._lock:
            self._handle = handle
        try:
            result = self._ask(handle.get_result_async).result
        finally:
            with self._lock:
                self._handle = None
        if result.error_code != Code.NONE:
            raise GoalFailedError(result.error_msg, result.error_code, result)
        return result

    def cancel(self) -> bool:
        """Cancel the goal that `reach` waits for; `reach` then raises `GoalFailedError` with the best so far.

        Returns:
            Whether there was one.
        """
        with self._lock:
            handle = self._handle
        if handle is None:
            return False
        if threading.current_thread() is self._thread:  # called from `on_feedback`: its answer comes after that returns
            handle.cancel_goal_async()
        else:
            self._ask(handle.cancel_goal_async)
        return True

    def _spin(self) -> None:
        with contextlib.suppress(ExternalShutdownException, ShutdownException):
            self._executor.spin()

    def _ask(self, send: Callable[[], Any], timeout: float = float("inf")) -> Any:
        """Send a request from the executor's thread and wait for the answer.

        rclpy 7.1's ActionClient notes a request only after it has sent it, without a lock: an answer that another
        thread takes in between is thrown away as unexpected, and its future never ends.
        """
        return self._wait(self._wait(self._executor.create_task(send), timeout), timeout)

    def _wait(self, future: Any, timeout: float = float("inf")) -> Any:
        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        deadline = time.monotonic() + timeout
        while not done.wait(_POLL_SECONDS) and not future.done():
            if self._context is None or not self._context.ok():
                raise NotConnectedError("The client was closed while it waited.", "Keep it open until reach returns.")
            if time.monotonic() > deadline:
                raise NotConnectedError(
                    f"The inverse_kinematics node did not answer within {timeout:g} s.", "See its log; try again."
                )
            if not self._client.server_is_ready():
                raise NotConnectedError(
                    "The inverse_kinematics node went away while it worked on the goal.",
                    "See its log; the driver vents the robot when no command comes.",
                )
        return future.result()

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name == f"{self._namespace}/inverse_kinematics":
                values = {pair.key: pair.value for pair in status.values}
                self._refusal = values.get("last refusal", "")
                self._refused_goals = int(values.get("refused goals", 0))

    def _reason_of_refusal(self, refused_before: int | None) -> str:
        deadline = time.monotonic() + _REASON_SECONDS
        while time.monotonic() < deadline:
            if self._refusal and self._refused_goals != refused_before:
                return self._refusal
            time.sleep(_POLL_SECONDS)
        return self._refusal or "The goal was refused; the reason is in the log of inverse_kinematics."
