"""What the driver's thread does with its devices: rest, follow, make safe, latch, find a lost device again.

Every way out of RUNNING makes all devices safe first and reports afterwards; whatever makes them safe ends the lease
and the epoch. What was made safe counts as safe once every actuator was *measured* at rest. A device that was lost is
opened and made safe as soon as it is back; that clears no latch.
"""

import contextlib
import logging
import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from softform_actuation.commands import limit_rate
from softform_actuation.connection import Connection, unconfirmed
from softform_actuation.device import (
    REST_SECONDS,
    Device,
    DeviceError,
    SafeAction,
    ServedActuators,
    UnsafeError,
    never,
)
from softform_actuation.follower import Follower
from softform_actuation.guardian import HEARTBEAT_SECONDS, SILENCE_SECONDS
from softform_actuation.latch import LEFT_ACTIVE, LEFT_UNCONFIRMED, Latch
from softform_actuation.lease import Asked, Grant, LeaseCode, LeasedCommands, LeaseError
from softform_actuation.states import ActuatorRest, DriverReport, DriverSettings, Readings, State
from softform_actuation.statistics import LoopStatistics
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_ros import driver_words
from softform_ros.standstill import Standstill

_log = logging.getLogger(__name__)

_BACK = ". The device is back on its port and safe; call 'reset' to go on"
_STANDSTILL_SECONDS = SILENCE_SECONDS - 2.0 * HEARTBEAT_SECONDS
"""Between two ticks; after a longer one the guardian may have made all safe."""
_LONGEST_STEP_SECONDS = 0.2

REST_PATIENCE_SECONDS = 5.5
"""Within which all actuators have to be measured at rest; a device complains before."""

_END_PATIENCE_SECONDS = 3.0  # of a process that ends, and would be killed
_LOOK_SECONDS = 0.05
_MOST_FAULTS = 16

_UNSAFE_STEP = "Keep away, and cut the supply if it stays so; then reset."
STOPPED = f"{driver_words.STOPPED}; call 'reset' to go on"


