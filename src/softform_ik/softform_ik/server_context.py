"""Context that the servers of one robot share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from softform_client.capture_watch import CaptureWatch
from softform_client.driver_watch import DriverWatch, MeasuredValues
from softform_client.reach_goal import Code
from softform_core.arrays import Array
from softform_core.forward.forward_model import ForwardModel
from softform_core.inverse.servo import ServoSettings
from softform_core.robots import Robot
from softform_ik.follow.follow import Follow, FollowSettings
from softform_ik.follow.motion import MotionSettings, PathMover
from softform_ik.follow.server import FollowServer
from softform_ik.follow.solver import PathSolver
from softform_ik.follow.tip_record import TipRecord
from softform_ik.reach.goal_execution import SolveSettings
from softform_ik.robot.commander import Commander
from softform_ik.robot.hardware import Hardware, HardwareSettings
from softform_ik.stream.intake import ServoIntake
from softform_ik.stream.streams import ServoStreams
from softform_interfaces.msg import MarkerFrame
from softform_ros.action_goals import GoalLedger
from softform_ros.goal_error import in_code
from softform_ros.lifecycle import SoftformLifecycleNode


def solve_settings(values: Mapping[str, Any], most_error_mm: float) -> SolveSettings:
    """Return the limits of a solve by the node's parameters; a target missed by more is out of reach."""
    return SolveSettings(
        values["tolerance"],
        values["max_time"],
        values["max_iterations"],
        values["starts"],
        values["preference"],
        most_error_mm,
    )


@dataclass(frozen=True)
class ServerContext:
    """A robot, how it is commanded, and the node that has the topics, actions, parameters and clock."""

    node: SoftformLifecycleNode
    robot: Robot
    driver: DriverWatch
    commander: Commander
    ledger: GoalLedger

    def hardware(
        self,
        captures: CaptureWatch,
        read_points: Callable[[object], Array],
        on_look: Callable[[Array, MeasuredValues], None] = lambda points, settled: None,
    ) -> Hardware:
        """Return the robot as a goal sees it; captures are read as (N, 3) m, and `on_look` gets each."""
        values = self.node.parameters
        waiting = HardwareSettings(
            settle_tolerance=self.robot.actuator_tolerances.arrive,
            settle_timeout=values["settle_timeout"],
            capture_timeout=values["capture_timeout"],
            captures=values["captures"],
        )
        return Hardware(self.robot, waiting, self.driver, captures, self.commander, read_points, on_look=on_look)

    def markers(self) -> CaptureWatch[MarkerFrame]:
        """Watch of captured markers, in the robot's frame; whoever subscribes to them feeds it."""

        def in_robot_frame(message: MarkerFrame) -> MarkerFrame:
            with in_code(Code.CAPTURE_INVALID):
                return self.node.frames.into(self.robot.base_frame, message)

        return CaptureWatch(read=in_robot_frame)

    def streams(
        self,
        model: Callable[[], ForwardModel],
        uv: Array,
        most_error_mm: float,
        least_smoothness_mm2: float = 0.0,
        dimensions: int = 3,
    ) -> ServoStreams:
        """Return the streams of targets of the robot.

        Args:
            model: Returns its present forward kinematics.
            uv: Points (M, 2) of the model that follow a shape.
            most_error_mm: A target that is missed by more, in the mean, is not followed.
            least_smoothness_mm2: Least value of the parameter `smoothness`, mm^2.
            dimensions: Coordinates of its tip, if it has one.
        """
        values, robot = self.node.parameters, self.robot
        settings = ServoSettings(
            robot.actuation_min,
            robot.actuation_max,
            robot.actuation_slew,
            1.0 / values["servo_rate"],
            values["stale_after"],
            most_error_mm,
            max(values["smoothness"], least_smoothness_mm2),
        )
        intake = ServoIntake(robot, settings.stale_after, dimensions)
        return ServoStreams(self.node, robot, intake, settings, model, uv, self.driver, self.commander)

    def follow_server(
        self, solver: PathSolver, most_error_mm: float, hardware: Hardware, tip: TipRecord
    ) -> FollowServer:
        """Return the action `follow_waypoints`; a waypoint missed by more than `most_error_mm` is out of reach.

        The record of the tip is empty for a robot without one.
        """
        values = self.node.parameters
        mover = PathMover(MotionSettings(1.0 / values["command_rate"]), self.driver, self.commander, hardware)
        arrive = self.robot.actuator_tolerances.arrive
        near = arrive if len(arrive) == self.robot.degrees_of_freedom else float(arrive.min())
        timing = FollowSettings(values["path_settle_time"], near, most_error_mm)
        follow = Follow(solver, timing, mover, tip)
        return FollowServer(self.node, self.robot, follow.run, self.ledger, self.driver, self.commander)
