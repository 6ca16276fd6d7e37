"""What the servers of one robot share."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
from softform_ik.robot.commander import Commander
from softform_ik.robot.hardware import Hardware, HardwareSettings
from softform_ik.stream.intake import ServoIntake
from softform_ik.stream.streams import ServoStreams
from softform_interfaces.msg import MarkerFrame
from softform_ros.action_goals import GoalLedger
from softform_ros.goal_error import in_code
from softform_ros.lifecycle import SoftformLifecycleNode


@dataclass(frozen=True)
class ServerContext:
    """A robot, and how it is commanded.

    Attributes:
        node: Node that has the topics, actions, parameters and clock.
        driver: State of the driver.
        commander: Owner of the held command.
        ledger: Outcomes of the node's goals.
    """

    node: SoftformLifecycleNode
    driver: DriverWatch
    commander: Commander
    ledger: GoalLedger

    def hardware(
        self,
        robot: Robot,
        captures: CaptureWatch,
        read_points: Callable[[object], NDArray[np.float64]],
        on_look: Callable[[NDArray[np.float64], MeasuredValues], None] = lambda points, settled: None,
    ) -> Hardware:
        """The robot as a goal sees it; captures are read as (N, 3) m, and `on_look` gets each."""
        values = self.node.parameters
        waiting = HardwareSettings(
            settle_tolerance=robot.tolerances.arrive,
            settle_timeout=values["settle_timeout"],
            capture_timeout=values["capture_timeout"],
            captures=values["captures"],
        )
        return Hardware(robot, waiting, self.driver, captures, self.commander, read_points, on_look=on_look)

    def markers(self, robot: Robot) -> CaptureWatch[MarkerFrame]:
        """Watch of captured markers, in the robot's frame; whoever subscribes to them feeds it."""

        def in_robot_frame(message: MarkerFrame) -> MarkerFrame:
            with in_code(Code.CAPTURE_INVALID):
                return self.node.frames.into(robot.base_frame, message)

        return CaptureWatch(read=in_robot_frame)

    def streams(
        self,
        robot: Robot,
        model: Callable[[], ForwardModel],
        uv: Array,
        most_error_mm: float,
        least_smoothness_mm2: float = 0.0,
        dimensions: int = 3,
    ) -> ServoStreams:
        """The streams of targets of a robot.

        Args:
            robot: The robot.
            model: Returns its present forward kinematics.
            uv: Points (M, 2) of the model that follow a shape.
            most_error_mm: A target that is missed by more, in the mean, is not followed.
            least_smoothness_mm2: As the parameter `smoothness`, where that is less.
            dimensions: Coordinates of its tip, if it has one.
        """
        values = self.node.parameters
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
        self, robot: Robot, solver: PathSolver, most_error_mm: float, hardware: Hardware, tip: TipRecord
    ) -> FollowServer:
        """The action `follow_waypoints` of a robot.

        Args:
            robot: The robot.
            solver: Solver of the robot's paths.
            most_error_mm: A waypoint that is missed by more is out of reach.
            hardware: The robot as a goal sees it.
            tip: Tip positions seen by motion capture; empty for a robot without a tip.
        """
        values = self.node.parameters
        moving = MotionSettings(
            command_period=1.0 / values["command_rate"],
            settle_tolerance=robot.tolerances.arrive,
            settle_timeout=values["settle_timeout"],
        )
        timing = FollowSettings(values["path_settle_time"], robot.tolerances.arrive, most_error_mm)
        follow = Follow(solver, timing, PathMover(moving, self.driver, self.commander, hardware), tip)
        return FollowServer(self.node, robot, follow, self.driver, self.commander, self.ledger)
