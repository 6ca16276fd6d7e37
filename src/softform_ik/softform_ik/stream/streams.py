"""The streams of the servo: targets in, its state out; the work is done in `loop`."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription

from softform_client.driver_watch import DriverWatch
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.forward_model import ForwardModel
from softform_core.inverse.servo import Servo, ServoSettings
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_ik.robot.commander import Commander
from softform_ik.stream.intake import ServoIntake
from softform_ik.stream.loop import ServoLoop, ServoReport
from softform_ik.stream.scheduling import StreamPriority
from softform_interfaces.msg import ServoState
from softform_ros import qos
from softform_ros.conversions import stamp_from_nanoseconds
from softform_ros.diagnostics import ERROR, OK, WARN, Health
from softform_ros.lifecycle import SoftformLifecycleNode

_TELL_SECONDS = 1.0
"""Least time between two log entries on rejected targets, s."""


class ServoStreams:
    """The topics of targets that `ServoIntake` has for the robot, and `servo_state`.

    Targets are unpacked and prepared by the executor, so that the servo's thread only solves. A newly trained model is
    taken into use with the next target.
    The points `uv`, (M, 2), of the present forward kinematics, `model`, follow a shape.
    """

    def __init__(
        self,
        node: SoftformLifecycleNode,
        robot: Robot,
        intake: ServoIntake,
        settings: ServoSettings,
        model: Callable[[], ForwardModel],
        uv: Array,
        driver: DriverWatch,
        commander: Commander,
    ) -> None:
        self._node, self._intake, self._commander, self._frame = node, intake, commander, robot.base_frame
        self._driver, self._warned = driver, False
        self._targets = self._rejected = 0
        self._last_rejection = ""
        self._rejection_told_at = -_TELL_SECONDS
        self._states = node.create_publisher(ServoState, "servo_state", qos.SERVO_STATE)
        self._last_published = ServoReport()
        self._current, self._uv = model, uv
        self._priority = StreamPriority(node.parameters["realtime_priority"], settings.period)
        self._take_model()
        self._loop = ServoLoop(
            robot,
            Servo(settings),
            settings.period,
            lambda: self._model,
            commander,
            driver,
            self._on_report,
            self._on_cost,
        )
        self._subscriptions: dict[str, Subscription] = {}
        for name in intake.topics:
            self._listen(name, qos.TARGET_READER)
        self._loop.start()
        self._priority.begin()  # of executor and middleware too: a target that is taken late is answered late

    def end_goals(self) -> None:
        """Do nothing: a disabled commander admits no target."""

    def close(self) -> None:
        """End the servo's thread and close the topics."""
        self._loop.stop()
        for subscription in self._subscriptions.values():
            self._node.destroy_subscription(subscription)
        self._node.destroy_publisher(self._states)

    def health(self) -> Health:
        """Return whether targets are followed, and why the last rejected one was rejected."""
        report = self._loop.report
        values = {
            "servo": _NAMES[report.state],
            "servo reason": report.reason,
            "servo threads": self._priority.scheduling,
            "servo commands": report.commands,
            "servo deadlines missed": report.deadlines_missed,
            "servo latency (ms)": f"{1e3 * report.latency:.1f}",
            "targets": self._targets,
            "rejected targets": self._rejected,
            "last rejected target": self._last_rejection,
        }
        if not self._loop.is_alive:
            return Health(ERROR, "the servo's thread has ended: restart the node", values)
        if self._last_rejection:
            return Health(WARN, f"target rejected: {self._last_rejection}", values)
        if report.state == ServoState.HOLDING:
            return Health(WARN, f"the stream is not followed: {report.reason}", values)
        return Health(OK, "", values)

    def _listen(self, topic: str, profile: QoSProfile) -> None:
        """Take the targets of a topic; from a best-effort publisher on, which is known when it comes, at best effort.

        Reliably as long as that is possible: a cloud is larger than what a socket holds, and its parts are sent again.
        """
        if topic in self._subscriptions:
            self._node.destroy_subscription(self._subscriptions[topic])
        others = SubscriptionEventCallbacks(
            incompatible_qos=lambda event: self._listen(topic, qos.TARGET_READER_AT_BEST_EFFORT)
        )
        self._subscriptions[topic] = self._node.create_subscription(
            self._intake.topics[topic], topic, self._take, profile, event_callbacks=others
        )

    def _take(self, message: Any) -> None:
        self._targets += 1
        self._commander.note_target()
        if not self._node.is_active or self._commander.is_moved_by_goal:
            return
        if self._current() is not self._made_of:
            self._take_model()
            self._priority.begin()
        try:
            self._loop.aim(self._intake.target(self._node.frames.into(self._frame, message)))
        except (SoftformError, ValueError) as error:
            self._reject(str(error))
            return
        self._last_rejection = ""

    def _take_model(self) -> None:
        """Use the model of the moment, at the servo's points, from the next command on."""
        self._made_of = self._current()
        self._model = self._made_of.at(self._uv)

    def _reject(self, reason: str) -> None:
        """Note a target that cannot be followed; the one before is followed until it is stale."""
        self._rejected += 1
        self._last_rejection = reason
        now = time.monotonic()
        if now - self._rejection_told_at > _TELL_SECONDS:  # rclpy's own throttle takes milliseconds to say no
            self._rejection_told_at = now
            self._node.get_logger().warning(f"target rejected: {reason}")
            self._node.diagnostics.publish()
            report = self._loop.report  # which nobody else publishes before a target is followed
            self._publish(replace(report, reason="") if report.state == ServoState.OFF else report)

    def _publish(self, report: ServoReport) -> None:
        rejection = f"The newest target was rejected: {self._last_rejection}" if self._last_rejection else ""
        message = ServoState(
            state=report.state,
            reason=" ".join(filter(None, (report.reason, rejection))),
            target=stamp_from_nanoseconds(report.target_stamp),
            latency=report.latency,
            mean_error=report.errors.mean_mm / MM_PER_M,
            max_error=report.errors.max_mm / MM_PER_M,
            converged=report.converged,
            commands=report.commands,
            iterations=report.iterations,
            deadlines_missed=report.deadlines_missed,
            targets=self._targets,
            targets_rejected=self._rejected,
        )
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._states.publish(message)

    def _on_cost(self, cost: float) -> None:
        """Take what a tick has cost, s; called in the servo's thread."""
        if self._priority.note(cost):
            self._node.get_logger().warning(f"servo: {self._priority.scheduling}; the last one took {cost:.2f} s")

    def _on_report(self, report: ServoReport) -> None:
        """Publish a state, and log a change; called in the servo's thread."""
        self._publish(report)
        changed, self._last_published = report.state != self._last_published.state, report
        line = f"servo: {_NAMES[report.state]}{f': {report.reason}' if report.reason else ''}"
        if changed and report.state == ServoState.TRACKING and not self._warned:
            for warning in self._driver.warnings(self._model.memory):
                self._node.get_logger().warning(f"servo: {warning}")
                self._warned = True
        # rclpy rejects another severity from the same line of code.
        if changed and report.state == ServoState.HOLDING:
            self._node.get_logger().warning(line)
        elif changed:
            self._node.get_logger().info(line)


_NAMES = {
    ServoState.OFF: "off",
    ServoState.TRACKING: "tracking",
    ServoState.HOLDING: "holding",
    ServoState.YIELDED: "yielded to an action",
}
