"""The pneumatic driver: one thread on monotonic deadlines that follows commands, and vents whenever it is not sure.

`PneumaticsDriver` owns a `PressureBoard`. Its thread alone talks to the board; commands and requests are handed over to
it. States and what leads to them::

    OFFLINE ──connect──► VENTED ◄──────────────┐
                           │ first command     │ stale command, deactivate
                           ▼                   │
                        RUNNING ───────────────┘
                           │ stop, stale stream, over-pressure, a chamber that does not follow or respond,
                           ▼ lost board, exception
                         FAULT ──reset──► VENTED

A latched fault, and a driver that died while it was active, are found again by the next one, which starts in FAULT. All
times are those of the board's clock, which is steady. Python holds no hard real-time promise: the board's firmware
regulates, and is the last line.
"""

import functools
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

from softform_core.errors import SoftformError
from softform_core.priority import ask_for_priority, threads_of_this_process
from softform_core.robots import Robot
from softform_pneumatics.balance import Air
from softform_pneumatics.boards.interface import PressureBoard
from softform_pneumatics.deadlines import Deadlines
from softform_pneumatics.latch import Latch
from softform_pneumatics.mailbox import CommandBox, Requests
from softform_pneumatics.offsets import OffsetStore
from softform_pneumatics.regulation import CommandRejectedError, check_command
from softform_pneumatics.states import ChamberState, DriverSettings, State
from softform_pneumatics.statistics import LoopStatistics
from softform_pneumatics.supervisor import Supervisor

_log = logging.getLogger(__name__)

_REQUEST_SECONDS = 20.0


