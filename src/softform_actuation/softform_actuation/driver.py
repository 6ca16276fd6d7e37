"""The driver: one thread on monotonic deadlines that follows commands, and makes safe whenever it is not sure.

`Driver` owns the devices of one robot. Its thread alone talks to them; commands and requests are handed over to it.
States and what leads to them::

    OFFLINE ──connect──► MAKING_SAFE ──measured──► SAFE (HOLDING, where motors hold the robot)
                              ▲                      │ lease, command
                              │                      ▼
                              └─────────────────── RUNNING    down: stale command, lease given up, deactivate,
                              ▲                      │        hold_timeout
                            reset                    │ stop, stale stream, beyond the range, an actuator that does not
                              │                      ▼ follow or respond, lost device, exception
                              └─────────────────── FAULT

Every way down ends the lease and the epoch. SAFE means that every actuator was measured at rest. A latched fault, and a
driver that died while it was active, are found again by the next one, which starts in FAULT. All times are those of the
first device's clock, which is steady. Python holds no hard real-time promise: the devices' firmware regulates, and is
the last line.
"""

import functools
import logging
import threading
from collections.abc import Callable, Mapping, Sequence

from softform_actuation.commands import CommandRejectedError, check_age, check_command
from softform_actuation.deadlines import Deadlines
from softform_actuation.device import Device, ServedActuators, never
from softform_actuation.latch import Latch
from softform_actuation.lease import Asked, Grant, LeaseError
from softform_actuation.requests import EndedError, Requests, Result
from softform_actuation.states import DriverReport, DriverSettings, Readings, State
from softform_actuation.statistics import LoopStatistics
from softform_actuation.supervisor import REST_PATIENCE_SECONDS, Supervisor
from softform_core.errors import SoftformError
from softform_core.priority import ask_for_priority, make_ordinary, threads_of_this_process
from softform_core.robots import Robot

_log = logging.getLogger(__name__)

_REQUEST_SECONDS = 20.0
_LOOK_SECONDS = 0.02


