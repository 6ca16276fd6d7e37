"""What the driver's thread does with its devices: rest, follow, make safe, latch, find a lost device again.

Every way out of RUNNING makes all devices safe first and reports afterwards; whatever makes them safe ends the lease. A
device that was lost is opened and made safe as soon as it is back; that clears no latch.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from softform_actuation.commands import limit_rate
from softform_actuation.connection import Connection, unconfirmed
from softform_actuation.device import REST_SECONDS, Device, DeviceError, ServedActuators, UnsafeError, never
from softform_actuation.follower import Follower
from softform_actuation.guardian import HEARTBEAT_SECONDS, SILENCE_SECONDS
from softform_actuation.latch import LEFT_ACTIVE, LEFT_UNCONFIRMED, Latch
from softform_actuation.lease import LeaseCode, LeasedCommands, LeaseError
from softform_actuation.states import DriverReport, DriverSettings, Readings, State
from softform_actuation.statistics import LoopStatistics
from softform_core.errors import SoftformError
from softform_core.robots import Robot

_log = logging.getLogger(__name__)

_BACK = ". The device is back on its port and safe; call 'reset' to go on"
_STANDSTILL_SECONDS = SILENCE_SECONDS - 2.0 * HEARTBEAT_SECONDS
"""Between two ticks; after a longer one the guardian may have made all safe."""
_LONGEST_STEP_SECONDS = 0.2


class Supervisor:
    """The state machine over the devices of one robot; arguments and requests are those of `Driver`.

    Attributes:
        is_active: Whether commands are let through.
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
    ) -> None:
        self._clock = devices[0][0].clock
        self._robot, self._settings, self._statistics, self._latch = robot, settings, statistics, latch
        self._on_report, self._on_readings = on_report, on_readings
        self.commands = LeasedCommands(self._clock, settings.lease_timeout)
        self.connections = [Connection(device) for device, _ in devices]
        self._followers = [
            Follower(device, served, robot.indices_of(served.actuators), settings) for device, served in devices
        ]
        self._setpoint = robot.safe
        self.state = State.OFFLINE
        self.reason = self._offline_reason = "not connected"
        self._last_published: DriverReport | None = None
        self._telling = threading.Lock()
        self.is_active = False
        self.busy = ""
        self.stops = 0
        self._drives = False
        self._last_tick = self._last_step = self._rest_until = self._command_seen = 0.0
        self._rest_reason = ""

    @property
    def is_safe(self) -> bool:
        """Whether all devices have confirmed that they are safe."""
        return all(connection.is_safe for connection in self.connections)

    @property
    def report(self) -> DriverReport:
        """What the driver is doing now, and for whom."""
        holder, lease = self.commands.holder
        sentences = [self.reason]
        if self.state is State.FAULT:
            names = ", ".join(c.device.identity for c in self.connections if not c.is_safe)
            if names:
                sentences.append(f"{names} has not confirmed that it is safe: cut its supply")
            doubts = (c.still_unsafe.removesuffix(".") for c in self.connections)
            sentences += [doubt for doubt in doubts if doubt not in self.reason]
        return DriverReport(self.state, ". ".join(sentences), holder, lease, self.commands.epoch)

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
        if (latched := self._latch.read()) is not None:
            self._set_state(State.FAULT, f"Latched before this start: {latched}. Safe now; call 'reset' to go on.")
        else:
            self._set_state(State.SAFE, "connected and inactive: activate the driver to send commands")

    def _let_go(self) -> None:
        for connection in self.connections:
            connection.let_go()

    def activate(self, interrupted: Callable[[], bool]) -> str:
        """Let commands through once the actuators are tested, unless a fault is latched; a reset then is missing.

        Raises:
            SoftformError: If the latch cannot be written: should this process die, the next one would not know; or if a
                device does not drive its actuators, or the test is interrupted.
        """
        if self.state is not State.FAULT:
            self._require_latch("activate")
            try:
                self._test(interrupted)
            except SoftformError as error:
                if self.is_safe:
                    self._latch.clear()
                else:
                    self.fault(str(error))
                raise
            self._rest_reason = "ready: all actuators are safe, waiting for a lease and commands"
        self.is_active = True
        return "active"

    def _test(self, interrupted: Callable[[], bool]) -> None:
        self.busy = "The actuators are being tested."
        try:
            for connection in self.connections:
                connection.test(interrupted)
        finally:
            self.busy = ""

    def _require_latch(self, request: str) -> None:
        """Latch the next driver, should this one die active; what cannot be latched is to be requested again."""
        self._latch.set(LEFT_ACTIVE)
        if self._latch.failure:
            raise SoftformError(self._latch.failure, f"Make that folder writable, then {request} again.")

    def acquire(self, source: str, client: int, epoch: int) -> int:
        """Return the id of a lease as `LeasedCommands.acquire`; any thread may ask.

        Raises:
            LeaseError: If it is rejected, with the reason.
        """
        self.require_takes_commands()
        lease = self.commands.acquire(source, client, epoch)
        self.tell()
        return lease

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

    def release(self, source: str, lease: int) -> str:
        """As `Driver.release`, in the driver's thread."""
        self.commands.require(source, lease)
        self.commands.end(f"'{source}' gave it up.")
        self.tell()
        if self._drives and self.state is State.RUNNING:
            self._rest(f"safe, because '{source}' gave its lease up; waiting for another")
        return "given up"

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
                for measurement in connection.device.read(max(remaining, 0.0) / len(there)):
                    if self._drives:
                        follower.take(measurement, self._goal())
                        self._statistics.count_measurement(measurement.captured)
                        self._tell_readings()
                    else:
                        connection.note_stray(measurement)
            if remaining <= 0.0:
                return

    def _goal(self) -> np.ndarray | None:
        command = self.commands.look()
        return command[0] if command is not None and self.state is State.RUNNING else None

    def _tell_readings(self) -> None:
        moments = [follower.captured for follower in self._followers]
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
        if self._drives:
            self._require_no_standstill()
            for follower in self._followers:
                follower.require_stream(now)
            self._follow_command(now, interrupted)
        elif self.is_active and self.state is State.SAFE and self.is_safe:
            if now >= self._rest_until:
                self._require_at_rest(now)
                self._start()
        else:
            self._check(now)

    def _require_at_rest(self, now: float) -> None:
        # It drives what it finds: a tendon that did not slacken would be held where it is.
        for connection in self.connections:
            connection.check(now, never)
            if connection.still_unsafe:
                raise UnsafeError(connection.still_unsafe)

    def _start(self) -> None:
        self._drives = True
        now = self._clock.now()
        for connection, follower in zip(self.connections, self._followers, strict=True):
            connection.is_safe = False
            connection.still_unsafe = ""
            self._setpoint[follower.indices] = follower.begin(now)
        self._last_step = now
        self._statistics.restart_rate(now)
        self._last_tick = self._clock.since_boot()
        self._set_state(State.SAFE, self._rest_reason)

    def _require_no_standstill(self) -> None:
        # Measurements that waited in the port meanwhile look new: the stream does not tell.
        now = self._clock.since_boot()
        stood_still, self._last_tick = now - self._last_tick, now
        if stood_still > _STANDSTILL_SECONDS:
            raise UnsafeError(
                f"The driver stood still for {stood_still:.1f} s; its guardian may have made all safe.",
                "See what stopped it or took its processor, then reset.",
            )

    def _follow_command(self, now: float, interrupted: Callable[[], bool]) -> None:
        command = self.commands.look()
        if command is not None and now - command[1] > self._settings.command_timeout:
            source, _ = self.commands.holder
            self._rest(
                f"safe, because no command of '{source}' came for {self._settings.command_timeout:g} s: it is gone, or "
                "slower than 'command_timeout'; waiting for another lease"
            )
            return
        if command is not None and self.state is State.SAFE:
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
                if self.state is not State.FAULT:
                    self.fault(str(error))
                elif connection.is_lost:
                    self._set_state(State.FAULT, self.reason.removesuffix(_BACK))
        self.tell()  # a device in doubt may have confirmed

    def fault(self, reason: str) -> None:
        """Make safe, then latch and report."""
        self.make_safe_quietly(reason)
        self.commands.begin_epoch()
        if self.state is State.FAULT:
            _log.warning("further fault: %s", reason)
            self.tell()
            return
        self._set_state(State.FAULT, reason)
        self.commands.end(reason)  # once more: it may have been asked for meanwhile
        self._latch.set(reason)

    def make_safe_quietly(self, reason: str) -> None:
        """Make all devices safe as well as can be done, and end the lease; raises nothing."""
        self._drives = False
        self.commands.end(reason)
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
        self._set_state(State.SAFE, reason)

    def _require_confirmed(self) -> None:
        for connection in self.connections:
            if not connection.is_safe:
                raise unconfirmed(connection.device)

    def rest_inactive(self) -> str:
        """Make safe, and wait for nothing.

        Raises:
            SoftformError: If a device does not confirm it; it is then tried on.
        """
        self.commands.begin_epoch()
        if self.state is State.FAULT:
            self.make_safe_quietly(self.reason)
            return "safe"
        try:
            self._rest("inactive: activate the driver to send commands")
        except SoftformError as error:
            self.fault(str(error))
            raise
        self._latch.clear()
        return "safe"

    def stop(self) -> str:
        """Make safe and latch until `reset`; return what was done.

        Raises:
            SoftformError: If a device does not confirm that it is safe, or the latch would not survive a restart.
        """
        self.stops += 1
        reason = "stopped by request; call 'reset' to go on"
        self.fault(reason)
        self._latch.set(reason)
        self._require_confirmed()
        if self._latch.failure:
            raise SoftformError(f"Safe and latched, but: {self._latch.failure}", "Correct it, then stop again.")
        return "Safe and latched; call 'reset' to go on."

    def reset(self, stops: int, interrupted: Callable[[], bool]) -> str:
        """Leave a latched fault, unless stopped since `stops`; if active, test what was opened anew; say what was done.

        Raises:
            SoftformError: If the cause of the fault persists, something else is asked, or was asked, meanwhile, or
                nothing would latch the next driver should this one die.
        """
        if self.stops != stops:
            raise SoftformError("A stop came after this reset was asked for.", "Reset again, if that is meant.")
        if self.state is not State.FAULT:
            return "Nothing is latched."
        for connection in self.connections:
            connection.require_safe(interrupted)
        if self.is_active:
            self._test(interrupted)
            self._require_latch("reset")
        else:
            self._latch.clear()
        self.commands.end("The driver was reset.")
        self.commands.begin_epoch()
        self._rest_until = self._clock.now() + REST_SECONDS
        self._rest_reason = "ready after a reset: all actuators are safe, waiting for a lease and commands"
        self._set_state(State.SAFE, "reset" if self.is_active else "reset; activate the driver to send commands")
        return "The fault is cleared; whoever asks for the lease moves the robot."

    def calibrate(self, interrupted: Callable[[], bool]) -> str:
        """Measure the sensors' offsets at rest, store and apply them; return what was found.

        Raises:
            SoftformError: If the robot is not safe and steady, or an offset is too large; the ones before stay.
        """
        if self.state is not State.SAFE:
            raise SoftformError(
                f"Offsets are measured at rest, but the driver is {self.state.name}: {self.reason}.",
                "End the commander or deactivate the driver, wait until it is safe, then calibrate.",
            )
        if holder := self.commands.holder[0]:
            raise SoftformError(f"'{holder}' holds the lease.", "Let it end, then calibrate.")
        self.busy = "The sensors are being calibrated."
        try:
            self._rest("safe for the calibration of its sensors")
            return " ".join(filter(None, (c.device.calibrate(interrupted) for c in self.connections)))
        except (DeviceError, UnsafeError) as error:
            self.fault(str(error))
            raise
        finally:
            self.busy = ""
            self._rest_until = self._clock.now() + REST_SECONDS

    def end(self) -> None:
        """Make safe for the last time; resets that still wait are rejected as too late."""
        self.stops += 1
        self.make_safe_quietly("The driver was closed.")

    def close(self) -> None:
        """Let go of the devices; what is not safe for sure stays latched."""
        is_safe = self.is_safe
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
