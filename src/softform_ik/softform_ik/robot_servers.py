"""What the servers of every robot have in common: its driver, captures, stream, and the life of the servers."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from softform_client.capture_watch import CaptureWatch
from softform_client.driver_watch import DriverWatch, MeasuredValues
from softform_core.arrays import Array
from softform_core.forward.robot_models import RobotModels
from softform_core.inverse.out_of_reach import largest_deformation
from softform_core.inverse.servo import ServoSettings
from softform_core.robots import Robot
from softform_ik.follow.follow import Follow, FollowServer, FollowSettings, TipRecord
from softform_ik.follow.motion import PathMover
from softform_ik.follow.solver import PathSolver
from softform_ik.goals.goal_server import MovingGoalServer, unknown_past
from softform_ik.goals.reach_limit import ReachSettings
from softform_ik.reach.reach import Reach, ReachServer
from softform_ik.robot.commander import Commander
from softform_ik.robot.hardware import Hardware, HardwareSettings
from softform_ik.stream.intake import ServoIntake
from softform_ik.stream.streams import ServoStreams
from softform_interfaces.msg import MarkerFrame
from softform_ros import qos
from softform_ros.action_goals import GoalLedger
from softform_ros.diagnostics import WARN, Health
from softform_ros.goal_error import GoalCode, in_code
from softform_ros.lifecycle import SoftformLifecycleNode
from softform_ros.parameters import settings_from


class _Server(Protocol):
    """What is open from `configure` to `cleanup`."""

    def end_goals(self) -> None: ...

    def close(self) -> None: ...


Models = TypeVar("Models", bound=RobotModels)


class RobotServers(ABC, Generic[Models]):
    """Servers of one robot, and what they share; a subclass opens those that fit it.

    Args:
        node: Has the topics, actions, parameters and clock.
        robot: The robot.
        driver: State of its driver.
        commander: Owner of its held command.
        ledger: Outcomes of the node's goals.
        models: Its models.

    Attributes:
        reach_parameter: Parameter with the share of the largest deformation; who misses by more is out of reach.

    Raises:
        SoftformError: If its models cannot be used.
    """

    reach_parameter: ClassVar[str]

    def __init__(
        self,
        node: SoftformLifecycleNode,
        robot: Robot,
        driver: DriverWatch,
        commander: Commander,
        ledger: GoalLedger,
        models: Models,
    ) -> None:
        self.node, self.robot, self.driver, self.ledger, self.models = node, robot, driver, ledger, models
        self._commander = commander
        values = node.parameters
        deformation_mm = largest_deformation(
            self.simulated, robot.actuation_min, robot.actuation_max, models.simulated.is_solved
        )
        most_error_mm = values[self.reach_parameter] * deformation_mm
        self.settings = settings_from(ReachSettings, values, most_error_mm=most_error_mm)
        self.markers: CaptureWatch[MarkerFrame] = CaptureWatch(read=self._in_robot_frame)
        node.subscribe(MarkerFrame, "captured_markers", self.on_markers, qos.CAPTURED_MARKERS)
        self._servers: list[_Server] = []
        self._streams: ServoStreams
        self.open()

    @abstractmethod
    def simulated(self, actuation: Array) -> Array:
        """Return the points (n, ..., d) mm that the simulated robot shows under actuations (n, m)."""

    @abstractmethod
    def open(self) -> None:
        """Open the stream and the servers."""

    def serve(self, *servers: _Server) -> None:
        """Take servers whose goals end, and which close, with the others."""
        self._servers += servers

    def end_goals(self) -> None:
        """Ask what is under way to end, since the node is deactivated."""
        for server in self._servers:
            server.end_goals()

    def end_without_client(self) -> None:
        """Ask goals that move the robot to end whose client is gone."""
        for server in self._servers:
            if isinstance(server, MovingGoalServer):
                server.end_without_client()

    def close(self) -> None:
        """End what is under way and close what is open."""
        for server in self._servers:
            server.close()

    @property
    def warning(self) -> str:
        """What is wrong with the models; empty if nothing is."""
        return f"sim-to-real model not in use: {self.models.fault}" if self.models.fault else ""

    def health(self) -> Health:
        """Return whether the models are in use and the stream is followed, and details of both."""
        streams = self._streams.health()
        values = {**streams.values, **self.models.description()}
        if self.warning:
            return Health(WARN, self.warning, values)
        return Health(streams.level, streams.message, values)

    def hardware(
        self,
        captures: CaptureWatch,
        read_points: Callable[[object], Array],
        on_look: Callable[[Array, MeasuredValues], None] = lambda points, settled: None,
    ) -> Hardware:
        """Return the robot as a goal sees it; captures are read as (N, 3) m, and `on_look` gets each."""
        tolerance = self.robot.actuator_tolerances.arrive
        waiting = settings_from(HardwareSettings, self.node.parameters, settle_tolerance=tolerance)
        return Hardware(self.robot, waiting, self.driver, captures, self._commander, read_points, on_look=on_look)

    def serve_stream(self, uv: Array, least_smoothness_mm2: float = 0.0, dimensions: int = 3) -> None:
        """Serve the streams of targets.

        Args:
            uv: Points (M, 2) of the present model that follow a shape.
            least_smoothness_mm2: Least value of the parameter `smoothness`, mm^2.
            dimensions: Coordinates of the robot's tip, if it has one.
        """
        values, robot = self.node.parameters, self.robot
        settings = ServoSettings(
            robot.actuation_min,
            robot.actuation_max,
            robot.actuation_slew,
            1.0 / values["servo_rate"],
            values["stale_after"],
            self.settings.most_error_mm,
            max(values["smoothness"], least_smoothness_mm2),
        )
        intake = ServoIntake(robot, settings.stale_after, dimensions)
        self._streams = ServoStreams(
            self.node, robot, intake, settings, lambda: self.models.current, uv, self.driver, self._commander
        )
        self.serve(self._streams)

    def serve_goals(self, hardware: Hardware, paths: PathSolver, tip: TipRecord) -> None:
        """Serve the actions that move the robot: `reach_shape`, and `follow_waypoints` by a solver of its paths.

        The record of the tip is empty for a robot without one.
        """
        values = self.node.parameters
        reach = Reach(self.robot, self.models, self.settings, hardware)
        mover = PathMover(1.0 / values["command_rate"], self.driver, self._commander, hardware)
        arrive = self.robot.actuator_tolerances.arrive
        near = arrive if len(arrive) == self.robot.degrees_of_freedom else float(arrive.min())
        timing = FollowSettings(values["path_settle_time"], near, self.settings.most_error_mm)
        follow = Follow(paths, timing, mover, tip)
        shared = self.ledger, unknown_past(self.driver, self.models), self.driver, self._commander
        self.serve(
            ReachServer(self.node, self.robot, reach.run, *shared),
            FollowServer(self.node, self.robot, follow.run, *shared),
        )

    def on_markers(self, message: MarkerFrame) -> None:
        """Take captured markers."""
        self.markers.take(message)

    def _in_robot_frame(self, message: Any) -> Any:
        with in_code(GoalCode.CAPTURE_INVALID):
            return self.node.frames.into(self.robot.base_frame, message)