class PneumaticsDriver:
    """Drives one robot through one board; see the module's description.

    `on_state(state, reason)` and `on_pressures(chamber_state)` are called from the driver's thread (the first also from
    `connect`) and must not wait.
    """

    def __init__(
        self,
        board: PressureBoard,
        robot: Robot,
        settings: DriverSettings,
        on_state: Callable[[State, str], None],
        on_pressures: Callable[[ChamberState], None],
        latch: Latch | None = None,
        offsets: OffsetStore | None = None,
        air: Air | None = None,
    ) -> None:
        """Describe the driver; nothing is opened before `connect`.

        Args:
            board: What it drives.
            robot: Whose chambers they are.
            settings: How it watches and regulates.
            on_state: Told of every change of the state.
            on_pressures: Told of every measurement while the board regulates.
            latch: What outlives this process; none by default.
            offsets: Where the sensors' offsets are kept; by default nowhere.
            air: The identified plant, to find leaks and blockages by; none by default.
        """
        self._board = board
        self._clock = board.clock
        self._robot = robot
        self._settings = settings
        self._commands = CommandBox(self._clock)
        self._requests = Requests(self._clock)
        self._exit = threading.Event()
        self._has_ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._latch = latch or Latch()
        self._deadlines = Deadlines(1.0 / settings.loop_rate, self._clock.now())
        self._scheduling = "not running"
        self.statistics = LoopStatistics()
        self._supervisor = Supervisor(
            board,
            robot,
            settings,
            self._commands,
            self.statistics,
            on_state,
            on_pressures,
            self._latch,
            offsets or OffsetStore(None, robot, "", settings.offset_limit),
            air,
        )

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
        return self._supervisor.state

    @property
    def reason(self) -> str:
        """Why it is in this state, and what to do about it."""
        return self._supervisor.reason

    def connect(self) -> None:
        """Open the board, vent it, find out whether it regulates all chambers one by one, and start the loop, vented.

        Takes about five seconds. With a latch that is set the board is vented and not tested; `reset` tests it.

        Raises:
            SoftformError: If the port cannot be opened, holds no such board, or the robot does not fit the board.
        """
        self._supervisor.connect()
        self._exit.clear()
        self._has_ended.clear()
        # A daemon: a program that forgets `close` ends all the same, and the guardian vents.
        self._thread = threading.Thread(target=self._run, name="pneumatics", daemon=True)
        self._thread.start()

    def activate(self) -> None:
        """Let commands through; returns at once. While a fault is latched they are rejected until `reset`.

        Raises:
            SoftformError: If the driver is not connected, or nothing would latch the next one should this one die.
        """
        if self._thread is None:
            raise SoftformError("The driver is not connected.", "Configure it first.")
        self._supervisor.activate()

    def deactivate(self) -> None:
        """Vent, and let no commands through; returns once the board has confirmed.

        Raises:
            SoftformError: If the board does not confirm it; it is then tried on.
        """
        self._supervisor.is_active = False
        if self._thread is not None:
            self._in_thread(self._supervisor.rest_inactive)

    def command(self, names: Sequence[str], pressures: Sequence[float]) -> None:
        """Take a command: a goal (Pa) for each chamber.

        Raises:
            CommandRejectedError: If the driver does not follow it, and why; the command before it stays in force until
                it is stale.
        """
        try:
            goal = check_command(self._robot, names, pressures)
            if self.state is State.FAULT:
                raise CommandRejectedError(f"A fault is latched: {self.reason}", "Call the service 'reset' first.")
            if not self._supervisor.is_active:
                raise CommandRejectedError("The driver is not active.", "Activate it first.")
            if self._supervisor.is_calibrating:
                raise CommandRejectedError("The sensors are being calibrated.", "Wait some seconds.")
        except CommandRejectedError as error:
            self.statistics.rejected_commands += 1
            self.statistics.last_rejection = str(error)
            raise
        self._commands.put(goal)

    def stop(self) -> str:
        """Vent and latch until `reset`, also over a restart; return what was done.

        Raises:
            SoftformError: If the board does not confirm that it vents; it is then tried on. If the latch would not
                survive a restart, or there is no connection and the one before was left in doubt.
        """
        if self._thread is None:
            return self._latch.stop_unconfigured()
        return self._in_thread(self._supervisor.stop)

    @property
    def stops(self) -> int:
        """How many times it was stopped."""
        return self._supervisor.stops

    def reset(self, stops: int | None = None) -> str:
        """Leave a latched fault; return what was done. A board that was lost is opened and tested again.

        Args:
            stops: Their number when the reset was wanted, by default now: it does not undo a stop that came after that.

        Raises:
            SoftformError: If the cause of the fault persists, or it was stopped since.
        """
        wanted = self.stops if stops is None else stops
        if self._thread is None:
            raise SoftformError("The driver is not connected.", "Configure it first.")
        return self._in_thread(lambda: self._supervisor.reset(wanted, self._is_wanted_elsewhere), late=False)

    def calibrate(self) -> str:
        """Measure the offsets of the sensors at rest, store and apply them; takes about four seconds.

        Raises:
            SoftformError: If the robot is not vented and steady, an offset is too large, or something else is asked
                meanwhile.
        """
        if self._thread is None:
            raise SoftformError("The driver is not connected.", "Configure it first.")
        return self._in_thread(lambda: self._supervisor.calibrate(self._is_wanted_elsewhere), late=False)

    def close(self) -> None:
        """Vent, end the loop and let go of the board; may be called at any moment, and twice."""
        self._supervisor.is_active = False
        self._exit.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            if not self._clock.wait(self._has_ended, _REQUEST_SECONDS):
                _log.error("the driver's loop hangs; the guardian process vents the board when this process ends")
                return
            thread.join()
        self._supervisor.set_offline()

    def health(self) -> Mapping[str, object]:
        """Return values for the diagnostics."""
        statistics, supervisor, wire = self.statistics, self._supervisor, self._board.counters
        punctuality = self._deadlines.punctuality()
        return {
            "board": self._board.identity,
            "state": supervisor.state.name,
            "reason": supervisor.reason,
            "active": supervisor.is_active,
            "vent confirmed": supervisor.connection.is_vent_confirmed,
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
            "bytes received": wire.bytes_received,
            "bytes dropped": wire.bytes_dropped,
            "corrupt lines": wire.corrupt,
            "rejected requests": wire.refused_requests,
            "unanswered requests": wire.unanswered_requests,
            "reconnections": statistics.reconnections,
            "rejected commands": statistics.rejected_commands,
            "last rejection": statistics.last_rejection,
            "offsets (Pa)": ", ".join(f"{offset:.0f}" for offset in supervisor.offsets),
            "leaks": ", ".join(f"{chamber}: {seconds:.1f} s" for chamber, seconds in supervisor.leaks.items()),
            "latch": self._latch.failure,
            "still inflated": supervisor.connection.still_inflated,
        }

    def _in_thread(self, work: Callable[[], str], late: bool = True) -> str:
        return self._requests.ask(work, _REQUEST_SECONDS, late)

    def _is_wanted_elsewhere(self) -> bool:
        return self._exit.is_set() or self._requests.are_waiting

    def _is_out_of_time(self, end: float) -> bool:
        return self._is_wanted_elsewhere() or self._clock.now() > end

    def _run(self) -> None:
        try:
            self._follow_until_exit()
        finally:
            self._has_ended.set()

    def _follow_until_exit(self) -> None:
        self._scheduling = ask_for_priority(self._settings.realtime_priority, threads_of_this_process())
        deadlines = self._deadlines = Deadlines(1.0 / self._settings.loop_rate, self._clock.now())
        supervisor = self._supervisor
        try:
            while not self._exit.is_set():
                try:
                    if self._requests.are_waiting:
                        self._requests.answer()
                        deadlines.resume(self._clock.now())
                    now = self._clock.now()
                    if deadlines.is_due(now):
                        # A tick that is late has some time all the same: sending must not starve.
                        end = max(deadlines.next, now + 0.5 / self._settings.loop_rate)
                        supervisor.tick(now, functools.partial(self._is_out_of_time, end))
                    supervisor.watch_until(deadlines.next, self._is_wanted_elsewhere)
                except SoftformError as error:
                    supervisor.fault(str(error))
                except Exception as error:
                    # Vent first: a log that nobody reads may stand still.
                    supervisor.fault(f"The driver failed: {error!r}. Report this with the log; `reset` tries again.")
                    _log.exception("the driver's loop failed")
                    # Whatever fails must not fail at full speed.
                    self._clock.wait(self._exit, 1.0 / self._settings.loop_rate)
        finally:
            supervisor.close()
            self._requests.answer()
