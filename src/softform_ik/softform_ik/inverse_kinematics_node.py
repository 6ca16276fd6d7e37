"""Node `inverse_kinematics`: parameters, topics, the `reach_shape` action, life cycle; the work is done in `reach`."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle
from sensor_msgs.msg import PointCloud2

from softform_core.kinematics.live_pipeline import LivePipeline
from softform_core.robots import Robot, load_robot
from softform_core.units import MM_PER_M
from softform_ik.capture_watch import CaptureWatch
from softform_ik.closed_loop import ClosedLoopSettings
from softform_ik.course import SolveSettings
from softform_ik.driver_watch import DriverWatch
from softform_ik.feedback_throttle import FeedbackThrottle
from softform_ik.goal_checks import Code, ReachGoal
from softform_ik.hardware import Hardware, HardwareSettings
from softform_ik.held_command import HeldCommand
from softform_ik.messages import feedback_to_message, goal_from_message, result_to_message
from softform_ik.parameters import PARAMETERS
from softform_ik.reach import Reach, ReachOutcome, ReachSettings
from softform_ik.stop_request import StopRequest
from softform_ik.warm_up import warm_up
from softform_interfaces.action import ReachShape
from softform_interfaces.msg import ChamberPressures, DriverState
from softform_ros import qos
from softform_ros.action_goals import GoalLedger, in_worker
from softform_ros.conversions import points_from_cloud, seconds_from_stamp
from softform_ros.diagnostics import WARN, Health
from softform_ros.goal_error import GoalError
from softform_ros.lifecycle import SoftformLifecycleNode, run_node

_MODEL_PERIOD = 1.0
"""Seconds between looks for a newly trained sim-to-real model."""


class InverseKinematicsNode(SoftformLifecycleNode):
    """Serves `reach_shape`; solves in a worker thread so that the executor answers cancels and feeds the driver."""

    def __init__(self) -> None:
        """Declare the parameters; models are loaded by `configure`."""
        super().__init__("inverse_kinematics", PARAMETERS, hardware_id="inverse_kinematics")
        self._robot: Robot | None = None
        self._reach: Reach | None = None
        self._server: ActionServer | None = None
        self._workers: ThreadPoolExecutor | None = None
        self._accepted: ReachGoal | None = None
        self._stop = StopRequest()
        self._goals: dict[bytes, tuple[ReachGoal, StopRequest]] = {}
        self._ledger = GoalLedger(self)

    def configure(self) -> None:
        """Load robot and model, and open topics and the action."""
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
        waiting = HardwareSettings(
            settle_tolerance=values["settle_tolerance"],
            settle_timeout=values["settle_timeout"],
            capture_timeout=values["capture_timeout"],
            captures=values["captures"],
        )
        hardware = Hardware(robot, waiting, self._driver, self._captures, self._held, self._read_capture, self._now)
        settings = ReachSettings(
            SolveSettings(values["tolerance"], values["max_time"], values["max_iterations"]),
            ClosedLoopSettings(values["max_rounds"], values["gain"], values["least_improvement"]),
        )
        self._reach = Reach(robot, models, settings, hardware)
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
        self._workers = ThreadPoolExecutor(max_workers=1, thread_name_prefix="reach")
        self._server = ActionServer(
            self,
            ReachShape,
            "reach_shape",
            execute_callback=self._execute,
            goal_callback=self._on_goal,
            handle_accepted_callback=self._on_accepted,
            cancel_callback=self._on_cancel,
        )
        model_in_use = models.description()["sim-to-real"]
        self.get_logger().info(
            f"ready to plan for '{robot.name}' over {len(models.current.uv)} points, sim-to-real: {model_in_use}"
        )

    def activate(self) -> None:
        """Allow commands."""
        self._held.enable()

    def deactivate(self) -> None:
        """End the goal and hold nothing: the driver's watchdog vents the robot."""
        self._stop.request(Code.NODE_DEACTIVATED)
        if self._reach is not None and self._held.disable():
            self.get_logger().info("deactivated: the shape is no longer held, the driver vents the robot")

    def cleanup(self) -> None:
        """Close topics and the action."""
        self._stop.request(Code.NODE_DEACTIVATED)
        if self._workers is not None:
            self._workers.shutdown(wait=True)
            self._workers = None
        if self._server is not None:
            self._server.destroy()
            self._server = None
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
        self._reach = None

    def health(self) -> Health:
        """Say what the last goal came to, and why the last refused one was refused."""
        values = {
            "active": self.is_active,
            "holding a shape": self._held.pressures is not None,
            **self._ledger.values(),
            **self._models.description(),
        }
        if self._models.fault:
            return Health(WARN, f"sim-to-real model not in use: {self._models.fault}", values)
        return self._ledger.health(values)

    def _refresh_models(self) -> None:
        line = self._models.refresh()
        if line is None:
            return
        log = self.get_logger()
        (log.warning if self._models.fault else log.info)(line)
        self.diagnostics.publish()

    def _now(self) -> float:
        return time.time()

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
        # After a stop the shape must not come back by itself when the driver is reset.
        if self._driver.note_state(message.state, message.reason) and self._held.release():
            self.get_logger().warning(f"the driver stopped following: {message.reason}; the shape is no longer held")

    def _on_cloud(self, message: PointCloud2) -> None:
        self._captures.note(message, seconds_from_stamp(message.header.stamp))

    def _on_goal(self, message: ReachShape.Goal) -> GoalResponse:
        assert self._robot is not None
        try:
            if not self.is_active:
                raise GoalError(Code.NODE_DEACTIVATED, "The node is not active.", "Activate it first.")
            goal = goal_from_message(
                message, self._robot, self.parameters["frame"], self._now(), self.parameters["max_target_age"]
            )
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
        self._goals[bytes(handle.goal_id.uuid)] = (self._accepted, self._stop)
        handle.execute()

    def _on_cancel(self, handle: ServerGoalHandle) -> CancelResponse:
        _, stop = self._goals[bytes(handle.goal_id.uuid)]
        stop.request(Code.CANCELLED)
        return CancelResponse.ACCEPT

    async def _execute(self, handle: ServerGoalHandle) -> ReachShape.Result:
        assert self._workers is not None and self._reach is not None
        goal, stop = self._goals[bytes(handle.goal_id.uuid)]
        throttle = FeedbackThrottle(
            lambda progress: handle.publish_feedback(feedback_to_message(progress)), self.parameters["feedback_rate"]
        )
        reach = self._reach
        outcome: ReachOutcome = await in_worker(self, self._workers, lambda: reach.run(goal, stop, throttle))
        del self._goals[bytes(handle.goal_id.uuid)]
        self._ledger.conclude(handle, outcome.code, outcome.message, _summary(outcome))
        return result_to_message(outcome, self.parameters["frame"], self.get_clock().now().to_msg())


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


def main() -> None:
    """Run the node until SIGINT or SIGTERM."""
    run_node(InverseKinematicsNode)


if __name__ == "__main__":
    main()
