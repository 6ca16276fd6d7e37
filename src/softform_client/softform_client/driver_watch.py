"""State of the driver: whether it takes commands, and whether the robot has settled."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

import numpy as np
from rclpy.node import Node

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.history import WIPES, History
from softform_core.forward.memory import NO_MEMORY, Commands, Memory
from softform_core.robots import Robot
from softform_interfaces.msg import ActuationHistory, ActuatorState, DriverState
from softform_ros import qos
from softform_ros.conversions import seconds_from_stamp
from softform_ros.goal_error import GoalCode, GoalError
from softform_ros.histories import history_from_message

_POLL_SECONDS = 0.05
STILL_SECONDS = 1.0
"""Time that a safe robot's values must stay the same before it counts as standing still, s."""

AT_REST = (DriverState.SAFE, DriverState.MAKING_SAFE, DriverState.HOLDING)
"""States in which the driver has no target, and follows whoever gets its lease."""

_SILENT_TIMES = 3.0
"""Silence of `driver_state`, in units of `state_timeout`, after which the driver counts as gone; it comes at 5 Hz."""


UNKNOWN_PAST = (
    "This body remembers what its actuators did before the driver began to measure, which is not known, so the true "
    "errors may be larger than the predicted ones: ./softform home (or ShapeClient.home) moves each actuator through "
    f"{100.0 * WIPES:.0f} % of its range once."
)


@dataclass(frozen=True)
class MeasuredValues:
    """One message of the driver.

    Attributes:
        values: (k,) in the order of the robot's actuators, in its unit.
        settled: Whether the driver reports every actuator as settled.
        stamp: Time of the measurement, s since the epoch.
        received: Steady time, s.
        safe: Whether the driver has made every actuator safe and holds no target.
    """

    values: Array
    settled: bool
    stamp: float
    received: float
    safe: bool = False


