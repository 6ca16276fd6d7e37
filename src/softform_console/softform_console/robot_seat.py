"""All that the console has of one robot of the graph: what is heard of it, what moves it, and what pages ask of it."""

from collections.abc import Callable
from pathlib import Path

from softform_console.goal_runner import GoalRunner
from softform_console.model_choice import ModelChoice
from softform_console.motions import Motions
from softform_console.object_goals import ObjectGoals, ObjectRunner
from softform_console.operator_role import OperatorRole
from softform_console.program_runs import PageFiles, ProgramRuns
from softform_console.protocol import FromServer, Notice
from softform_console.robot_desk import RobotDesk
from softform_console.robot_link import RobotLink
from softform_console.robot_view import RobotView
from softform_console.scene_store import SceneStore
from softform_console.scene_topics import SceneTopics
from softform_console.steering import Steering
from softform_console.target_files import TargetFiles
from softform_core.robots import Robot
from softform_interfaces.msg import ActuationHistory, DriverState
from softform_ros import qos
from softform_ros.guarded_node import GuardedNode


class RobotSeat:
    """A robot of the console.

    Args:
        node: A node in the namespace of the robot's stack; the thread that spins it makes the seat, and closes it.
        robot: The robot.
        index: Its number for pages.
        role: Who the operator is.
        store: Takes what is shown.
        captures: Folder of what programs capture.
        tell: Takes messages for all pages.

    Attributes:
        view: What its stack says.
        link: The robot itself.
        steering: Moves it.
        targets: Target files that were dropped for it.
        desk: Carries out what pages ask.
    """

    def __init__(
        self,
        node: GuardedNode,
        robot: Robot,
        index: int,
        role: OperatorRole,
        store: SceneStore,
        captures: Path,
        tell: Callable[[FromServer], None],
    ) -> None:
        self.node, self.robot, self._tell = node, robot, tell
        self.view, self.targets = RobotView(robot), TargetFiles(robot)
        self.link = RobotLink(node, robot, self.view, self._warn, self.cancel)
        self.steering = Steering(self.link, role, self._warn)
        namespace = node.get_namespace()
        goals = (namespace, robot.base_frame, tell, self.steering.end_goal)
        self._goals = GoalRunner(*goals) if robot.body.held is None else ObjectRunner(*goals)
        files = PageFiles(self.targets, captures)
        self._programs = ProgramRuns(namespace, robot, files, tell, self.steering.end_goal)
        self._topics = SceneTopics(node, robot, store, self.view, index)
        self._choice = ModelChoice(node, tell)
        self._objects: ObjectGoals | None = None
        if isinstance(self._goals, ObjectRunner):
            self._objects = ObjectGoals(node, index, self._goals, self._topics.triangles, store)
        self.desk = RobotDesk(
            robot,
            index,
            self.view,
            self.steering,
            self.link,
            self._goals,
            Motions(robot, self._goals, index, lambda: self.view.history),
            self._topics.foresee,
            self._programs,
            self._choice,
            self.targets,
            store,
            tell,
            self._objects,
        )
        self._states = node.create_subscription(DriverState, "driver_state", self._on_driver, qos.LATCHED_STATE)
        self._histories = node.create_subscription(
            ActuationHistory, "actuation_history", self.view.note_history, qos.LATCHED_STATE
        )
        self.steering.start()
        self._goals.connect()

    def close(self) -> None:
        """End what moves it, and close topics and services."""
        self.node.destroy_subscription(self._states)
        self.node.destroy_subscription(self._histories)
        self._choice.close()
        if self._objects is not None:
            self._objects.close()
        self._topics.close()
        self.desk.close()
        self.steering.close()
        self._programs.close()
        self._goals.close()
        self.link.close()

    def look(self, is_watched: bool) -> None:
        """Hear what is shown while somebody looks; to be called several times a second."""
        self._topics.update(is_watched)
        if is_watched:
            self._choice.look()

    def cancel(self) -> None:
        """Cancel goal and program."""
        self._goals.cancel()
        self._programs.cancel()

    def _on_driver(self, message: DriverState) -> None:
        self.view.note_driver(message)
        is_over = self.link.note_driver(message)
        if self.robot.body.held is not None:
            is_over = False  # each goal ends with an epoch: the arms hold, and who carries it out says how it ended
        if (is_over or message.state in (DriverState.FAULT, DriverState.OFFLINE)) and self.steering.forget():
            self._warn(f"Nothing moves the robot from here any more: {message.reason or 'it was stopped'}.")

    def _warn(self, text: str) -> None:
        self.node.get_logger().warning(text)
        self._tell(Notice(level="warning", about="", text=text))
