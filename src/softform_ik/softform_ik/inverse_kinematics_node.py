"""Node `inverse_kinematics`: parameters, driver, the held command, life cycle; the servers of its robot do the rest."""

from std_srvs.srv import Trigger

from softform_client.driver_watch import DriverWatch
from softform_client.held_command import HeldCommand
from softform_client.steering_watch import LOOK_SECONDS, SteeringWatch
from softform_core import priority
from softform_core.errors import SoftformError
from softform_core.forward.robot_models import SurfaceModels, TipModels, open_models
from softform_core.robots import load_robot
from softform_ik.goals.reach_limit import REACH_PARAMETER, TIP_REACH_PARAMETER, ReachSettings
from softform_ik.robot.commander import Commander
from softform_ik.surface_servers import SurfaceServers
from softform_ik.tip_servers import TipServers
from softform_ik.warm_up import warm_up
from softform_interfaces.msg import DriverState, SteeringBeat
from softform_ros import qos
from softform_ros.action_goals import GoalLedger
from softform_ros.command_lease import CommandLease
from softform_ros.diagnostics import OK, Health
from softform_ros.lifecycle import SoftformLifecycleNode, run_node
from softform_ros.node_models import open_node_models
from softform_ros.parameters import MODEL_PARAMETERS, Parameter
from softform_ros.timers import create_steady_timer

PARAMETERS = (
    *MODEL_PARAMETERS,
    REACH_PARAMETER,
    TIP_REACH_PARAMETER,
    Parameter("surface_points", 1000, "points of the surface whose distances to the target are minimised", 100, 10000),
    Parameter("tolerance", ReachSettings.tolerance,
        "mean error at which a solve may stop when the goal does not say, m", 0.0, 0.1),
    Parameter("max_time", ReachSettings.max_time, "time for solving when the goal does not say, s", 0.01, 600.0),
    Parameter("max_iterations", ReachSettings.max_iterations, "most iterations of a solve", 1, 10000),
    Parameter("starts", ReachSettings.starts,
        "starts of a global search when the goal does not say; 1: the seed's alone", 1, 1000),
    Parameter("preference", ReachSettings.preference,
        "squared error worth an actuator's whole range from the preferred values when the goal gives none, mm^2",
        0.0, 1e4),
    Parameter("max_target_age", 60.0, "targets stamped longer ago than this are rejected, s", 0.1, 1e6),
    Parameter("command_rate", 10.0, "repetitions of the command while the robot holds a shape, Hz", 2.0, 50.0),
    Parameter("state_timeout", 1.0, "values measured longer ago than this count as lost, s", 0.1, 10.0),
    Parameter("settle_timeout", 30.0, "time for the robot to settle, s", 0.5, 600.0),
    Parameter("capture_timeout", 60.0,
        "time to wait for each captured cloud of the settled robot, and at most 3 s of it for each frame of markers, s",
        0.5, 600.0),
    Parameter("captures", 1,
        "clouds of the settled robot that make one measurement: a hole in one may be seen in another", 1, 20),
    Parameter("max_rounds", ReachSettings.max_rounds,
        "corrections of the closed loop when the goal does not say", 1, 100),
    Parameter("gain", ReachSettings.gain, "share of each measured residual that the closed loop corrects", 0.1, 1.0),
    Parameter("least_improvement", ReachSettings.least_improvement,
        "share by which the closed loop must expect to lower the mean error to go on",
        0.0, 0.5),
    Parameter("servo_rate", 50.0, "least commands a second while targets stream in, Hz", 5.0, 200.0),
    Parameter("servo_points", 400, "points of the surface whose distances to a streamed target are minimised",
        100, 10000),
    Parameter("realtime_priority", priority.STREAM,
        "SCHED_FIFO priority of the servo's threads, if the system grants it; 0 for none; keep it below the driver's",
        0, 80),
    Parameter("stale_after", 0.5, "a target that came longer ago is not followed: the robot holds, s", 0.05, 10.0),
    Parameter("smoothness", 0.0,
        "squared error that one actuator's whole range between two answers to the stream is worth, mm^2", 0.0, 1e4),
    Parameter("path_settle_time", 1.0, "least time at each waypoint of a path without times: for the body to settle, s",
        0.0, 60.0),
    Parameter("path_smoothness", 0.01,
        "squared error that one actuator's whole range between two waypoints is worth, mm^2", 0.0, 1e4),
    Parameter("feedback_rate", 20.0, "most feedback messages a second, Hz", 1.0, 20.0),
)  # fmt: skip


