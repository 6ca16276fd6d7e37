"""Node `inverse_kinematics`: parameters, models, driver and captures, life cycle; its servers do the rest."""

from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import PointCloud2

from softform_core.kinematics.live_pipeline import LivePipeline
from softform_core.robots import Robot, load_robot
from softform_ik.capture_watch import CaptureWatch
from softform_ik.closed_loop import ClosedLoopSettings
from softform_ik.commander import Commander
from softform_ik.course import SolveSettings
from softform_ik.driver_watch import DriverWatch
from softform_ik.goal_checks import Code
from softform_ik.hardware import Hardware, HardwareSettings
from softform_ik.held_command import HeldCommand
from softform_ik.parameters import PARAMETERS
from softform_ik.reach import Reach, ReachSettings
from softform_ik.reach_server import ReachServer
from softform_ik.servo_streams import ServoStreams
from softform_ik.warm_up import warm_up
from softform_interfaces.msg import ChamberPressures, DriverState
from softform_ros import qos
from softform_ros.action_goals import GoalLedger
from softform_ros.conversions import points_from_cloud, seconds_from_stamp
from softform_ros.diagnostics import OK, WARN, Health
from softform_ros.goal_error import GoalError
from softform_ros.lifecycle import SoftformLifecycleNode, run_node

_MODEL_PERIOD = 1.0
"""Seconds between looks for a newly trained sim-to-real model."""


class Server(Protocol):
    """What the node offers to others: an action, or streams."""

    def end_goals(self) -> None:
        """Ask what is under way to end, since the node is deactivated."""

    def close(self) -> None:
        """End what is under way and close what is open."""


