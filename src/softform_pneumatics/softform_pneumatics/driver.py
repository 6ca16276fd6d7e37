"""The pneumatic driver: one thread on monotonic deadlines that follows commands, and vents whenever it is not sure.

`PneumaticsDriver` owns a `PressureBoard`. Its thread alone talks to the board; commands and requests are handed over to
it. States and what leads to them::

    OFFLINE ──connect──► VENTED ◄──────────────┐
                           │ first command     │ stale command, deactivate
                           ▼                   │
                        RUNNING ───────────────┘
                           │ stop, stale stream, over-pressure, a chamber that does not follow,
                           ▼ lost board, exception
                         FAULT ──reset──► VENTED

Every arrow that leaves RUNNING sends the vent request first and reports afterwards. All times are those of the steady
clock. Python holds no hard real-time promise: the board's firmware regulates, and is the last line.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from enum import IntEnum
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.robots import PneumaticRobot
from softform_pneumatics.board import BoardError, BoardLostError, Measurement, PressureBoard
from softform_pneumatics.probe import probe_pressure, probe_regulation, require_independent
from softform_pneumatics.regulation import CommandRejectedError, SettleDetector, check_command, limit_rate

_log = logging.getLogger(__name__)


class State(IntEnum):
    """What the driver is doing; the numbers are those of `DriverState.msg`."""

    VENTED = 0
    RUNNING = 1
    FAULT = 2
    OFFLINE = 3


class ChamberStatus(IntEnum):
    """How far one chamber is; the numbers are those of `ChamberPressures.msg`."""

    VENTED = 0
    REGULATING = 1
    SETTLED = 2
    FAULT = 3


@dataclass(frozen=True)
class ChamberState:
    """Measured pressures of the robot's chambers.

    Args:
        pressures: (k,) Pa gauge.
        status: (k,) `ChamberStatus`.
        captured: When they were measured, in seconds of `time.monotonic`.
    """

    pressures: NDArray[np.float64]
    status: NDArray[np.uint8]
    captured: float


@dataclass(frozen=True)
class DriverSettings:
    """How the driver watches and regulates; Pa and seconds."""

    loop_rate: float = 20.0
    command_timeout: float = 1.0
    stream_timeout: float = 1.0
    settle_tolerance: float = 100.0
    settle_time: float = 0.5
    overpressure_margin: float = 1000.0
    follow_tolerance: float = 1000.0
    follow_timeout: float = 5.0


@dataclass
class LoopStatistics:
    """What the loop has done so far, and how punctually."""

    ticks: int = 0
    worst_lateness: float = 0.0
    measurements: int = 0
    rejected_commands: int = 0
    measured_rate: float = 0.0


_VENT_REST_SECONDS = 0.5
_ALIVE_CHECK_SECONDS = 1.0
_VENTED_WITHIN_SECONDS = 5.0
_LATE_STREAM_SECONDS = 0.3
_RATE_WINDOW_SECONDS = 1.0
_OUTSIDE_IN_A_ROW = 2
_LONGEST_STEP_SECONDS = 0.2
_REQUEST_SECONDS = 20.0
_WIRE_RESOLUTION = 1.0  # Pa: the codec's last decimal


class _UnsafeError(SoftformError):
    """Raised inside the loop: something is wrong or not known; vent, and latch this as a fault."""


class PneumaticsDriver:
    """Drives one robot through one board; see the module's description.

    `on_state(state, reason)` and `on_pressures(chamber_state)` are called from the driver's thread (the first also from
    `connect`) and must not wait.
    """

    def __init__(
        self,
        board: PressureBoard,
        robot: PneumaticRobot,
        settings: DriverSettings,
        on_state: Callable[[State, str], None],
        on_pressures: Callable[[ChamberState], None],
    ) -> None:
        """Describe the driver; nothing is opened before `connect`."""
        self._board = board
        self._robot = robot
        self._settings = settings
        self._on_state = on_state
        self._on_pressures = on_pressures
        self._channels = np.array(robot.board.channels)
        self._thread: threading.Thread | None = None
        self._exit = threading.Event()
        self._lock = threading.Lock()
        self._requests: list[tuple[Callable[[], str], Future[str]]] = []
        self._command: NDArray[np.float64] | None = None
        self._command_moment = 0.0
        self._state = State.OFFLINE
        self._reason = "not connected"
        self._active = False
        self._streams = False
        self._is_lost = False
        self._is_vent_confirmed = False
        self._still_inflated = ""
        self._last_rejection = ""
        self._rest_until = 0.0
        self._rest_reason = ""
        self._vented_since = 0.0
        self._next_alive_check = 0.0
        chambers = len(robot.chambers)
        self._setpoint = np.zeros(chambers)
        self._sent = np.full(chambers, np.nan)
        self._last_step = 0.0
        self._refresh = 0
        self._refused_seen = 0
        self._last_measurement = 0.0
        self._window_started = 0.0
        self._window_measurements = 0
        self._outside_in_a_row = 0
        self._astray_since: float | None = None
        self._settle = SettleDetector(chambers, settings.settle_tolerance, settings.settle_time)
        self.statistics = LoopStatistics()

    def __enter__(self) -> "PneumaticsDriver":
        """Return the driver; `connect` is the caller's."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Vent and close, also on an exception."""
        self.close()

    @property
    def state(self) -> State:
        """What the driver is doing."""
        return self._state

    @property
    def reason(self) -> str:
        """Why it is in this state, and what to do about it."""
        return self._reason

    def connect(self) -> None:
        """Open the board, vent it, find out whether it regulates all chambers one by one, and start the loop, vented.

        Takes about five seconds.

        Raises:
            SoftformError: If the port cannot be opened, holds no such board, or the robot does not fit the board.
        """
        self._require_ranges()
        self._open_and_probe()
        self._set_state(State.VENTED, "connected and inactive: activate the driver to send commands")
        self._exit.clear()
        # A daemon: a program that forgets `close` ends all the same, and the guardian vents.
        self._thread = threading.Thread(target=self._run, name="pneumatics", daemon=True)
        self._thread.start()

    def activate(self) -> None:
        """Let commands through; returns at once.

        Raises:
            SoftformError: If a fault is latched or the driver is not connected.
        """
        if self._thread is None:
            raise SoftformError("The driver is not connected.", "Configure it first.")
        if self._state is State.FAULT:
            raise SoftformError(f"A fault is latched: {self._reason}", "Call the service 'reset' first.")
        with self._lock:
            self._command = None
        self._rest_reason = "ready: all targets are zero, waiting for commands"
        self._active = True

    def deactivate(self) -> None:
        """Vent, and let no commands through; returns once the board has confirmed.

        Raises:
            SoftformError: If the board does not confirm it; it is then tried on.
        """
        self._active = False
        if self._thread is not None:
            self._in_thread(self._rest_inactive)

    def command(self, names: Sequence[str], pressures: Sequence[float]) -> None:
        """Take a command: a goal (Pa) for each chamber.

        Raises:
            CommandRejectedError: If the driver does not follow it, and why; the command before it stays in force until
                it is stale.
        """
        try:
            goal = check_command(self._robot, names, pressures)
            if self._state is State.FAULT:
                raise CommandRejectedError(f"A fault is latched: {self._reason}", "Call the service 'reset' first.")
            if not self._active:
                raise CommandRejectedError("The driver is not active.", "Activate it first.")
        except CommandRejectedError as error:
            self.statistics.rejected_commands += 1
            self._last_rejection = str(error)
            raise
        with self._lock:
            self._command, self._command_moment = goal, time.monotonic()

    def stop(self) -> str:
        """Vent and latch until `reset`; return what was done.

        Raises:
            SoftformError: If the board does not confirm that it vents; it is then tried on.
        """
        if self._thread is None:
            return "The driver is not connected; nothing is inflated by it."
        return self._in_thread(self._stop)

    def reset(self) -> str:
        """Leave a latched fault; return what was done. A lost board is opened and tested again.

        Raises:
            SoftformError: If the cause of the fault persists.
        """
        if self._thread is None:
            raise SoftformError("The driver is not connected.", "Configure it first.")
        return self._in_thread(self._reset)

    def close(self) -> None:
        """Vent, end the loop and let go of the board; may be called at any moment, and twice."""
        self._active = False
        self._exit.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(_REQUEST_SECONDS)
            if thread.is_alive():
                _log.error("the driver's loop hangs; the guardian process vents the board when this process ends")
                return
        self._set_state(State.OFFLINE, "not connected")

    def health(self) -> Mapping[str, object]:
        """Return values for the diagnostics."""
        statistics = self.statistics
        return {
            "board": self._board.identity,
            "state": self._state.name,
            "reason": self._reason,
            "active": self._active,
            "vent confirmed": self._is_vent_confirmed,
            "stream rate (Hz)": f"{statistics.measured_rate:.1f}",
            "measurements": statistics.measurements,
            "loop ticks": statistics.ticks,
            "worst lateness of the loop (ms)": f"{1000.0 * statistics.worst_lateness:.1f}",
            "corrupt lines": self._board.corrupt_lines,
            "refused requests": self._board.refused_requests,
            "rejected commands": statistics.rejected_commands,
            "last rejection": self._last_rejection,
            "still inflated": self._still_inflated,
        }

    # From here on everything runs in the driver's thread, `_open_and_probe` and `_set_state` also in `connect`.

    def _require_ranges(self) -> None:
        low, high = self._board.pressure_min[self._channels], self._board.pressure_max[self._channels]
        for index in np.flatnonzero((self._robot.pressure_min < low) | (self._robot.pressure_max > high)):
            raise BoardError(
                f"Chamber {self._robot.chambers[index]} works between {self._robot.pressure_min[index]:g} and "
                f"{self._robot.pressure_max[index]:g} Pa, but channel {self._channels[index]} measures "
                f"{low[index]:g} … {high[index]:g} Pa only.",
                "Change 'board.channels' in the robot's description: even channels measure vacuum too.",
            )

    def _open_and_probe(self) -> None:
        self._board.open()
        try:
            channels = [int(channel) for channel in self._channels]
            require_independent(self._robot, probe_regulation(self._board, channels, probe_pressure(self._robot)))
            self._is_vent_confirmed = self._board.vent()
        except BaseException:
            self._board.close()
            raise
        self._is_lost = False
        self._streams = False
        self._vented_since = time.monotonic()

    def _set_state(self, state: State, reason: str) -> None:
        changed = (state, reason) != (self._state, self._reason)
        self._state, self._reason = state, reason
        if changed:
            try:
                self._on_state(state, reason)
            except Exception:  # a listener's failure must never stand between a fault and the venting
                _log.exception("the listener of the driver's state failed")

    def _in_thread(self, work: Callable[[], str]) -> str:
        future: Future[str] = Future()
        with self._lock:
            self._requests.append((work, future))
        try:
            return future.result(_REQUEST_SECONDS)
        except FutureTimeoutError:
            raise SoftformError(
                "The driver's loop does not answer.", "Cut the pressure supply, then end the driver."
            ) from None

    def _run(self) -> None:
        period = 1.0 / self._settings.loop_rate
        deadline = time.monotonic()
        try:
            while not self._exit.is_set():
                try:
                    self._answer_requests()
                    now = time.monotonic()
                    if now >= deadline:
                        self.statistics.ticks += 1
                        self.statistics.worst_lateness = max(self.statistics.worst_lateness, now - deadline)
                        deadline = max(deadline + period, now)
                        self._tick(now)
                    self._watch_until(deadline)
                except SoftformError as error:
                    self._fault(str(error))
                except Exception as error:
                    _log.exception("the driver's loop failed")
                    self._fault(f"The driver failed: {error!r}. Report this with the log; `reset` tries again.")
                    self._exit.wait(period)  # whatever fails must not fail at full speed
        finally:
            self._vent_quietly()
            self._board.close()
            self._answer_requests()

    def _answer_requests(self) -> None:
        with self._lock:
            requests, self._requests = self._requests, []
        for work, future in requests:
            try:
                future.set_result(work())
            except Exception as error:
                future.set_exception(error)

    def _watch_until(self, deadline: float) -> None:
        while not self._exit.is_set() and not self._requests:
            remaining = deadline - time.monotonic()
            if self._is_lost:
                self._exit.wait(max(remaining, 0.0))
            else:
                for measurement in self._board.read(max(remaining, 0.0)):
                    self._take(measurement)
            if remaining <= 0.0:
                return

    def _tick(self, now: float) -> None:
        if self._streams:
            if now - self._last_measurement > self._settings.stream_timeout:
                raise _UnsafeError(
                    f"{self._board.identity} sent no pressures for {self._settings.stream_timeout:g} s.",
                    "Check its power and cable, then reset.",
                )
            self._follow_command(now)
        elif self._active and self._state is State.VENTED and self._is_vent_confirmed:
            if now >= self._rest_until:
                self._start()
        elif now >= self._next_alive_check:
            self._next_alive_check = now + _ALIVE_CHECK_SECONDS
            self._check_vented(now)

    def _start(self) -> None:
        self._is_vent_confirmed = False
        self._still_inflated = ""
        self._streams = True
        self._board.start()
        self._setpoint[:] = 0.0
        self._sent[:] = 0.0
        self._outside_in_a_row = 0
        self._astray_since = None
        self._settle.reset()
        self._last_measurement = self._last_step = self._window_started = time.monotonic()
        self._window_measurements = 0
        self._refused_seen = self._board.refused_requests
        self._set_state(State.VENTED, self._rest_reason)

    def _follow_command(self, now: float) -> None:
        with self._lock:
            command, moment = self._command, self._command_moment
        if command is not None and now - moment > self._settings.command_timeout:
            with self._lock:
                self._command = None
            self._rest_reason = (
                f"vented, because no command came for {self._settings.command_timeout:g} s: the commander is gone, or "
                "slower than 'command_timeout'; waiting for commands"
            )
            self._rest(self._rest_reason)
            return
        if command is not None:
            if self._state is State.VENTED:
                self._set_state(State.RUNNING, "following commands")
            step = min(now - self._last_step, _LONGEST_STEP_SECONDS)
            setpoint = limit_rate(self._setpoint, command, self._robot.slew_rate, step)
            if not np.array_equal(setpoint, self._setpoint):
                self._settle.reset()
            self._setpoint = setpoint
        self._last_step = now
        self._send_setpoint()

    def _send_setpoint(self) -> None:
        if self._board.refused_requests != self._refused_seen:
            # A target may be among the refused: the board does not say which.
            self._refused_seen = self._board.refused_requests
            self._sent[:] = np.nan
        # One unchanged channel is sent again each time, because a target that gets lost is not reported.
        self._refresh = (self._refresh + 1) % len(self._setpoint)
        self._sent[self._refresh] = np.nan
        for index in np.flatnonzero(~(np.abs(self._setpoint - self._sent) < _WIRE_RESOLUTION / 2)):
            if self._exit.is_set() or self._requests:
                return
            self._board.set_target(int(self._channels[index]), float(self._setpoint[index]))
            self._sent[index] = self._setpoint[index]

    def _take(self, measurement: Measurement) -> None:
        if not self._streams:
            if measurement.captured > self._vented_since + _LATE_STREAM_SECONDS:
                # A vented board is silent: this one regulates on.
                self._is_vent_confirmed = False
                self._next_alive_check = 0.0
            return
        self._count(measurement)
        pressures = measurement.pressures[self._channels]
        self._require_within_limits(pressures)
        self._require_following(pressures, measurement.captured)
        status = np.full(len(pressures), ChamberStatus.VENTED, dtype=np.uint8)
        if self._state is State.RUNNING:
            with self._lock:
                goal = self._setpoint if self._command is None else self._command
            settled = self._settle.update(pressures - goal, measurement.captured) & (self._setpoint == goal)
            status[:] = np.where(settled, ChamberStatus.SETTLED, ChamberStatus.REGULATING)
        self._on_pressures(ChamberState(pressures, status, measurement.captured))

    def _count(self, measurement: Measurement) -> None:
        self._last_measurement = measurement.captured
        self.statistics.measurements += 1
        self._window_measurements += 1
        window = measurement.captured - self._window_started
        if window >= _RATE_WINDOW_SECONDS:
            self.statistics.measured_rate = self._window_measurements / window
            self._window_started, self._window_measurements = measurement.captured, 0

    def _require_within_limits(self, pressures: NDArray[np.float64]) -> None:
        margin = self._settings.overpressure_margin
        outside = (pressures > self._robot.pressure_max + margin) | (pressures < self._robot.pressure_min - margin)
        # One reading alone may be a corrupt line that looks like a good one: the wire has no checksum.
        self._outside_in_a_row = self._outside_in_a_row + 1 if outside.any() else 0
        if self._outside_in_a_row >= _OUTSIDE_IN_A_ROW:
            index = int(np.flatnonzero(outside)[0])
            raise _UnsafeError(
                f"Chamber {self._robot.chambers[index]} is at {pressures[index]:.0f} Pa; its range is "
                f"{self._robot.pressure_min[index]:g} … {self._robot.pressure_max[index]:g} Pa.",
                "Check tubes, valves and sensor of that channel, then reset.",
            )

    def _require_following(self, pressures: NDArray[np.float64], moment: float) -> None:
        deviation = np.abs(pressures - self._setpoint)
        if deviation.max() <= self._settings.follow_tolerance:
            self._astray_since = None
            return
        if self._astray_since is None:
            self._astray_since = moment
        if moment - self._astray_since > self._settings.follow_timeout:
            index = int(np.argmax(deviation))
            raise _UnsafeError(
                f"Chamber {self._robot.chambers[index]} stays at {pressures[index]:.0f} Pa while its setpoint is "
                f"{self._setpoint[index]:.0f} Pa.",
                "Check for a leak, a blocked tube or a failed pump on that channel, then reset.",
            )

    def _check_vented(self, now: float) -> None:
        """Ask a board at rest for a sign of life, and repeat the vent request until it is confirmed."""
        try:
            if self._is_lost or not self._is_vent_confirmed:
                self._is_vent_confirmed = self._board.vent()
                self._vented_since = time.monotonic()
            self._is_lost = False
            told = self._board.check_alive()
        except BoardError as error:
            self._is_lost = isinstance(error, BoardLostError)
            if self._state is not State.FAULT:
                self._fault(str(error))
            return
        self._still_inflated = ""
        for chamber, channel in zip(self._robot.chambers, self._channels, strict=True):
            pressure = told.get(int(channel), 0.0)
            if abs(pressure) > self._settings.follow_tolerance and now - self._vented_since > _VENTED_WITHIN_SECONDS:
                self._still_inflated = f"{chamber} is still at {pressure:.0f} Pa: cut the supply and open its tube"

    def _fault(self, reason: str) -> None:
        self._vent_quietly()
        with self._lock:
            self._command = None
        if self._state is State.FAULT:
            _log.warning("further fault: %s", reason)
            return
        unconfirmed = "" if self._is_vent_confirmed else " The board did not confirm that it vents."
        self._set_state(State.FAULT, reason + unconfirmed)

    def _vent_quietly(self) -> None:
        self._streams = False
        self._is_vent_confirmed = False
        try:
            self._is_vent_confirmed = self._board.vent()
        except BoardLostError:
            self._is_lost = True
        except Exception:
            _log.exception("venting failed")
        self._vented_since = time.monotonic()
        self._next_alive_check = self._vented_since + _ALIVE_CHECK_SECONDS

    def _rest(self, reason: str) -> None:
        self._vent_quietly()
        self._rest_until = time.monotonic() + _VENT_REST_SECONDS
        if not self._is_vent_confirmed:
            raise _UnsafeError(
                f"{self._board.identity} does not confirm that it vents ({reason}).",
                "Cut the pressure supply, check the board, then reset.",
            )
        self._set_state(State.VENTED, reason)

    def _rest_inactive(self) -> str:
        with self._lock:
            self._command = None
        if self._state is State.FAULT:
            self._vent_quietly()
        else:
            try:
                self._rest("inactive: activate the driver to send commands")
            except SoftformError as error:
                self._fault(str(error))
                raise
        return "vented"

    def _stop(self) -> str:
        self._fault("stopped by request; call 'reset' to go on")
        if not self._is_vent_confirmed:
            raise SoftformError(
                "The board did not confirm that it vents; the driver keeps trying.", "Cut the pressure supply."
            )
        return "Vented and latched; call 'reset' to go on."

    def _reset(self) -> str:
        if self._state is not State.FAULT:
            return "Nothing is latched."
        if self._is_lost:
            self._board.close()
            self._open_and_probe()
        elif not self._is_vent_confirmed:
            self._is_vent_confirmed = self._board.vent()
        if not self._is_vent_confirmed:
            raise SoftformError("The board does not confirm that it vents.", "Check its power and cable.")
        self._board.check_alive()
        self._rest_until = time.monotonic() + _VENT_REST_SECONDS
        self._rest_reason = "ready after a reset: all targets are zero, waiting for commands"
        self._set_state(State.VENTED, "reset" if self._active else "reset; activate the driver to send commands")
        return "The fault is cleared; the next command moves the robot."