class Supervisor:
    """The state machine over the devices of one robot; arguments and requests are those of `Driver`.

    Attributes:
        is_active: Whether commands are let through.
        faults: All that is latched, the first one first.
        warnings: What an operator should know.
        busy: Running test or calibration; empty if there is none.
        commands: The lease, and the newest command of its holder.
    """

    def __init__(
        self,
        devices: Sequence[tuple[Device, ServedActuators]],
        robot: Robot,
        settings: DriverSettings,
        statistics: LoopStatistics,
        on_report: Callable[[DriverReport], None],
        on_readings: Callable[[Readings], None],
        latch: Latch,
        warnings: tuple[str, ...] = (),
    ) -> None:
        self._clock = devices[0][0].clock
        self._robot, self._settings, self._statistics, self._latch = robot, settings, statistics, latch
        self._on_report, self._on_readings = on_report, on_readings
        self.commands = LeasedCommands(self._clock, settings.lease_timeout, robot.command_fingerprint())
        self.faults: list[str] = []
        self.warnings = warnings
        self._must_test = self.left_secured = False
        self._may_hold = any(device.safe_action is SafeAction.HOLD for device, _ in devices)
        self.connections = [Connection(device) for device, _ in devices]
        self._followers = [
            Follower(device, served, robot.indices_of(served.actuators), settings) for device, served in devices
        ]
        self._dead_men = [c for c, (_, served) in zip(self.connections, devices, strict=True) if not served.actuators]
        self._setpoint = robot.safe
        self.state = State.OFFLINE
        self.reason = self._offline_reason = "not connected"
        self._last_published: DriverReport | None = None
        self._telling = threading.Lock()
        self.is_active = False
        self.busy = ""
        self._drives = False
        self._standstill = Standstill(self._clock.since_boot, _STANDSTILL_SECONDS)
        self._last_step = self._rest_until = self._command_seen = self._goal_since = 0.0
        self._held_goal: np.ndarray | None = None
        self._same_goal = robot.actuator_tolerances.settle
        self._rest_reason = ""

    @property
    def is_secured(self) -> bool:
        """Whether every actuator was measured at rest, or is held as its description wants it."""
        return all(connection.is_secured for connection in self.connections)

    @property
    def _secured_state(self) -> State:
        """What the driver is in once all is secured."""
        is_holding = any(connection.device.is_holding for connection in self.connections)
        return State.HOLDING if is_holding else State.SAFE

    @property
    def report(self) -> DriverReport:
        """What the driver is doing now, and for whom."""
        holder, lease = self.commands.holder
        sentences = [self.reason]
        if self.state is State.FAULT:
            names = ", ".join(c.device.identity for c in self.connections if not c.acknowledged)
            if names:
                sentences.append(f"{names} has not confirmed that it is safe: cut its supply")
            doubts = (c.still_unsafe.removesuffix(".") for c in self.connections)
            sentences += [doubt for doubt in doubts if doubt not in self.reason]
        return DriverReport(
            self.state,
            ". ".join(sentences),
            holder,
            lease,
            self.commands.epoch,
            tuple(self.faults),
            self._actuators(),
            self.warnings,
        )

    def _actuators(self) -> tuple[ActuatorRest, ...]:
        """How safe each actuator is, in the robot's order."""
        found: dict[int, ActuatorRest] = {}
        drives_at_rest = self._drives and self.state is State.SAFE
        for connection, follower in zip(self.connections, self._followers, strict=True):
            rest, asked = connection.rest, connection.asked
            for position, index in enumerate(follower.indices):
                name = self._robot.actuators[index]
                if drives_at_rest:  # its target is where it is safe, and the device streams what it measures
                    at_rest = follower.captured is None or bool(follower.at_rest[position])  # measured before it began
                    found[index] = ActuatorRest(name, True, True, at_rest, math.nan)
                elif rest is None:
                    found[index] = ActuatorRest(name, asked, connection.acknowledged, False, math.nan)
                else:
                    at_rest = connection.acknowledged and bool(rest.at_rest[position])
                    value = float(rest.values[position]) if math.isfinite(rest.values[position]) else math.nan
                    found[index] = ActuatorRest(name, asked, connection.acknowledged, at_rest, value)
        return tuple(found[index] for index in sorted(found))

    def unsafe_in_words(self) -> str:
        """Which actuators are not measured at rest, and what is known of them; empty if there is none."""
        sentences = []
        for connection in self.connections:
            if connection.is_secured:
                continue
            if not connection.acknowledged:
                sentences.append(str(unconfirmed(connection.device)))
            elif connection.rest is None:
                sentences.append(f"{connection.device.identity} has not measured where its actuators are.")
            elif connection.still_unsafe:
                sentences.append(f"{connection.still_unsafe.removesuffix('.')}.")
            else:
                told = zip(self._served(connection), connection.rest.values, connection.rest.at_rest, strict=True)
                high = ", ".join(f"{name} at {value:.4g} {unit}" for (name, unit), value, rests in told if not rests)
                sentences.append(f"Not at rest: {high}.")
        return " ".join(sentences)

    def _served(self, connection: Connection) -> list[tuple[str, str]]:
        """Name and unit of each actuator of a device."""
        follower, robot = self._followers[self.connections.index(connection)], self._robot
        return [(robot.actuators[index], robot.actuator_units[index]) for index in follower.indices]

    def open(self, interrupted: Callable[[], bool]) -> None:
        """Open the devices, which makes them safe. Nothing moves.

        Raises:
            SoftformError: If a port cannot be opened, holds no such device, or the robot does not fit the device.
        """
        try:
            for connection in self.connections:  # which makes safe: what died before may have left the robot moving
                connection.open(interrupted)
        except BaseException:
            self._let_go()
            raise

    def begin(self, interrupted: Callable[[], bool]) -> None:
        """Take up the open devices, latched if a latch is found: a stop may have come while they were opened.

        Raises:
            DeviceError: If interrupted, by a stop that may not be latched yet.
        """
        if interrupted():
            self._let_go()
            raise DeviceError("The connection was interrupted.", "Configure the driver again.")
        self.resume()
        if (latched := self._latch.read()) is not None:
            self.faults = [latched]
            self._set_state(State.FAULT, f"Latched before this start: {latched}. Call 'reset' to go on")
        else:
            self._rest_reason = "connected and inactive: activate the driver to send commands"
            self._set_state(State.MAKING_SAFE, self._rest_reason)

    def _let_go(self) -> None:
        for connection in self.connections:
            connection.let_go()

    def activate(self, interrupted: Callable[[], bool]) -> str:
        """Let commands through once the actuators are tested, unless a fault is latched; a reset then is missing.

        Raises:
            SoftformError: If the latch cannot be written: should this process die, the next one would not know; or if a
                device does not drive its actuators, or the test is interrupted.
        """
        if self.is_active and self.state is not State.FAULT:
            return "active"  # it may be driving
        if self.state is not State.FAULT:
            self._require_latch("activate")
            try:
                self._test(interrupted)
                self._measure(interrupted, REST_PATIENCE_SECONDS)
            except SoftformError as error:
                with contextlib.suppress(SoftformError):
                    self._measure(interrupted, REST_PATIENCE_SECONDS)
                if self.is_secured:
                    self._latch.clear()
                elif not interrupted():  # by a stop or the end, which make safe themselves
                    self.fault(str(error))
                raise
            self._rest_reason = "ready: all actuators are at rest, waiting for a lease and commands"
            self._set_state(State.MAKING_SAFE, self._rest_reason)
        self.is_active = True
        return "active"

    def _test(self, interrupted: Callable[[], bool]) -> None:
        self.busy = "The actuators are being tested."
        try:
            dead_men, others = self._dead_men, [c for c in self.connections if c not in self._dead_men]
            for connection in dead_men:
                connection.is_tested = False  # it is proven at each activation
                connection.test(interrupted)
            try:
                for connection in dead_men:
                    connection.begin()
                    connection.device.begin()
                for connection in others:
                    connection.test(lambda: self._beat() or interrupted())
            finally:
                for connection in dead_men:
                    connection.make_safe()
        finally:
            self.busy = ""

    def _beat(self) -> bool:
        """Keep the supply on while others are tested; False."""
        for connection in self._dead_men:
            connection.device.set_targets(np.empty(0), never)
            connection.device.read(0.0)
        return False

    def _require_latch(self, request: str) -> None:
        """Latch the next driver, should this one die active; what cannot be latched is to be requested again."""
        self._latch.set(LEFT_ACTIVE)
        if self._latch.failure:
            raise SoftformError(self._latch.failure, f"Make that folder writable, then {request} again.")

    def acquire(self, source: str, client: int, asked: Asked, fingerprint: str) -> Grant:
        """Return a lease as `LeasedCommands.acquire`; any thread may ask.

        Raises:
            LeaseError: If it is rejected, with the reason.
        """
        self.require_takes_commands()
        grant = self.commands.acquire(source, client, asked, fingerprint)
        self.tell()
        return grant

    def require_takes_commands(self) -> None:
        """Reject what asks to command while nothing may be commanded.

        Raises:
            LeaseError: With the reason.
        """
        if self.state is State.FAULT:
            raise LeaseError(LeaseCode.FAULT, f"A fault is latched: {self.reason}.", "Call the service 'reset' first.")
        if self.busy:
            raise LeaseError(LeaseCode.BUSY, self.busy, "Wait some seconds.")
        if not self.is_active:
            raise LeaseError(LeaseCode.INACTIVE, "The driver is not active.", "Activate it first.")

    def release(self, source: str, grant: Grant) -> int:
        """As `Driver.release`, in the driver's thread."""
        self.commands.require(source, grant)
        self.commands.end(f"'{source}' gave it up.")
        if self._drives and (self.state is State.RUNNING or self._may_hold):
            self._rest(f"safe, because '{source}' gave its lease up; waiting for another")
        else:
            self.tell()
        return self.commands.epoch

    def tell(self) -> None:
        """Report the state, if it has changed since the last time."""
        with self._telling:
            report = self.report
            if report == self._last_published:
                return
            self._last_published = report
            try:
                self._on_report(report)
            except Exception:  # a listener's failure must never stand between a fault and making safe
                _log.exception("the listener of the driver's state failed")

    def _set_state(self, state: State, reason: str) -> None:
        self.state, self.reason = state, reason.removesuffix(".")  # others put it into their own sentences
        self.tell()

    def watch_until(self, deadline: float, interrupted: Callable[[], bool]) -> None:
        """Take measurements up to `deadline` (s), or until interrupted.

        Raises:
            SoftformError: If something is wrong.
        """
        while not interrupted():
            remaining = deadline - self._clock.now()
            there = [pair for pair in zip(self.connections, self._followers, strict=True) if not pair[0].is_lost]
            if not there:
                self._clock.sleep(max(min(remaining, 0.05), 0.0))
            for connection, follower in there:
                wait = 0.0 if connection in self._dead_men else max(remaining, 0.0) / len(there)
                for measurement in connection.device.read(wait):
                    if not self._drives:
                        connection.note_stray(measurement)
                        continue
                    follower.take(measurement, self._goal())
                    if connection not in self._dead_men:
                        self._statistics.count_measurement(measurement.captured)
                        self._tell_readings()
            if remaining <= 0.0:
                return

    def _goal(self) -> np.ndarray | None:
        command = self.commands.look()
        return command[0] if command is not None and self.state is State.RUNNING else None

    def _tell_readings(self) -> None:
        moments = [follower.captured for follower in self._followers if follower.indices.size]
        if None in moments:
            return
        values, status = self._robot.safe, np.zeros(len(self._robot.actuators), dtype=np.uint8)
        for follower in self._followers:
            values[follower.indices], status[follower.indices] = follower.values, follower.status
        self._on_readings(Readings(values, status, min(moment for moment in moments if moment is not None)))

    def tick(self, now: float, interrupted: Callable[[], bool]) -> None:
        """Do what is due in one period of the loop.

        Raises:
            SoftformError: If something is wrong.
        """
        if self.commands.expire(now):
            self.tell()
            if self._drives and self._may_hold and self.state is not State.RUNNING:
                self._rest("held, because nothing was commanded; waiting for another lease")
        self.notice_standstill()
        if self._drives:
            for follower in self._followers:
                follower.require_stream(now)
            self._follow_command(now, interrupted)
            return
        self._check(now)
        is_wanted = not self._may_hold or bool(self.commands.holder[0])
        if self.is_active and self.state in (State.SAFE, State.HOLDING) and is_wanted and now >= self._rest_until:
            self._require_at_rest(now)
            self._start()

    def _require_at_rest(self, now: float) -> None:
        # It drives what it finds: a tendon that did not slacken would be held where it is.
        for connection in self.connections:
            connection.check(now, never)
        if not self.is_secured:
            raise UnsafeError(self.unsafe_in_words(), _UNSAFE_STEP)

    def notice_standstill(self) -> None:
        """End what was asked for before the driver stood still: to be called before anything else after each wait.

        Raises:
            UnsafeError: If it was driving.
        """
        seconds = self._standstill.seconds()
        if seconds and self._drives:  # measurements that waited in the port look new: the stream does not tell
            raise UnsafeError(
                f"The driver stood still for {seconds:.1f} s; its guardian may have made all safe.",
                "See what stopped it or took its processor, then reset.",
            )
        if seconds:
            self._end_motion(f"The driver stood still for {seconds:.1f} s.")

    def resume(self) -> None:
        """Count a standstill from now on: what was done before took its time."""
        self._standstill.seconds()

    def _start(self) -> None:
        self._drives = True
        now = self._clock.now()
        pairs = list(zip(self.connections, self._followers, strict=True))
        # Dead-men last: their heartbeats begin with the next tick.
        for connection, follower in sorted(pairs, key=lambda pair: pair[0] in self._dead_men):
            connection.begin()
            self._setpoint[follower.indices] = follower.begin(now)
        self._last_step = now
        self._statistics.restart_rate(now)
        self._set_state(State.HOLDING if self._may_hold else State.SAFE, self._rest_reason)

    def _follow_command(self, now: float, interrupted: Callable[[], bool]) -> None:
        command = self.commands.look()
        if command is not None and now - command[1] > self._settings.command_timeout:
            source, _ = self.commands.holder
            self._rest(
                f"safe, because no command of '{source}' came for {self._settings.command_timeout:g} s: it is gone, or "
                "slower than 'command_timeout'; waiting for another lease"
            )
            return
        if command is not None and self._has_held_too_long(command[0], now):
            self._rest(
                f"safe, because the same values were held for {self._settings.hold_timeout:g} s (hold_timeout); "
                "waiting for another lease"
            )
            return
        if command is not None and self.state is not State.RUNNING:
            self._set_state(State.RUNNING, f"following the commands of '{self.commands.holder[0]}'")
        started = self._clock.now()
        if command is not None:
            seconds = min(started - self._last_step, _LONGEST_STEP_SECONDS)
            self._setpoint = limit_rate(self._setpoint, command[0], self._robot.slew_rate, seconds)
        self._last_step = started
        for follower in self._followers:
            follower.note_setpoint(self._setpoint)
            follower.device.set_targets(self._setpoint[follower.indices], interrupted)
        if command is not None:
            sent = self._clock.now()
            self._statistics.command_age = sent - command[1]
            if command[1] != self._command_seen:
                self._command_seen = command[1]
                self._statistics.count_sent_command(command[1], sent)

    @property
    def unchanged_for(self) -> float:
        """For how long the same values were commanded, s; 0 if none are."""
        return 0.0 if self._held_goal is None else self._clock.now() - self._goal_since

    def _has_held_too_long(self, goal: np.ndarray, now: float) -> bool:
        """Whether a goal, (k,), has stayed the same for `hold_timeout`: whoever renews it may have been forgotten."""
        if self._held_goal is None or (np.abs(goal - self._held_goal) > self._same_goal).any():
            self._held_goal, self._goal_since = goal, now
        return now - self._goal_since > self._settings.hold_timeout

    def _check(self, now: float) -> None:
        for connection in self.connections:
            if not connection.is_check_due(now):
                continue
            try:
                if connection.check(now, never):
                    self._statistics.reconnections += 1
                    self._set_state(State.FAULT, self.reason.removesuffix(_BACK) + _BACK)
                elif connection.still_unsafe and self.state is not State.FAULT:
                    self.fault(connection.still_unsafe)
            except SoftformError as error:
                if self.state is not State.FAULT or isinstance(error, UnsafeError):
                    self.fault(str(error))
                elif connection.is_lost:
                    self._set_state(State.FAULT, self.reason.removesuffix(_BACK))
        at_rest = (State.MAKING_SAFE, State.SAFE, State.HOLDING)
        if self.is_secured and self.state in at_rest and self.state is not self._secured_state:
            self._set_state(self._secured_state, self._rest_reason)
        self.tell()  # a device in doubt may have confirmed, or something was measured

    def _measure(self, interrupted: Callable[[], bool], seconds: float) -> None:
        """Look until all actuators are measured at rest.

        Raises:
            UnsafeError: If they are not within `seconds`, or it is interrupted, with what is known.
            SoftformError: As `Connection.check`.
        """
        end = self._clock.now() + seconds
        while True:
            now = self._clock.now()
            for connection in self.connections:
                if connection.is_check_due(now):
                    connection.check(now, never)
            if self.is_secured:
                return
            if now > end or interrupted() or any(connection.still_unsafe for connection in self.connections):
                raise UnsafeError(self.unsafe_in_words(), _UNSAFE_STEP)
            self.watch_until(now + _LOOK_SECONDS, never)

    def fault(self, reason: str) -> None:
        """Make safe, then latch and report. All that goes wrong until a reset is kept, each once."""
        is_new = reason not in self.faults or reason == STOPPED
        if is_new or self._drives:
            self._end_motion(reason)
        self._make_devices_safe()
        if not is_new:
            return
        if len(self.faults) < _MOST_FAULTS and reason not in self.faults:
            self.faults.append(reason)
        self._must_test = self._must_test or reason != STOPPED
        if self.state is State.FAULT:
            _log.warning("further fault: %s", reason)
            self.tell()
        else:
            self._set_state(State.FAULT, reason)
            self.commands.end(reason)  # once more: it may have been asked for meanwhile
        self._latch.set("; ".join(self.faults))

    def make_safe_quietly(self, reason: str) -> None:
        """Make all devices safe as well as can be done, and end lease and epoch; raises nothing."""
        self._end_motion(reason)
        self._make_devices_safe()

    def _end_motion(self, reason: str) -> None:
        """Follow nothing any more, and nothing that was asked for up to now."""
        self._drives = False
        self._held_goal = None
        self.commands.end(reason)
        self.commands.begin_epoch()

    def _make_devices_safe(self) -> None:
        if len(self.connections) == 1:
            self.connections[0].make_safe()
            return
        try:  # at the same time: one that does not answer must not keep the others waiting
            with ThreadPoolExecutor(len(self.connections)) as threads:
                list(threads.map(Connection.make_safe, self.connections))
        except RuntimeError:
            _log.exception("no threads can be started: the devices are made safe one after the other")
            for connection in self.connections:
                connection.make_safe()

    def _rest(self, reason: str) -> None:
        self.make_safe_quietly(reason)
        self._rest_until = self._clock.now() + REST_SECONDS
        self._require_confirmed()
        self._rest_reason = reason
        self._set_state(State.MAKING_SAFE, reason)

    def _require_confirmed(self) -> None:
        for connection in self.connections:
            if not connection.acknowledged:
                raise unconfirmed(connection.device)

    def rest_inactive(self, interrupted: Callable[[], bool]) -> str:
        """Make safe, and wait until that is measured.

        Raises:
            SoftformError: If a device does not confirm it, or not all is measured at rest; it is then tried on.
        """
        if self.state is State.FAULT:
            self.make_safe_quietly(self.reason)
            self._measure(interrupted, REST_PATIENCE_SECONDS)
            return "safe"
        try:
            self._rest("inactive: activate the driver to send commands")
            self._measure(interrupted, REST_PATIENCE_SECONDS)
        except SoftformError as error:
            self.fault(str(error))
            raise
        self._set_state(self._secured_state, self._rest_reason)
        self._latch.clear()
        return "safe"

    def stop(self) -> str:
        """Make safe and latch until `reset`. Whether it is safe is measured from now on.

        Raises:
            SoftformError: If the latch would not survive a restart.
        """
        self.fault(STOPPED)
        if self._latch.failure:
            raise SoftformError(f"Made safe and latched, but: {self._latch.failure}", "Correct it, then stop again.")
        return "latched"

    def reset(self, asked: Asked, interrupted: Callable[[], bool]) -> str:
        """Leave the latched faults that the caller has seen; say which they were.

        What was opened anew is tested if the driver is active, and everything after any fault but a stop.

        Raises:
            SoftformError: If it was asked for too long ago, or before the newest fault; if the cause of a fault
                persists, something else is asked meanwhile, or nothing would latch the next driver should this one die.
        """
        self.commands.require_asked(asked, "The reset")
        if self.state is not State.FAULT:
            return "Nothing is latched."
        for connection in self.connections:
            connection.require_safe(interrupted)
        self._measure(interrupted, REST_PATIENCE_SECONDS)
        if self.is_active:
            if self._must_test:
                for connection in self.connections:
                    connection.is_tested = False
            self._test(interrupted)
            self._require_latch("reset")
        else:
            self._latch.clear()
        cleared, self.faults, self._must_test = "; ".join(self.faults), [], False
        self._end_motion("The driver was reset.")
        self._rest_until = self._clock.now() + REST_SECONDS
        self._rest_reason = "ready after a reset: all actuators are at rest, waiting for a lease and commands"
        if not self.is_active:
            self._rest_reason = "reset; activate the driver to send commands"
        self._set_state(State.MAKING_SAFE, self._rest_reason)
        return f"Cleared: {cleared.removesuffix('.')}. Whoever asks for the lease moves the robot."

    def calibrate(self, interrupted: Callable[[], bool]) -> str:
        """Measure the sensors' offsets at rest, store and apply them; return what was found.

        Raises:
            SoftformError: If the robot is not safe and steady, or an offset is too large; the ones before stay.
        """
        if self.state not in (State.SAFE, State.HOLDING):
            raise SoftformError(
                f"Offsets are measured at rest, but the driver is {self.state.name}: {self.reason}.",
                "End the commander or deactivate the driver, wait until it is safe, then calibrate.",
            )
        if holder := self.commands.holder[0]:
            raise SoftformError(f"'{holder}' holds the lease.", "Let it end, then calibrate.")
        self.busy = "The sensors are being calibrated."
        try:
            self._rest("safe for the calibration of its sensors")
            self._measure(interrupted, REST_PATIENCE_SECONDS)
            return " ".join(filter(None, (c.device.calibrate(interrupted) for c in self.connections)))
        except (DeviceError, UnsafeError) as error:
            self.fault(str(error))
            raise
        finally:
            self.busy = ""
            self._rest_until = self._clock.now() + REST_SECONDS

    def end(self) -> None:
        """Make safe for the last time; resets that still wait are rejected as too late."""
        self.make_safe_quietly("The driver was closed.")

    def close(self) -> None:
        """Let go of the devices; what is not measured at rest stays latched."""
        try:
            self._measure(never, _END_PATIENCE_SECONDS)
        except Exception as error:
            _log.error("at the end: %s", error)
        is_safe = self.left_secured = self.is_secured
        for connection in self.connections:
            connection.device.close()
        if not is_safe:
            doubt = f"{LEFT_UNCONFIRMED} ({self.reason})"
            self._offline_reason = f"not connected: {doubt}. Cut the supply if the robot is not safe."
            if self._latch.read() is not None:  # it was active, or at fault: something may be left
                self._latch.set(doubt)
        elif self.state is not State.FAULT:
            try:
                self._latch.clear()
            except SoftformError as error:
                _log.error("%s", error)

    def set_offline(self) -> None:
        """Say that nothing is connected any more."""
        self._set_state(State.OFFLINE, self._offline_reason)
