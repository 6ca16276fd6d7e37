"""What the driver's thread does with the board: rest, follow, vent, latch, find a lost board again.

Every way out of RUNNING sends the vent request first and reports afterwards. A board that was lost is opened and vented
as soon as it is back; that clears no latch.
"""

import logging
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_pneumatics.balance import Air
from softform_pneumatics.boards.guardian import HEARTBEAT_SECONDS, SILENCE_SECONDS
from softform_pneumatics.boards.interface import BoardError, Measurement, PressureBoard, never
from softform_pneumatics.connection import Connection
from softform_pneumatics.latch import LEFT_ACTIVE, LEFT_UNCONFIRMED, Latch
from softform_pneumatics.mailbox import CommandBox
from softform_pneumatics.offsets import OffsetStore, measure_offsets
from softform_pneumatics.regulator import Regulator
from softform_pneumatics.states import ChamberState, DriverSettings, State, UnsafeError
from softform_pneumatics.statistics import LoopStatistics
from softform_pneumatics.wiring import Wiring

_BACK = " The board is back on its port and vented; call 'reset' to go on."
_log = logging.getLogger(__name__)

VENT_REST_SECONDS = 0.5
_STANDSTILL_SECONDS = SILENCE_SECONDS - 2.0 * HEARTBEAT_SECONDS
"""Between two ticks; after a longer one the guardian may have vented."""