class DriverWatch:
    """The newest messages of the driver; written by the executor, read and waited for by the worker.

    Attributes:
        history: Turning points of the robot's actuators so far, from its driver.

    Args:
        robot: The robot.
        state_timeout: Time after which measured values count as lost, s.
        clock: Steady time, s.
        source: Name under which this commander asks for the lease; another holder means that the driver is not ready.
    """

    def __init__(
        self, robot: Robot, state_timeout: float, clock: Callable[[], float] = time.monotonic, source: str = ""
    ) -> None:
        self._robot, self._timeout, self._clock, self._source = robot, state_timeout, clock, source
        self._news = threading.Condition()
        self.history = History()
        self._measured: MeasuredValues | None = None
        self._state: int | None = None
        self._reason = self._holder = ""
        self._heard_at = 0.0

    def listen(self, node: Node, opened: ExitStack) -> None:
        """Take the messages on `actuator_state` and `actuation_history` until what is opened is closed."""

        def take(message: ActuatorState) -> None:
            self.note_values(message.name, message.value, message.status, seconds_from_stamp(message.header.stamp))

        for subscription in (
            node.create_subscription(ActuatorState, "actuator_state", take, qos.ACTUATOR_STATE_READER),
            node.create_subscription(ActuationHistory, "actuation_history", self.note_history, qos.LATCHED_STATE),
        ):
            opened.callback(node.destroy_subscription, subscription)

    def note_driver(self, message: DriverState) -> bool:
        """Take a `driver_state`; returns as `note_state`."""
        self._note_rest(message)
        return self.note_state(message.state, message.reason, message.holder)

    def note_values(self, names: Sequence[str], values: Sequence[float], status: Sequence[int], stamp: float) -> None:
        """Take a `actuator_state`; one of another robot is not noted."""
        try:
            ordered = self._robot.in_order(names, values)
        except SoftformError:
            return
        with self._news:
            self._measured = MeasuredValues(
                ordered,
                all(one == ActuatorState.SETTLED for one in status),
                stamp,
                self._clock(),
                all(one == ActuatorState.SAFE for one in status),
            )
            self._news.notify_all()

    def note_history(self, message: ActuationHistory) -> None:
        """Take an `actuation_history`; one of another robot is not noted."""
        with suppress(SoftformError):
            self.history = history_from_message(message, self._robot)

    def _note_rest(self, message: DriverState) -> None:
        """Take where motors hold the robot: what is held streams nothing on `actuator_state`."""
        if message.state != DriverState.HOLDING:
            return
        try:
            held = self._robot.in_order(message.actuator, message.rest_value)
        except SoftformError:
            return
        if np.isfinite(held).all():
            with self._news:
                now, stamp = self._clock(), seconds_from_stamp(message.header.stamp)
                self._measured = MeasuredValues(held, False, stamp, now, True)
                self._news.notify_all()

    def note_state(self, state: int, reason: str, holder: str = "") -> bool:
        """Take the state of the driver, its reason, and who holds its lease.

        Returns:
            Whether the driver has just stopped following commands: it faulted, went away, or made safe after it ran.
        """
        with self._news:
            before, self._state, self._reason, self._holder = self._state, state, reason, holder
            self._heard_at = self._clock()
            self._news.notify_all()
        if state in AT_REST:
            return before == DriverState.RUNNING
        return state != before and state in (DriverState.FAULT, DriverState.OFFLINE)

    @property
    def follows(self) -> bool:
        """Return whether the driver would follow commands: it runs, or is safe and waits for one."""
        with self._news:
            return self._state == DriverState.RUNNING or self._state in AT_REST

    @property
    def values(self) -> Array | None:
        """The newest values, (k,), or None if they are lost."""
        with self._news:
            return self._measured.values if self._measured is not None and self._is_fresh() else None

    def effective(self, memory: Memory, values: Array) -> Array:
        """Return the actuation (m,) that the body feels at the newest measured values (k,)."""
        return self.commands(memory, values).effective

    def commands(self, memory: Memory, values: Array | None) -> Commands:
        """Return what finds the next commands from the newest values (k,); without them nothing is corrected."""
        if values is None:
            return Commands.of(self._robot, NO_MEMORY, self.history, self._robot.rest_actuation)
        with self._news:
            stamp = 0.0 if self._measured is None else self._measured.stamp
        return Commands.of(self._robot, memory, self.history, self._robot.nearest_actuation(values), stamp)

    def warnings(self, memory: Memory) -> list[str]:
        """Return what makes the predictions of a model with this memory less certain, and what to do about it."""
        return [] if memory is NO_MEMORY or self.history.is_known else [UNKNOWN_PAST]

    def check_ready(self) -> None:
        """Check that a command would be followed.

        Raises:
            GoalError: For the reasons of `check_measured`, and if the driver follows another commander.
        """
        self.check_measured()
        with self._news:
            if self._source and self._holder not in ("", self._source):
                raise _not_ready(
                    f"'{self._holder}' commands the robot.",
                    "Let it end or cancel it. ./softform release lets go of what is held, ./softform stop ends any.",
                )

    def check_measured(self) -> None:
        """Check that it is known where the robot is.

        Raises:
            GoalError: If the driver is unknown, offline, at fault, or silent.
        """
        with self._news:
            if self._state is None:
                raise _not_ready(
                    "No driver has announced itself on driver_state.",
                    "Start the driver and activate it, or plan only.",
                )
            if self._state == DriverState.FAULT:
                raise GoalError(
                    GoalCode.DRIVER_FAULT,
                    f"The driver is at fault: {self._reason}.",
                    "Remove the cause, then ./softform reset (service `reset`).",
                )
            if self._state == DriverState.OFFLINE:
                raise _not_ready(
                    f"The driver is offline: {self._reason}.",
                    "Connect the devices and configure and activate the driver.",
                )
            if self._clock() - self._heard_at > _SILENT_TIMES * self._timeout:
                raise _not_ready(
                    f"Nothing has come on driver_state for {self._clock() - self._heard_at:.1f} s.",
                    "Check that it runs, and the network.",
                )
            if self._measured is None or not self._is_fresh():
                silence = "ever" if self._measured is None else f"for {self._clock() - self._measured.received:.1f} s"
                raise _not_ready(
                    f"No values of '{self._robot.name}' came on actuator_state {silence}.",
                    "Check that the driver is active and drives this robot.",
                )

    def wait_until_settled(
        self, command: Array, tolerance: Array | float, timeout: float, since: float, should_stop: Callable[[], bool]
    ) -> MeasuredValues | None:
        """Wait until every actuator has settled on a command.

        Args:
            command: (k,) commanded values.
            tolerance: Largest difference from the command, one for all or (k,); values further away are settled on an
                earlier one.
            timeout: Time limit, s.
            since: s since the epoch; values measured before do not count.
            should_stop: Ends the wait.

        Returns:
            The settled values, or None if `should_stop` ended the wait.

        Raises:
            GoalError: On a fault or silence of the driver (as `check_ready`), or when the time is up.
        """
        deadline = self._clock() + timeout
        while not should_stop():
            self.check_ready()
            with self._news:
                measured = self._measured
                if (
                    measured is not None
                    and measured.settled
                    and measured.stamp > since
                    and bool((np.abs(measured.values - command) <= tolerance).all())
                ):
                    return measured
                if self._clock() > deadline:
                    raise GoalError(
                        GoalCode.SETTLE_TIMEOUT,
                        self._unsettled(command, timeout),
                        "Look for a leak, or allow more time.",
                    )
                self._news.wait(_POLL_SECONDS)
        return None

    def wait_until_still(
        self, tolerance: Array | float, timeout: float, should_stop: Callable[[], bool]
    ) -> MeasuredValues | None:
        """Wait until the robot stands still, whoever commands it: settled, or safe and no longer on its way there.

        Args:
            tolerance: A robot that is safe stands still if no actuator changes by more, one for all or (k,), within
                `STILL_SECONDS`.
            timeout: Time limit, s.
            should_stop: Ends the wait.

        Returns:
            Values measured after the call, or None if `should_stop` ended the wait.

        Raises:
            GoalError: For the reasons of `check_measured`, and when the time is up.
        """
        begun = self._clock()
        first: MeasuredValues | None = None
        while not should_stop():
            self.check_measured()
            with self._news:
                measured = self._measured
                if measured is not None and measured.received > begun:
                    if measured.settled:
                        return measured
                    if not measured.safe:
                        first = None
                    elif first is None or (np.abs(measured.values - first.values) > tolerance).any():
                        first = measured
                    elif measured.received - first.received >= STILL_SECONDS:
                        return measured
                if self._clock() > begun + timeout:
                    raise GoalError(
                        GoalCode.SETTLE_TIMEOUT,
                        f"The robot did not stand still within {timeout:g} s.",
                        "Wait until what moves it has ended, or look for a leak.",
                    )
                self._news.wait(_POLL_SECONDS)
        return None

    def _is_fresh(self) -> bool:
        return self._measured is not None and self._clock() - self._measured.received <= self._timeout

    def _unsettled(self, command: Array, timeout: float) -> str:
        assert self._measured is not None
        deviation = self._measured.values - command
        range_of_each = self._robot.actuator_max - self._robot.actuator_min
        worst = int((np.abs(deviation) / range_of_each).argmax())
        unit = self._robot.actuator_units[worst]
        return (
            f"The robot did not settle within {timeout:g} s: {self._robot.actuators[worst]} is "
            f"{deviation[worst]:+.4g} {unit} off its command of {command[worst]:.4g} {unit}."
        )


def _not_ready(message: str, next_step: str) -> GoalError:
    return GoalError(GoalCode.DRIVER_NOT_READY, message, next_step)