class InverseKinematicsNode(SoftformLifecycleNode):
    """One robot, its models, its driver and its held command, shared by the servers that command it in turn."""

    def __init__(self) -> None:
        """Declare the parameters; models are loaded by `configure`."""
        super().__init__("inverse_kinematics", PARAMETERS, hardware_id="inverse_kinematics")
        self._robot: Robot | None = None
        self._servers: list[Server] = []
        self._ledger = GoalLedger(self)

    def configure(self) -> None:
        """Load robot and models, and open topics and servers."""
        values = self.parameters
        robot = self._robot = load_robot(values["robot"])
        self.diagnostics.hardware_id = robot.name
        model = Path(values["model"]) if values["model"] else None
        models = self._models = LivePipeline(robot, values["surface_points"], model, values["sim_to_real"])
        warm_up(models.simulated, robot)
        warm_up(models.current, robot)
        self._driver = DriverWatch(robot, values["state_timeout"])
        self._captures: CaptureWatch[PointCloud2] = CaptureWatch()
        self._commands = self.create_publisher(ChamberPressures, "pressure_command", qos.PRESSURE_COMMAND)
        self._held = HeldCommand(self._publish_command)
        self._commander = Commander(self._held)
        waiting = HardwareSettings(
            settle_tolerance=values["settle_tolerance"],
            settle_timeout=values["settle_timeout"],
            capture_timeout=values["capture_timeout"],
            captures=values["captures"],
        )
        hardware = Hardware(robot, waiting, self._driver, self._captures, self._commander, self._read_capture)
        settings = ReachSettings(
            SolveSettings(
                values["tolerance"],
                values["max_time"],
                values["max_iterations"],
                values["starts"],
                values["preference"],
            ),
            ClosedLoopSettings(values["max_rounds"], values["gain"], values["least_improvement"]),
        )
        reach = Reach(robot, models, settings, hardware)
        self._state_subscription = self.create_subscription(
            ChamberPressures, "pressure_state", self._on_pressures, qos.PRESSURE_STATE_READER
        )
        self._driver_subscription = self.create_subscription(
            DriverState, "driver_state", self._on_driver_state, qos.LATCHED_STATE
        )
        self._cloud_subscription = self.create_subscription(
            PointCloud2, "captured_cloud", self._on_cloud, qos.CAPTURED_CLOUD
        )
        self._model_timer = self.create_timer(_MODEL_PERIOD, self._refresh_models)
        self._hold_timer = self.create_timer(1.0 / values["command_rate"], self._held.repeat)
        self._streams = ServoStreams(self, robot, lambda: models.current, self._driver, self._commander)
        self._servers = [
            self._streams,
            ReachServer(self, robot, reach, self._driver, self._commander, self._ledger),
        ]
        model_in_use = models.description()["sim-to-real"]
        self.get_logger().info(
            f"ready to plan for '{robot.name}' over {len(models.current.uv)} points, sim-to-real: {model_in_use}"
        )

    def activate(self) -> None:
        """Allow commands."""
        self._commander.enable()

    def deactivate(self) -> None:
        """End the goals and hold nothing: the driver's watchdog vents the robot."""
        for server in self._servers:
            server.end_goals()
        if self._servers and self._commander.disable():
            self.get_logger().info("deactivated: the shape is no longer held, the driver vents the robot")

    def cleanup(self) -> None:
        """Close topics and servers."""
        while self._servers:
            self._servers.pop().close()
        for name, destroy in (
            ("_hold_timer", self.destroy_timer),
            ("_model_timer", self.destroy_timer),
            ("_cloud_subscription", self.destroy_subscription),
            ("_driver_subscription", self.destroy_subscription),
            ("_state_subscription", self.destroy_subscription),
            ("_commands", self.destroy_publisher),
        ):
            if hasattr(self, name):
                destroy(getattr(self, name))
                delattr(self, name)

    def health(self) -> Health:
        """Say what the last goal came to, whether the stream is followed, and why what was refused was refused."""
        streams = self._streams.health()
        values = {
            "active": self.is_active,
            "holding a shape": self._held.pressures is not None,
            **self._ledger.values(),
            **streams.values,
            **self._models.description(),
        }
        if self._models.fault:
            return Health(WARN, f"sim-to-real model not in use: {self._models.fault}", values)
        if streams.level != OK:
            return Health(streams.level, streams.message, values)
        return self._ledger.health(values)

    def _refresh_models(self) -> None:
        line = self._models.refresh()
        if line is None:
            return
        # rclpy refuses another severity from the same line of code.
        if self._models.fault:
            self.get_logger().warning(line)
        else:
            self.get_logger().info(line)
        self.diagnostics.publish()

    def _publish_command(self, pressures: NDArray[np.float64]) -> None:
        assert self._robot is not None
        message = ChamberPressures(name=self._robot.chambers, pressure=pressures.tolist())
        message.header.stamp = self.get_clock().now().to_msg()
        self._commands.publish(message)

    def _read_capture(self, cloud: PointCloud2) -> NDArray[np.float64]:
        expected = self.parameters["frame"]
        if cloud.header.frame_id != expected:
            raise GoalError(
                Code.CAPTURE_INVALID,
                f"The captured cloud is in frame '{cloud.header.frame_id}', not in '{expected}'.",
                "Set the scanner's registration.",
            )
        return points_from_cloud(cloud)

    def _on_pressures(self, message: ChamberPressures) -> None:
        self._driver.note_pressures(
            message.name, message.pressure, message.status, seconds_from_stamp(message.header.stamp)
        )

    def _on_driver_state(self, message: DriverState) -> None:
        # After a stop the shape must not come back by itself when the driver is reset, nor for a target from before.
        followed = self._driver.follows
        stopped = self._driver.note_state(message.state, message.reason)
        if (stopped or not followed) and self._commander.release():
            self.get_logger().warning(f"the driver stopped following: {message.reason}; the shape is no longer held")

    def _on_cloud(self, message: PointCloud2) -> None:
        self._captures.note(message, seconds_from_stamp(message.header.stamp))


def main() -> None:
    """Run the node until SIGINT or SIGTERM."""
    run_node(InverseKinematicsNode)


if __name__ == "__main__":
    main()
