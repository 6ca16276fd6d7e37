"""A plain Python object that sends shapes to the robot, for planners that need not know ROS.

from softform_core.shapes.read import read_shape
from softform_ik.client import Mode, ShapeClient

with ShapeClient() as robot:
    result = robot.reach(read_shape("target.ply", unit="mm"), Mode.PLAN_MOVE_AND_VERIFY, on_feedback=print)
    print(result.pressures, result.measured_mean_error)
"""

from collections.abc import Callable
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.shapes.target import TargetShape
from softform_ik.goal_checks import Code, Mode, ReachGoal
from softform_ik.messages import goal_to_message
from softform_interfaces.action import ReachShape
from softform_ros.action_caller import ActionCaller, GoalRejectedError, NotConnectedError

__all__ = [
    "Code",
    "GoalFailedError",
    "GoalRejectedError",
    "Mode",
    "NotConnectedError",
    "ShapeClient",
]


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
        self._frame = frame
        self._caller = ActionCaller(ReachShape, "reach_shape", "inverse_kinematics", "shape_client", namespace, timeout)

    def connect(self) -> "ShapeClient":
        """Open the connection and wait for the node.

        Raises:
            NotConnectedError: If it does not answer in time.
        """
        self._caller.connect()
        return self

    @property
    def is_served(self) -> bool:
        """Whether the node is there."""
        return self._caller.is_served

    def close(self) -> None:
        """Close the connection; a goal that runs goes on without this client."""
        self._caller.close()

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
        goal = ReachGoal(target, mode, fix_pose, seed_pressures, tolerance, max_time, max_rounds, without_sim_to_real)
        message = goal_to_message(goal, self._frame, self._caller.now())
        result: ReachShape.Result = self._caller.call(message, on_feedback)
        if result.error_code != Code.NONE:
            raise GoalFailedError(result.error_msg, result.error_code, result)
        return result

    def cancel(self) -> bool:
        """Cancel the goal that `reach` waits for; `reach` then raises `GoalFailedError` with the best so far.

        Returns:
            Whether there was one.
        """
        return self._caller.cancel()