def _seconds_since_boot() -> float:
    """A steady clock that goes on while the computer sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Supervisor:
    """The state machine over one board.

    Attributes:
        state: What the driver is doing.
        reason: Why, and what to do about it.
        is_active: Whether commands are let through.
        is_calibrating: Whether offsets are being measured.
        stops: How many times it was stopped.
        connection: What is known of the board while it does not regulate.
    """

    def __init__(
        self,
        board: PressureBoard,
        robot: Robot,
        settings: DriverSettings,
        commands: CommandBox,
        statistics: LoopStatistics,
        on_state: Callable[[State, str], None],
        on_pressures: Callable[[ChamberState], None],
        latch: Latch,
        offsets: OffsetStore,
        air: Air | None,
    ) -> None:
        """Describe; nothing is opened before `connect`."""
        self._board = board
        self._robot = robot
        self._settings = settings
        self._commands = commands
        self._statistics = statistics
        self._on_state = on_state
        self._on_pressures = on_pressures
        self._latch = latch
        self._offsets = offsets
        self._wiring = Wiring(robot, board)
        self._regulator = Regulator(board, robot, self._wiring, settings, statistics, air)
        self.state = State.OFFLINE
        self.reason = "not connected"
        self.is_active = False
        self.is_calibrating = False
        self.stops = 0
        self.connection = Connection(board, robot, self._wiring, settings.follow_tolerance)
        self._regulates = False
        self._last_tick = 0.0
        self._rest_until = 0.0
        self._rest_reason = ""
        self._offline_reason = self.reason

    @property
    def leaks(self) -> dict[str, float]:
        """Chambers that leak: name -> time constant, s."""
        return self._regulator.leaks

    @property
    def offsets(self) -> NDArray[np.float64]:
        """Offsets that are taken off, (k,) Pa."""
        return self._wiring.offsets

    def connect(self) -> None:
        """Open the board, vent it and, if nothing is latched, find out whether it regulates all chambers one by one.

        Raises:
            SoftformError: If the port cannot be opened, holds no such board, or the robot does not fit the board.
        """
        latched = self._latch.read()
        self.connection.open()  # which vents: what died before may have left pressure, whatever else is wrong
        try:
            self._wiring.require_ranges()
            self._wiring.offsets = self._offsets.read()
            if latched is not None:
                self._set_state(State.FAULT, f"Latched before this start: {latched}. Vented; call 'reset' to go on.")
                return
            self.connection.probe(never)
        except BaseException:
            self.connection.let_go()
            raise
        self._set_state(State.VENTED, "connected and inactive: activate the driver to send commands")

    def activate(self) -> None:
        """Let commands through, unless a fault is latched; a reset then is all that is missing.

        Raises:
            SoftformError: If the latch cannot be written: should this process die, the next one would not know.
        """
        self._commands.clear()
        if self.state is not State.FAULT:
            self._require_latch("activate")
            self._rest_reason = "ready: all targets are zero, waiting for commands"
        self.is_active = True
        if self.state is not State.FAULT:  # looked at once more: a reset may have ended just then
            self._latch.set(LEFT_ACTIVE)

    def _require_latch(self, request: str) -> None:
        """Latch the next driver, should this one die active; what cannot be latched is to be requested again."""
        self._latch.set(LEFT_ACTIVE)
        if self._latch.failure:
            raise SoftformError(self._latch.failure, f"Free space or set 'state_folder', then {request} again.")

    def _set_state(self, state: State, reason: str) -> None:
        changed = (state, reason) != (self.state, self.reason)
        self.state, self.reason = state, reason
        if changed:
            try:
                self._on_state(state, reason)
            except Exception:  # a listener's failure must never stand between a fault and the venting
                _log.exception("the listener of the driver's state failed")

    def watch_until(self, deadline: float, interrupted: Callable[[], bool]) -> None:
        """Take measurements up to `deadline` (s), or until interrupted.

        Raises:
            SoftformError: If something is wrong.
        """
        while not interrupted():
            remaining = deadline - self._board.clock.now()
            if self.connection.is_lost:
                self._board.clock.sleep(max(min(remaining, 0.05), 0.0))
            else:
                for measurement in self._board.read(max(remaining, 0.0)):
                    self._take(measurement)
            if remaining <= 0.0:
                return

    def tick(self, now: float, interrupted: Callable[[], bool]) -> None:
        """Do what is due in one period of the loop.

        Raises:
            SoftformError: If something is wrong.
        """
        if self._regulates:
            self._require_no_standstill()
            self._regulator.require_stream(now)
            self._follow_command(now, interrupted)
        elif self.is_active and self.state is State.VENTED and self.connection.is_vent_confirmed:
            if now >= self._rest_until:
                self._start()
        elif self.connection.is_check_due(now):
            self._check_vented(now)

    def _start(self) -> None:
        self.connection.is_vent_confirmed = False
        self.connection.still_inflated = ""
        self._regulates = True
        self._regulator.begin(self._board.clock.now())
        self._last_tick = _seconds_since_boot()
        self._set_state(State.VENTED, self._rest_reason)

    def _require_no_standstill(self) -> None:
        # Measurements that waited in the port meanwhile look new: the stream does not tell. Nor does `time.monotonic`,
        # which stands still while the computer sleeps.
        now = _seconds_since_boot()
        stood_still, self._last_tick = now - self._last_tick, now
        if stood_still > _STANDSTILL_SECONDS:
            raise UnsafeError(
                f"The driver stood still for {stood_still:.1f} s; its guardian may have vented.",
                "See what stopped it or took its processor, then reset.",
            )

    def _follow_command(self, now: float, interrupted: Callable[[], bool]) -> None:
        command = self._commands.look()
        if command is not None and now - command[1] > self._settings.command_timeout:
            self._commands.clear()
            self._rest_reason = (
                f"vented, because no command came for {self._settings.command_timeout:g} s: the commander is gone, or "
                "slower than 'command_timeout'; waiting for commands"
            )
            self._rest(self._rest_reason)
            return
        if command is not None and self.state is State.VENTED:
            self._set_state(State.RUNNING, "following commands")
        self._regulator.step(command, self._board.clock.now, interrupted)

    def _take(self, measurement: Measurement) -> None:
        if not self._regulates:
            self.connection.note_stray(measurement)
            return
        goal = None
        if self.state is State.RUNNING and (command := self._commands.look()) is not None:
            goal = command[0]
        self._on_pressures(self._regulator.take(measurement, goal))

    def _check_vented(self, now: float) -> None:
        try:
            if self.connection.check(now):
                self._statistics.reconnections += 1
                self._set_state(State.FAULT, self.reason.removesuffix(_BACK) + _BACK)
        except SoftformError as error:
            if self.state is not State.FAULT:
                self.fault(str(error))
            elif self.connection.is_lost:
                self._set_state(State.FAULT, self.reason.removesuffix(_BACK))

    def fault(self, reason: str) -> None:
        """Vent, then latch and report."""
        self.vent_quietly()
        self._commands.clear()
        if self.state is State.FAULT:
            _log.warning("further fault: %s", reason)
            return
        unconfirmed = "" if self.connection.is_vent_confirmed else " The board did not confirm that it vents."
        self._set_state(State.FAULT, reason + unconfirmed)
        self._latch.set(reason)

    def vent_quietly(self) -> None:
        """Vent as well as can be done; raises nothing."""
        self._regulates = False
        self.connection.vent()

    def _rest(self, reason: str) -> None:
        self.vent_quietly()
        self._rest_until = self._board.clock.now() + VENT_REST_SECONDS
        if not self.connection.is_vent_confirmed:
            raise UnsafeError(
                f"{self._board.identity} does not confirm that it vents ({reason}).",
                "Cut the pressure supply, check the board, then reset.",
            )
        self._set_state(State.VENTED, reason)

    def rest_inactive(self) -> str:
        """Vent, and wait for nothing.

        Raises:
            SoftformError: If the board does not confirm it; it is then tried on.
        """
        self._commands.clear()
        if self.state is State.FAULT:
            self.vent_quietly()
            return "vented"
        try:
            self._rest("inactive: activate the driver to send commands")
        except SoftformError as error:
            self.fault(str(error))
            raise
        self._latch.clear()
        return "vented"

    def stop(self) -> str:
        """Vent and latch until `reset`; return what was done.

        Raises:
            SoftformError: If the board does not confirm that it vents, or the latch would not survive a restart.
        """
        self.stops += 1
        reason = "stopped by request; call 'reset' to go on"
        self.fault(reason)
        self._latch.set(reason)
        if not self.connection.is_vent_confirmed:
            raise SoftformError(
                "The board did not confirm that it vents; the driver keeps trying.", "Cut the pressure supply."
            )
        if self._latch.failure:
            raise SoftformError(f"Vented and latched, but: {self._latch.failure}", "Correct it, then stop again.")
        return "Vented and latched; call 'reset' to go on."

    def reset(self, stops: int, interrupted: Callable[[], bool]) -> str:
        """Leave a latched fault; return what was done. A board that was opened anew is tested first.

        Args:
            stops: Their number when the reset was wanted.
            interrupted: Says that something else is asked.

        Raises:
            SoftformError: If the cause of the fault persists, something else is asked, or was asked, meanwhile, or
                nothing would latch the next driver should this one die.
        """
        if self.stops != stops:
            raise SoftformError("A stop came after this reset was asked for.", "Reset again, if that is meant.")
        if self.state is not State.FAULT:
            return "Nothing is latched."
        self.connection.require_vented()
        if not self.connection.is_probed:
            self.connection.probe(interrupted)
        if self.is_active:
            self._require_latch("reset")
        else:
            self._latch.clear()
        self._commands.clear()
        self._rest_until = self._board.clock.now() + VENT_REST_SECONDS
        self._rest_reason = "ready after a reset: all targets are zero, waiting for commands"
        self._set_state(State.VENTED, "reset" if self.is_active else "reset; activate the driver to send commands")
        if self.is_active:  # looked at once more: it may have been activated while the fault still stood
            self._latch.set(LEFT_ACTIVE)
        return "The fault is cleared; the next command moves the robot."

    def calibrate(self, interrupted: Callable[[], bool]) -> str:
        """Measure the sensors' offsets at rest, store and apply them; return what was found.

        Raises:
            SoftformError: If the robot is not vented and steady, or an offset is too large; the ones before stay.
        """
        if self.state is not State.VENTED:
            raise SoftformError(
                f"Offsets are measured at rest, but the driver is {self.state.name}: {self.reason}.",
                "End the commander or deactivate the driver, wait until it is vented, then calibrate.",
            )
        self.is_calibrating = True
        try:
            self._rest("vented for the calibration of its sensors")
            found = measure_offsets(
                self._board, lambda m: self._wiring.pressures(m) + self._wiring.offsets, interrupted
            )
            self._offsets.write(self._offsets.checked(found))
            self._wiring.offsets = found
        except (BoardError, UnsafeError) as error:
            self.fault(str(error))
            raise
        finally:
            self.is_calibrating = False
            self._commands.clear()
            self._rest_until = self._board.clock.now() + VENT_REST_SECONDS
        listed = ", ".join(f"{c} {o:.0f}" for c, o in zip(self._robot.actuators, found, strict=True))
        return f"Stored and applied, Pa: {listed}."

    def close(self) -> None:
        """Vent and let go of the board; what still waits for a reset is told that it is too late."""
        self.stops += 1
        self.vent_quietly()
        is_vented = self.connection.is_vent_confirmed
        self._board.close()
        if not is_vented:
            doubt = f"{LEFT_UNCONFIRMED} ({self.reason})"
            self._offline_reason = f"not connected: {doubt}. Cut the pressure supply if the robot is inflated."
            if self._latch.read() is not None:  # it was active, or at fault: pressure may be left
                self._latch.set(doubt)
        elif self.state is not State.FAULT:
            try:
                self._latch.clear()
            except SoftformError as error:
                _log.error("%s", error)

    def set_offline(self) -> None:
        """Say that nothing is connected any more."""
        self._set_state(State.OFFLINE, self._offline_reason)
