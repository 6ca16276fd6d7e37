"""The action `reach_shape`: its callbacks; the work is done in `reach`."""

from concurrent.futures import ThreadPoolExecutor

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle

from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_ik.commander import Commander
from softform_ik.driver_watch import DriverWatch
from softform_ik.feedback_throttle import FeedbackThrottle
from softform_ik.goal_checks import Code, ReachGoal
from softform_ik.messages import feedback_to_message, goal_from_message, result_to_message
from softform_ik.reach import Reach, ReachOutcome
from softform_ik.stop_request import StopRequest
from softform_interfaces.action import ReachShape
from softform_ros.action_goals import GoalLedger, in_worker
from softform_ros.goal_error import GoalError
from softform_ros.lifecycle import SoftformLifecycleNode


class ReachServer:
    """Serves `reach_shape`; solves in a worker thread so that the executor answers cancels and feeds the driver.

    Args:
        node: Whose action, parameters and clock.
        robot: Who is to take shapes.
        reach: Carries out goals.
        driver: What the driver says.
        commander: Who commands the robot.
        ledger: What became of the node's goals.
    """

    def __init__(
        self,
        node: SoftformLifecycleNode,
        robot: Robot,
        reach: Reach,
        driver: DriverWatch,
        commander: Commander,
        ledger: GoalLedger,
    ) -> None:
        """Open the action."""
        self._node, self._robot, self._reach = node, robot, reach
        self._driver, self._commander, self._ledger = driver, commander, ledger
        self._accepted: ReachGoal | None = None
        self._stop = StopRequest()
        self._goals: dict[bytes, tuple[ReachGoal, StopRequest]] = {}
        self._workers = ThreadPoolExecutor(max_workers=1, thread_name_prefix="reach")
        self._server = ActionServer(
            node,
            ReachShape,
            "reach_shape",
            execute_callback=self._execute,
            goal_callback=self._on_goal,
            handle_accepted_callback=self._on_accepted,
            cancel_callback=self._on_cancel,
        )

    def end_goals(self) -> None:
        """Ask the goal under way to end, since the node is deactivated."""
        self._stop.request(Code.NODE_DEACTIVATED)

    def close(self) -> None:
        """End the goal under way and close the action."""
        self.end_goals()
        self._workers.shutdown(wait=True)
        self._server.destroy()

    def _on_goal(self, message: ReachShape.Goal) -> GoalResponse:
        parameters = self._node.parameters
        try:
            if not self._node.is_active:
                raise GoalError(Code.NODE_DEACTIVATED, "The node is not active.", "Activate it first.")
            now = self._node.get_clock().now().nanoseconds * 1e-9
            goal = goal_from_message(message, self._robot, parameters["frame"], now, parameters["max_target_age"])
            if goal.mode.moves:
                self._driver.refuse_unless_ready()
        except GoalError as error:
            return self._ledger.refuse(error)
        except Exception as error:  # a goal must never end the node
            return self._ledger.refuse(GoalError(Code.INTERNAL_ERROR, f"The goal could not be read: {error}"))
        self._accepted = goal
        return self._ledger.accept()

    def _on_accepted(self, handle: ServerGoalHandle) -> None:
        self._stop.request(Code.PREEMPTED)
        self._stop = StopRequest()
        # rclpy calls back with the handle right after accepting, so the checked goal is this handle's.
        assert self._accepted is not None
        if self._accepted.mode.moves:
            self._commander.begin(self._stop, Code.PREEMPTED)
        self._goals[bytes(handle.goal_id.uuid)] = (self._accepted, self._stop)
        handle.execute()

    def _on_cancel(self, handle: ServerGoalHandle) -> CancelResponse:
        _, stop = self._goals[bytes(handle.goal_id.uuid)]
        stop.request(Code.CANCELLED)
        return CancelResponse.ACCEPT

    async def _execute(self, handle: ServerGoalHandle) -> ReachShape.Result:
        goal, stop = self._goals[bytes(handle.goal_id.uuid)]
        throttle = FeedbackThrottle(
            lambda progress: handle.publish_feedback(feedback_to_message(progress)),
            self._node.parameters["feedback_rate"],
        )
        outcome: ReachOutcome = await in_worker(
            self._node, self._workers, lambda: self._reach.run(goal, stop, throttle)
        )
        self._commander.end(stop)
        del self._goals[bytes(handle.goal_id.uuid)]
        self._ledger.conclude(handle, outcome.code, outcome.message, _summary(outcome))
        return result_to_message(outcome, self._node.parameters["frame"], self._node.get_clock().now().to_msg())


def _summary(outcome: ReachOutcome) -> str:
    solution = outcome.solution
    if solution is None:
        return ""
    summary = (
        f"{solution.iterations} iterations in {solution.seconds * 1e3:.0f} ms, predicted mean error "
        f"{solution.mean_error_mm:.3f} mm: {solution.termination.value}"
    )
    if outcome.rounds:
        means = ", ".join(f"{one.measured.mean * MM_PER_M:.3f}" for one in outcome.rounds)
        summary += f"; measured mean error of each round: {means} mm"
    return summary