class Driver:
    """Drives one robot through its devices; see the module's description.

    Args:
        devices: Devices with the actuators that each serves.
        robot: The robot that they drive.
        settings: Timeouts, limits and rates.
        on_report: Called at every change of state, reason or holder, from any thread; must not block.
        on_readings: Called with every measurement, from the driver's thread; must not block.
        latch: Fault latch that outlives this process; none by default.
        warnings: What an operator should know of these devices; the driver reports it.
    """

    def __init__(
        self,
        devices: Sequence[tuple[Device, ServedActuators]],
        robot: Robot,
        settings: DriverSettings,
        on_report: Callable[[DriverReport], None],
        on_readings: Callable[[Readings], None],
        latch: Latch | None = None,
        warnings: tuple[str, ...] = (),
    ) -> None:
        self._devices = [device for device, _ in devices]
        self._names = [served.device for _, served in devices]
        self._clock = self._devices[0].clock
        self._robot = robot
        self._settings = settings
        self._requests = Requests(self._clock)
        self._exit = threading.Event()
        self._has_ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._connecting = threading.Lock()
        self._latch = latch or Latch()
        self._deadlines = Deadlines(1.0 / settings.loop_rate, self._clock.now())
        self._scheduling = "not running"
        self.statistics = LoopStatistics()
        self._supervisor = Supervisor(
            devices, robot, settings, self.statistics, on_report, on_readings, self._latch, warnings
        )

    def __enter__(self) -> "Driver":
        """Return the driver; `connect` is the caller's."""
        return self

    def __exit__(self, *error: object) -> None:
        """Make safe and close, also on an exception."""
        self.close()

    @property
    def state(self) -> State:
        """What the driver is doing."""
        return self._supervisor.state

    @property
    def reason(self) -> str:
        """Why it is in this state, and what to do about it."""
        return self._supervisor.reason

    @property
    def report(self) -> DriverReport:
        """State, reason and holder of the lease."""
        return self._supervisor.report

    @property
    def held_for(self) -> float:
        """How long the lease has been held, s; 0 without a holder."""
        return self._supervisor.commands.held_for

    def connect(self, interrupted: Callable[[], bool] = never) -> None:
        """Open the devices, which makes them safe, and start the loop. Nothing moves.

        Raises:
            SoftformError: If a port cannot be opened, holds no such device, or the robot does not fit the device; or if
                it was `interrupted`.
        """
        self._supervisor.open(interrupted)
        self._exit.clear()
        self._has_ended.clear()
        with self._connecting:  # a stop is latched before, and found; or comes after, and is the loop's
            self._supervisor.begin(interrupted)
            self._thread = self._clock.start(self._run, "driver")

    def activate(self) -> None:
        """Test the actuators, then let commands through. While a fault is latched they are rejected until `reset`.

        Takes some seconds the first time; a stop or `interrupt` ends it at once.

        Raises:
            SoftformError: If the driver is not connected, a device does not drive its actuators, or nothing would latch
                the next driver should this one die.
        """
        self._require_connected()
        self._in_thread(lambda: self._supervisor.activate(self._is_wanted_elsewhere), late=False)

    def deactivate(self) -> None:
        """Make safe, and let no commands through; returns once all is measured at rest.

        Raises:
            SoftformError: If a device does not confirm it, or an actuator is not at rest; it is then tried on.
        """
        self._supervisor.is_active = False
        if self._thread is not None and not self._exit.is_set():  # which makes safe, too
            self._in_thread(lambda: self._supervisor.rest_inactive(self._is_wanted_elsewhere))

    def acquire(self, source: str, client: int, asked: Asked, fingerprint: str) -> Grant:
        """Return a lease: from now on only `source` may command; see `LeasedCommands.acquire`.

        Raises:
            LeaseError: If it is rejected, with the reason.
        """
        return self._supervisor.acquire(source, client, asked, fingerprint)

    def release(self, source: str, grant: Grant) -> int:
        """Take a lease back; what its holder moved is made safe. Returns the epoch that is there then.

        Raises:
            SoftformError: If it is not theirs, or a device does not confirm that it is safe.
        """
        self._supervisor.commands.require(source, grant)
        return self._in_thread(lambda: self._supervisor.release(source, grant))

    def command(
        self,
        source: str,
        grant: Grant,
        fingerprint: str,
        names: Sequence[str],
        units: Sequence[str],
        values: Sequence[float],
        age: float = 0.0,
    ) -> None:
        """Take a command for the robot of that fingerprint: a goal for each actuator, decided `age` s ago.

        It renews the lease.

        Raises:
            CommandRejectedError: If the driver does not follow it, and why; the command before it stays in force until
                it is stale.
        """
        try:
            self._supervisor.require_takes_commands()
            self._supervisor.commands.require(source, grant)
            self._supervisor.commands.require_same_robot(fingerprint)
            check_age(age, self._settings.command_age_limit)
            goal = check_command(self._robot, names, units, values)
            self._supervisor.commands.put(source, grant, goal)
        except (LeaseError, CommandRejectedError) as error:
            self.statistics.rejected_commands += 1
            self.statistics.last_rejection = str(error)
            raise CommandRejectedError(error.message, error.next_step) from error

    def stop(self) -> str:
        """Make safe and latch until `reset`, also over a restart; return once all is measured at rest.

        It is made safe at once; to measure that takes as long as the robot takes to vent, or to slacken.

        Raises:
            SoftformError: If an actuator is not measured at rest in time, with what is known of it; it is looked at on.
                If the latch would not survive a restart, or there is no connection and the one before was left in
                doubt.
        """
        return self.end_stop(self.begin_stop())

    def begin_stop(self) -> bool:
        """Make safe and latch, at once; returns whether there are devices that were made safe, for `end_stop`.

        Raises:
            SoftformError: If the latch would not survive a restart, or the driver's thread does not answer.
        """
        with self._connecting:
            if self._thread is None:
                return False
        try:
            self._in_thread(self._supervisor.stop)
        except EndedError:  # it is being closed, which makes safe; then it clears the latch, and this stop comes after
            self._clock.wait(self._has_ended, _REQUEST_SECONDS)
            return False
        return True

    def end_stop(self, is_made_safe: bool) -> str:
        """Wait until all is measured at rest after `begin_stop`; results and errors are those of `stop`."""
        supervisor = self._supervisor
        if not is_made_safe:
            return self._latch.stop_unconfigured()
        end = self._clock.now() + REST_PATIENCE_SECONDS
        while True:
            if supervisor.is_secured or (self._has_ended.is_set() and supervisor.left_secured):
                held = any(device.is_holding for device in self._devices)
                done = "The motors hold the robot under power" if held else "Measured at rest"
                return f"{done}, and latched; call 'reset' to go on."
            is_known_unsafe = any(connection.still_unsafe for connection in supervisor.connections)
            if is_known_unsafe or self._clock.now() > end:
                raise SoftformError(
                    f"Stopped and latched, but NOT SAFE: {supervisor.unsafe_in_words()}",
                    "Cut the supply, open the manual vent valve and keep away; it is measured on.",
                )
            self._clock.sleep(_LOOK_SECONDS)

    def fault(self, reason: str) -> None:
        """Make safe at once, and latch this as a fault; returns once the devices have been asked.

        Raises:
            SoftformError: If the driver's thread does not answer.
        """
        self._in_thread(lambda: self._supervisor.fault(reason))

    @property
    def is_alive(self) -> bool:
        """Whether its thread runs, or it has none."""
        return self._thread is None or not self._has_ended.is_set()

    @property
    def epoch(self) -> int:
        """The present epoch; whatever makes the robot safe, each fault and each reset begins another one."""
        return self._supervisor.commands.epoch

    @property
    def fingerprint(self) -> str:
        """Of the robot that it drives."""
        return self._supervisor.commands.fingerprint

    def reset(self, asked: Asked) -> str:
        """Leave the latched faults that the caller has seen; return what was done. What was lost is opened again.

        Args:
            asked: When it was asked for, and the driver's epoch that the caller saw: later faults are not cleared.

        Raises:
            SoftformError: If it is too old, there was a fault since, the cause of the fault persists, something else is
                asked meanwhile, or nothing would latch the next driver should this one die.
        """
        self._require_connected()
        began = self._clock.since_boot()

        def reset() -> str:
            waited = self._clock.since_boot() - began
            return self._supervisor.reset(Asked(asked.age + waited, asked.epoch), self._is_wanted_elsewhere)

        return self._in_thread(reset, late=False)

    def calibrate(self) -> str:
        """Measure the offsets of the sensors at rest, store and apply them; takes about four seconds.

        Raises:
            SoftformError: If the robot is not safe and steady, an offset is too large, or something else is asked
                meanwhile; the offsets before stay.
        """
        self._require_connected()
        return self._in_thread(lambda: self._supervisor.calibrate(self._is_wanted_elsewhere), late=False)

    def interrupt(self) -> None:
        """Make safe and end the loop, whatever it is doing; returns at once, so a handler of signals may call it."""
        self._exit.set()

    def close(self) -> None:
        """Make safe, end the loop and let go of the devices; may be called at any moment, and twice."""
        self._supervisor.is_active = False
        self._exit.set()
        if (thread := self._thread) is not None:
            if not self._clock.wait(self._has_ended, _REQUEST_SECONDS):
                _log.error("the driver's loop hangs; the guardian process makes all safe when this process ends")
                return
            thread.join()
            self._thread = None
        self._supervisor.set_offline()

    def health(self) -> Mapping[str, object]:
        """Return values for the diagnostics."""
        statistics, supervisor = self.statistics, self._supervisor
        punctuality, report = self._deadlines.punctuality(), supervisor.report
        devices = [device.health() for device in self._devices]
        return {
            "devices": ", ".join(device.identity for device in self._devices),
            "made safe by": ", ".join(f"{device.safe_action.value}" for device in self._devices),
            "state": report.state.name,
            "reason": report.reason,
            "active": supervisor.is_active,
            "lease held by": report.holder,
            "holding a shape": supervisor.unchanged_for > 0.0,
            "held without renewal (s)": f"{supervisor.unchanged_for:.0f} of {self._settings.hold_timeout:g}",
            "confirmed safe": supervisor.is_secured,
            "loop thread": self._scheduling,
            "loop ticks": self._deadlines.ticks,
            "loop overruns": self._deadlines.overruns,
            "loop period mean (ms)": f"{1000.0 * punctuality.period_mean:.2f}",
            "loop period p99 (ms)": f"{1000.0 * punctuality.period_p99:.2f}",
            "loop jitter (ms)": f"{1000.0 * punctuality.jitter:.2f}",
            "worst lateness of the loop (ms)": f"{1000.0 * self._deadlines.worst_lateness:.1f}",
            "command age (ms)": f"{1000.0 * statistics.command_age:.1f}",
            "command to wire p99 (ms)": f"{1000.0 * statistics.command_to_wire_p99():.1f}",
            "stream rate (Hz)": f"{statistics.measured_rate:.1f}",
            "measurements": statistics.measurements,
            "reconnections": statistics.reconnections,
            "rejected commands": statistics.rejected_commands,
            "last rejection": statistics.last_rejection,
            "latch": self._latch.failure,
            "warning": " ".join(filter(None, (device.warning for device in devices))),
            "still unsafe": " ".join(filter(None, (c.still_unsafe for c in supervisor.connections))),
            **{
                f"{key} of {name}" if len(devices) > 1 else key: value
                for name, device in zip(self._names, devices, strict=True)
                for key, value in device.values.items()
            },
        }

    def _require_connected(self) -> None:
        if self._thread is None:
            raise SoftformError("The driver is not connected.", "Configure it first.")

    def _in_thread(self, work: Callable[[], Result], late: bool = True) -> Result:
        return self._requests.ask(work, _REQUEST_SECONDS, late)

    def _is_wanted_elsewhere(self) -> bool:
        return self._exit.is_set() or self._requests.are_waiting

    def _is_out_of_time(self, end: float) -> bool:
        return self._is_wanted_elsewhere() or self._clock.now() > end

    def _run(self) -> None:
        threads: list[int] = []
        try:
            if self._settings.realtime_priority:
                threads = threads_of_this_process()
            self._scheduling = ask_for_priority(self._settings.realtime_priority, threads)
            self._follow_until_exit()
        finally:
            # A process that goes on is none that holds air: it would keep others from the processor.
            make_ordinary(threads)
            self._has_ended.set()

    def _follow_until_exit(self) -> None:
        deadlines = self._deadlines = Deadlines(1.0 / self._settings.loop_rate, self._clock.now())
        supervisor = self._supervisor
        try:
            while not self._exit.is_set():
                try:
                    if self._requests.are_waiting:
                        supervisor.notice_standstill()  # a request that waited meanwhile must not hide it
                        self._requests.answer()
                        deadlines.resume(self._clock.now())
                        supervisor.resume()
                    now = self._clock.now()
                    if deadlines.is_due(now):
                        # A tick that is late has some time all the same: sending must not starve.
                        end = max(deadlines.next, now + 0.5 / self._settings.loop_rate)
                        supervisor.tick(now, functools.partial(self._is_out_of_time, end))
                    supervisor.watch_until(deadlines.next, self._is_wanted_elsewhere)
                except SoftformError as error:
                    supervisor.fault(str(error))
                except Exception as error:
                    # Make safe first: writing to a log whose reader has stopped may block.
                    supervisor.fault(f"The driver failed: {error!r}. Report this with the log; `reset` tries again.")
                    _log.exception("the driver's loop failed")
                    # An error that repeats must not keep the loop busy.
                    self._clock.wait(self._exit, 1.0 / self._settings.loop_rate)
        finally:
            supervisor.end()
            self._requests.close()  # stops that wait are answered while the devices are there
            supervisor.close()
