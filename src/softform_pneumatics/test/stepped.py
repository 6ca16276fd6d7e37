"""A clock whose time a test steps, and a scripted board that lives by it.

Real threads run the real driver; only waiting takes no time. So a test of time-outs is as long as what it computes, and
a busy machine changes nothing in it.
"""

import errno
import heapq
import itertools
import threading
from collections.abc import Callable

from scripted_board import ScriptedBoard

from softform_actuation.device import DeviceLostError
from softform_actuation.ports import PortError
from softform_actuation.serial_link import LONGEST_WAIT, SerialLink

_BEGIN = 1000.0  # s
_RESOLUTION = 1e-6  # s; the remainder of a wait may be smaller than what a moment can be told in
_LOOK_SECONDS = 0.001  # of real time, between two looks whether a thread has come to wait or has ended
_WIRE_SECONDS = 0.0005


class SteppedClock:
    """Time passes only while every thread that was started after this clock waits by it; see `Clock`.

    Attributes:
        slept: How long the computer has slept, s.
    """

    def __init__(self) -> None:
        self._now = _BEGIN
        self.slept = 0.0
        self._turn = threading.Condition()
        self._strangers = set(threading.enumerate()) - {threading.current_thread()}
        self._waiting: dict[threading.Thread, tuple[float, Callable[[], bool]]] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def now(self) -> float:
        return self._now

    def since_boot(self) -> float:
        return self._now + self.slept

    def sleep(self, seconds: float) -> None:
        self.wait_for(lambda: False, seconds)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        return self.wait_for(event.is_set, seconds)

    def wait_for(self, is_over: Callable[[], bool], seconds: float) -> bool:
        """Return whether `is_over`, after `seconds` at the latest."""
        thread = threading.current_thread()
        with self._turn:
            deadline = self._now + (max(seconds, _RESOLUTION) if seconds > 0.0 else 0.0)
            self._waiting[thread] = deadline, is_over
            try:
                while not is_over():
                    if self._now >= deadline:
                        return False
                    if self._all_wait():
                        self._step()
                        self._turn.notify_all()
                    else:
                        self._turn.wait(_LOOK_SECONDS)
                return True
            finally:
                del self._waiting[thread]

    def start(self, work: Callable[[], object], name: str) -> threading.Thread:
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        return thread

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        """Call once, when all threads wait."""
        with self._turn:
            heapq.heappush(self._timers, (self._now + seconds, next(self._numbers), call))

    def every(self, seconds: float, call: Callable[[], None], is_over: Callable[[], bool]) -> None:
        """Call again and again, when all threads wait, until `is_over`."""

        def again() -> None:
            if not is_over():
                call()
                self.after(seconds, again)

        self.after(seconds, again)

    def _all_wait(self) -> bool:
        for thread in set(threading.enumerate()) - self._strangers:
            if thread not in self._waiting:
                return False
            deadline, is_over = self._waiting[thread]
            if self._now >= deadline or is_over():
                return False  # it has only not woken up yet
        return True

    def _step(self) -> None:
        moments = [deadline for deadline, _ in self._waiting.values()]
        self._now = min(moments + [timer[0] for timer in self._timers[:1]])
        while self._timers and self._timers[0][0] <= self._now:
            heapq.heappop(self._timers)[2]()


class SteppedBoard(ScriptedBoard):
    """Without a terminal; `link` gives the driver's end of its line."""

    def __init__(self, clock: SteppedClock) -> None:
        super().__init__(clock)
        self.clock = clock
        self.path = "/dev/stepped"
        self.is_plugged = False
        self.output = b""
        self.user: SerialLink | None = None
        self._input = b""

    def start(self) -> None:
        self.is_plugged = True
        self.clock.every(self.TICK, lambda: self._regulate(), lambda: not self.is_plugged)

    def unplug(self) -> None:
        """As a pulled cable does."""
        self.is_plugged = False

    def say(self, data: bytes) -> None:
        self.output += data

    def receive(self, data: bytes) -> None:
        *lines, self._input = (self._input + data).split(b"\n")
        for line in lines:
            self._answer(line)

    def link(self) -> SerialLink:
        return SteppedLink(self.clock, lambda: self)


class SteppedLink(SerialLink):
    """A line to whatever board is on the port when it is opened; no process guards it."""

    def __init__(self, clock: SteppedClock, board_on_port: Callable[[], SteppedBoard | None]) -> None:
        super().__init__("/dev/stepped")
        self.clock = self._stepped = clock
        self._board_on_port = board_on_port
        self._board: SteppedBoard | None = None

    @property
    def is_open(self) -> bool:
        return self._board is not None

    def open(self, baud_rate: int) -> None:
        board = self._board_on_port()
        if board is None or not board.is_plugged:
            raise PortError(f"There is no port {self.path}.", "Plug the board in.")
        if board.user is not None:
            raise PortError(f"{self.path} is used by another driver.", "End it.")
        board.user, board.output, self._board, self.first_bytes = self, b"", board, b""

    def guard(self, emergency: bytes) -> None:
        """Nobody: what happens to a driver's process is tested with real ones."""

    def receive(self, timeout: float) -> bytes:
        board = self._plugged()
        self._stepped.wait_for(lambda: bool(board.output) or not board.is_plugged, min(timeout, LONGEST_WAIT))
        data, board.output = self._plugged().output, b""
        self.bytes_received += len(data)
        self.first_bytes = (self.first_bytes + data)[:64]
        return data

    def write(self, data: bytes) -> None:
        board = self._plugged()
        self._stepped.after(_WIRE_SECONDS, lambda: board.receive(data))

    def close(self, emergency: bool) -> None:
        if self._board is not None:
            self._board.user = None
            self._board = None

    def _plugged(self) -> SteppedBoard:
        if self._board is None:
            raise DeviceLostError(f"{self.path} is not open.", "Configure the driver.")
        if not self._board.is_plugged:
            raise self._lost(OSError(errno.EIO, "Input/output error"))
        return self._board
