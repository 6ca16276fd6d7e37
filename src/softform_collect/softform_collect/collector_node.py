"""Node `collector`: parameters, the `collect_dataset` action, life cycle; `FrameCollector` does the work."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rclpy.action.server import ServerGoalHandle
from rclpy.event_handler import QoSLivelinessChangedInfo, SubscriptionEventCallbacks
from rclpy.parameter import Parameter as RosParameter
from std_msgs.msg import Empty

from softform_client.robot_link import RobotLink
from softform_collect.frame_collector import FrameCollector
from softform_collect.goal import CollectGoal, CollectOutcome, CollectSettings, goal_from_message
from softform_core.paths import DEFAULT_ROBOT
from softform_core.robots import Robot, load_robot
from softform_interfaces.action import CollectDataset
from softform_ros.action_goals import GoalLedger
from softform_ros.asked import require_just_asked
from softform_ros.checked_action import CheckedAction, in_worker
from softform_ros.diagnostics import Health
from softform_ros.goal_error import GoalCode, GoalError, in_code
from softform_ros.lifecycle import SoftformLifecycleNode, run_node
from softform_ros.parameters import Parameter, settings_from
from softform_ros.qos import ATTENDANCE

PARAMETERS = (
    Parameter("robot", DEFAULT_ROBOT,
        "Robot that is captured: a name in `config/robots`, or the path of a description."),
    Parameter("source", "hardware", "Whose frames these are; a data set has those of one source only."),
    Parameter("bag", "", "Raw recording of this run, noted in the data set; empty: none."),
    Parameter("settle_timeout", 30.0, "Time for the robot to settle, s.", 0.1, 3600.0),
    Parameter("capture_timeout", 60.0,
        "Time to wait for a fit capture of the settled robot, s. What is set while the node runs is for the next goal.",
        0.1, 3600.0, read_only=False),
    Parameter("ready_timeout", 10.0, "Time within which the driver must be heard, s.", 0.1, 3600.0),
    Parameter("captures_a_frame", 3, "Captures of one actuation that are tried before its frame is rejected.", 1, 100),
    Parameter("averaged_markers", 10, "Marker frames whose mean is one stored frame.", 1, 10_000),
    Parameter("least_free_disk", 1000, "Room that is left on the disk; collecting ends before less is, MB.",
        10, 1 << 24),
    Parameter("drift_warning", 0.01, "Drift of the reference pose that is reported, of the robot's size.", 0.0, 1.0),
    Parameter("drift_limit", 0.02, "Drift of the reference pose that ends collecting, of the robot's size.", 0.0, 1.0),
)  # fmt: skip


class CollectorNode(SoftformLifecycleNode):
    """Serves `collect_dataset`, one goal at a time, in a worker thread; the robot is let go of at every end.

    A client that is a publisher of `collect_dataset/attendance` is missed within seconds when it dies, and its goal
    ends. The goal of one that is not goes on without it, as goals of actions do.
    """

    def __init__(self) -> None:
        super().__init__("collector", PARAMETERS, hardware_id="collector")
        self._robot: Robot | None = None
        self._server: CheckedAction[CollectGoal] | None = None
        self._workers: ThreadPoolExecutor | None = None
        self._accepted: CollectGoal | None = None
        self._stop_code = GoalCode.NONE
        self._is_attended = False
        self._attending = 0
        self._ledger = GoalLedger(self)
        self.frames.listen()

    def configure(self) -> None:
        """Load the robot and open the action."""
        self._robot = load_robot(self.parameters["robot"], "surface").in_namespace(self.get_namespace())
        self._accepted = None
        self.diagnostics.hardware_id = self._robot.name
        self._workers = ThreadPoolExecutor(max_workers=1, thread_name_prefix="collect")
        self.subscribe(
            Empty,
            "collect_dataset/attendance",
            lambda message: None,
            ATTENDANCE,
            event_callbacks=SubscriptionEventCallbacks(liveliness=self._on_attendance),
        )
        self._server = CheckedAction(
            self,
            CollectDataset,
            "collect_dataset",
            self._ledger,
            self._check,
            self._begin,
            self._carry_out,
            self._cancel,
        )

    def deactivate(self) -> None:
        """End the goal: the robot vents."""
        self._request_stop(GoalCode.NODE_DEACTIVATED)

    def cleanup(self) -> None:
        """Close the action."""
        self._request_stop(GoalCode.NODE_DEACTIVATED)
        if self._workers is not None:
            self._workers.shutdown(wait=True)
            self._workers = None
        if self._server is not None:
            self._server.close()
            self._server = None

    def health(self) -> Health:
        """Return the outcome of the last goal, and reason of the last rejection."""
        values = {"active": self.is_active, "collecting": self._accepted is not None, **self._ledger.values()}
        return self._ledger.health(values)

    def _settings(self) -> CollectSettings:
        values, robot = self.parameters, self._robot
        assert robot is not None
        return settings_from(
            CollectSettings,
            values,
            frame=robot.base_frame,
            bag=Path(values["bag"]) if values["bag"] else None,
            settle_tolerance=robot.actuator_tolerances.arrive,
            capture_timeout=self.get_parameter("capture_timeout").value,
            least_free_disk=values["least_free_disk"] * 1e6,
        )

    def _on_attendance(self, info: QoSLivelinessChangedInfo) -> None:
        self._attending = info.alive_count
        if self._attending:
            self._is_attended = True
        elif self._is_attended and self._accepted is not None:
            self.get_logger().warning("the client that attended to collecting is gone: collecting ends")
            self._request_stop(GoalCode.CANCELLED)

    def _request_stop(self, code: GoalCode) -> None:
        if self._accepted is not None and self._stop_code is GoalCode.NONE:
            self._stop_code = code

    def _check(self, message: CollectDataset.Goal) -> CollectGoal:
        assert self._robot is not None
        if self._accepted is not None:
            raise GoalError(
                GoalCode.INVALID_GOAL,
                f"Frames are being collected into {self._accepted.output}.",
                "Wait until that is done, or cancel it.",
            )
        with in_code(GoalCode.DRIVER_FAILED):
            require_just_asked(message.asked, self, "The goal")
        return goal_from_message(message, self._robot)

    def _begin(self, goal: CollectGoal, handle: ServerGoalHandle) -> None:
        self._accepted = goal
        self._stop_code, self._is_attended = GoalCode.NONE, self._attending > 0

    def _cancel(self, handle: ServerGoalHandle) -> None:
        self._request_stop(GoalCode.CANCELLED)

    async def _carry_out(
        self, goal: CollectGoal, handle: ServerGoalHandle
    ) -> tuple[CollectOutcome, str, CollectDataset.Result]:
        assert self._workers is not None and self._robot is not None
        robot = self._robot
        self.get_logger().info(f"collecting {goal.frames} frames via {goal.via} into {goal.output}")
        try:
            with RobotLink(robot, self, self.frames, handle.request.asked.epoch) as link:
                collector = FrameCollector(
                    robot,
                    goal,
                    self._settings(),
                    link,
                    lambda: self._stop_code,
                    handle.publish_feedback,
                )
                outcome = await in_worker(self._workers, collector.run)
        finally:
            self._accepted = None
            usual = RosParameter("capture_timeout", value=self.parameters["capture_timeout"])
            self.set_parameters([usual])  # also where the client that wanted to be waited for was killed
        summary = f"{outcome.captured} frames captured, {len(outcome.rejections)} rejected, in {outcome.store}"
        return outcome, summary, outcome.result()


def main() -> None:
    """Run the node until SIGINT or SIGTERM."""
    run_node(CollectorNode)


if __name__ == "__main__":
    main()