class InverseKinematicsNode(SoftformLifecycleNode):
    """One robot, its driver and its held command, shared by the servers that command it in turn."""

    def __init__(self) -> None:
        super().__init__("inverse_kinematics", PARAMETERS, hardware_id="inverse_kinematics")
        self._servers: SurfaceServers | TipServers | None = None
        self._ledger = GoalLedger(self)
        self.frames.listen()

    def configure(self) -> None:
        """Load robot and models, and open topics and servers."""
        values = self.parameters
        robot = load_robot(values["robot"]).in_namespace(self.get_namespace())
        robot.body.prepare()
        self.diagnostics.hardware_id = robot.name
        self._driver = DriverWatch(robot, values["state_timeout"], source=self.get_name())
        self._lease = CommandLease(self, robot)
        self.opened.callback(self._lease.close)
        self._held = HeldCommand(self._lease.send)
        self._commander = Commander(self._held, self._lease, values["stale_after"])
        shared = self, robot, self._driver, self._commander, self._ledger
        models = open_node_models(self, robot, open_models, lambda other: warm_up(other, robot))
        if isinstance(models, SurfaceModels):
            self._servers = SurfaceServers(*shared, models)
        elif isinstance(models, TipModels):
            self._servers = TipServers(*shared, models)
        self._driver.listen(self, self.opened)
        self.subscribe(DriverState, "driver_state", self._on_driver_state, qos.LATCHED_STATE)
        commander = self._commander
        self._watch = SteeringWatch(
            commander.release, lambda: commander.is_moved_by_goal, lambda: commander.is_held_by_goal
        )
        self.opened.callback(self.destroy_timer, create_steady_timer(self, LOOK_SECONDS, self._look))
        self.subscribe(SteeringBeat, "steering_beat", self._on_beat, qos.STEERING_BEAT)
        self.opened.callback(self.destroy_service, self.create_service(Trigger, "release", self._on_release))
        self._commander.note_alive()  # to load the models took its time
        hold_timer = create_steady_timer(self, 1.0 / values["command_rate"], self._hold_on)
        self.opened.callback(self.destroy_timer, hold_timer)

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

    def health(self) -> Health:
        """Return the outcome of the last goal, reason of the last rejection, and state of the servers."""
        assert self._servers is not None
        servers = self._servers.health()
        values = {
            "active": self.is_active,
            "holding a shape": self._held.values is not None,
            **self._ledger.values(),
            **servers.values,
        }
        return self._ledger.health(values) if servers.level == OK else Health(servers.level, servers.message, values)

    def _hold_on(self) -> None:
        """Renew the lease by repeating the held command; see whether goals still have a client."""
        if self._commander.note_alive():
            self.get_logger().warning("this node stood still; what was asked for before is over")
        self._held.repeat()
        if self._servers is not None:
            self._servers.end_without_client()

    def _look(self) -> None:
        """Let go of the robot if who steers it has vanished, whatever the rate of commands."""
        if vanished := self._watch.look():
            self.get_logger().warning(f"{vanished} The shape is no longer held")

    def _on_beat(self, message: SteeringBeat) -> None:
        try:
            self._watch.note(message.sender, message.dead_man, message.of_goal)
        except SoftformError as error:
            self.get_logger().warning(f"a beat was rejected: {error}", throttle_duration_sec=5.0)

    def _on_release(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success = True
        released = self._commander.let_go()
        response.message = "Released; the driver makes the robot safe." if released else "Nothing was held."
        return response

    def _on_driver_state(self, message: DriverState) -> None:
        # After a stop the shape must not come back by itself when the driver is reset, nor for a target from before.
        followed = self._driver.follows
        dead = self._lease.note(message)
        stopped = self._driver.note_driver(message)
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
