"""Node `inverse_kinematics`: parameters, driver, the held command, life cycle; the servers of its robot do the rest."""

from typing import Protocol

from std_srvs.srv import Trigger

from softform_client.driver_watch import DriverWatch
from softform_client.held_command import HeldCommand
from softform_core.robots import Robot, load_robot
from softform_ik.parameters import PARAMETERS
from softform_ik.robot.commander import Commander
from softform_ik.server_context import ServerContext
from softform_ik.surface_servers import SurfaceServers
from softform_ik.tip_servers import TipServers
from softform_interfaces.msg import ActuatorState, DriverState
from softform_ros import qos
from softform_ros.action_goals import GoalLedger
from softform_ros.command_lease import CommandLease
from softform_ros.conversions import seconds_from_stamp
from softform_ros.diagnostics import OK, Health
from softform_ros.lifecycle import SoftformLifecycleNode, run_node
from softform_ros.timers import create_steady_timer


class Servers(Protocol):
    """What the node offers to others for one robot: actions and streams."""

    def end_goals(self) -> None:
        """Ask what is under way to end, since the node is deactivated."""

    def close(self) -> None:
        """End what is under way and close what is open."""

    def health(self) -> Health:
        """Health of the node's parts."""


class InverseKinematicsNode(SoftformLifecycleNode):
    """One robot, its driver and its held command, shared by the servers that command it in turn."""

    def __init__(self) -> None:
        super().__init__("inverse_kinematics", PARAMETERS, hardware_id="inverse_kinematics")
        self._robot: Robot | None = None
        self._servers: Servers | None = None
        self._ledger = GoalLedger(self)
        self.frames.listen()

    def configure(self) -> None:
        """Load robot and models, and open topics and servers."""
        values = self.parameters
        robot = self._robot = load_robot(values["robot"])
        self.diagnostics.hardware_id = robot.name
        self._driver = DriverWatch(robot, values["state_timeout"], source=self.get_name())
        self._lease = CommandLease(self, robot.actuators, robot.unit)
        self._held = HeldCommand(self._lease.send)
        self._commander = Commander(self._held, self._lease, values["stale_after"])
        link = ServerContext(self, self._driver, self._commander, self._ledger)
        self._servers = SurfaceServers(link, robot) if robot.surfaces else TipServers(link, robot)
        self._state_subscription = self.create_subscription(
            ActuatorState, "actuator_state", self._on_actuator_state, qos.ACTUATOR_STATE_READER
        )
        self._driver_subscription = self.create_subscription(
            DriverState, "driver_state", self._on_driver_state, qos.LATCHED_STATE
        )
        self._release_service = self.create_service(Trigger, "release", self._on_release)
        self._hold_timer = create_steady_timer(self, 1.0 / values["command_rate"], self._hold_on)

    def activate(self) -> None:
        """Allow commands."""
        self._commander.enable()

    def deactivate(self) -> None:
        """End the goals, hold nothing and give the lease up: the driver makes the robot safe."""
        if self._servers is None:
            return
        self._servers.end_goals()
        if self._commander.disable():
            self.get_logger().info("deactivated: the shape is no longer held, the driver makes the robot safe")

    def cleanup(self) -> None:
        """Close topics and servers."""
        if self._servers is not None:
            self._servers.close()
            self._servers = None
        for name, destroy in (
            ("_hold_timer", self.destroy_timer),
            ("_driver_subscription", self.destroy_subscription),
            ("_state_subscription", self.destroy_subscription),
            ("_release_service", self.destroy_service),
        ):
            if hasattr(self, name):
                destroy(getattr(self, name))
                delattr(self, name)
        if hasattr(self, "_lease"):
            self._lease.close()
            del self._lease

    def health(self) -> Health:
        """Outcome of the last goal, reason of the last rejection, and state of the servers."""
        assert self._servers is not None
        servers = self._servers.health()
        values = {
            "active": self.is_active,
            "holding a shape": self._held.values is not None,
            "held without renewal (s)": f"{self._commander.held_for:.0f} of {self.parameters['hold_timeout']:g}",
            **self._ledger.values(),
            **servers.values,
        }
        return self._ledger.health(values) if servers.level == OK else Health(servers.level, servers.message, values)

    def _hold_on(self) -> None:
        """Renew the lease by repeating the held command, until `hold_timeout` is over."""
        if self._commander.held_for > self.parameters["hold_timeout"]:
            self._commander.release()
            self.get_logger().warning(
                f"the shape was held for {self.parameters['hold_timeout']:g} s (hold_timeout) and not renewed: "
                "the driver makes the robot safe"
            )
        self._held.repeat()

    def _on_release(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success = True
        released = self._commander.release()
        response.message = "Released; the driver makes the robot safe." if released else "Nothing was held."
        return response

    def _on_actuator_state(self, message: ActuatorState) -> None:
        self._driver.note_values(message.name, message.value, message.status, seconds_from_stamp(message.header.stamp))

    def _on_driver_state(self, message: DriverState) -> None:
        # After a stop the shape must not come back by itself when the driver is reset, nor for a target from before.
        followed = self._driver.follows
        dead = self._lease.note(message)
        stopped = self._driver.note_state(message.state, message.reason, message.holder)
        is_back = not followed and self._driver.follows
        if (dead or stopped or is_back) and self._commander.release(f"The driver: {message.reason}."):
            self.get_logger().warning(
                f"the driver no longer follows this node: {message.reason}; the shape is no longer held"
            )


def main() -> None:
    """Run the node until SIGINT or SIGTERM."""
    run_node(InverseKinematicsNode)


if __name__ == "__main__":
    main()
