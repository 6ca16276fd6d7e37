"""An emulated board, its line and its air as the schedule of faults has them; a faultless board while none is on."""

from collections import deque

import numpy as np

from softform_rig.emulation import EmulatedDevice
from softform_rig.fault_kinds import Fault
from softform_rig.fault_schedule import FaultSchedule

_LINE_END = b"\r\n"
_BITS = 8


class FaultyLine:
    """A serial line that loses, corrupts and merges (by `seed`) while the schedule says so."""

    def __init__(self, schedule: FaultSchedule, seed: int = 0) -> None:
        self._schedule = schedule
        self._random = np.random.default_rng(seed)

    def to_host(self, data: bytes) -> bytes:
        """What arrives of the bytes that the board sent."""
        if not data:
            return data
        for fault in self._schedule.on("mute"):
            self._schedule.shows(fault)
            return b""
        for fault in self._schedule.on("merge_lines"):
            data = self._merged(data, fault)
        return self._damaged(data, "drop_bytes", "corrupt")

    def to_board(self, data: bytes) -> bytes:
        """What arrives of the bytes that the host sent."""
        return self._damaged(data, "drop_request_bytes", "corrupt_requests")

    def _damaged(self, data: bytes, dropping: str, corrupting: str) -> bytes:
        for fault in self._schedule.on(dropping):
            data = self._dropped(data, fault)
        for fault in self._schedule.on(corrupting):
            data = self._corrupted(data, fault)
        return data

    def _dropped(self, data: bytes, fault: Fault) -> bytes:
        kept = np.frombuffer(data, dtype=np.uint8)[self._random.random(len(data)) >= fault.number()].tobytes()
        return self._shown(fault, data, kept)

    def _corrupted(self, data: bytes, fault: Fault) -> bytes:
        flips = np.where(
            self._random.random(len(data)) < fault.number(), 1 << self._random.integers(_BITS, size=len(data)), 0
        )
        return self._shown(fault, data, (np.frombuffer(data, dtype=np.uint8) ^ flips.astype(np.uint8)).tobytes())

    def _merged(self, data: bytes, fault: Fault) -> bytes:
        *lines, rest = data.split(_LINE_END)
        ends = [b"" if self._random.random() < fault.number() else _LINE_END for _ in lines]
        return self._shown(fault, data, b"".join(line + end for line, end in zip(lines, ends, strict=True)) + rest)

    def _shown(self, fault: Fault, before: bytes, after: bytes) -> bytes:
        if after != before:
            self._schedule.shows(fault)
        return after


_LONGEST_REQUEST = 64  # bytes of the wire kept to find a request that comes in pieces
_REMEMBERED = 1000


class FaultyBoard:
    """Wraps a board; a terminal serves it as it would the board itself.

    Attributes:
        board: The board.
        schedule: Schedule of faults.
        vent_times: When requests to vent passed on the wire, s, steady clock; the latest.

    Args:
        board: The board.
        schedule: Schedule of faults; none if not given.
        seed: Seed of the bytes that the line loses.
    """

    def __init__(self, board: EmulatedDevice, schedule: FaultSchedule | None = None, seed: int = 0) -> None:
        self.board = board
        self.schedule = schedule or FaultSchedule()
        self.vent_times: deque[float] = deque(maxlen=_REMEMBERED)
        self._line = FaultyLine(self.schedule, seed)
        self._heard = b""
        self._suffers = False

    def boot(self, now: float) -> None:
        """Restart the board at time `now`, s."""
        slow = self._showing("slow_boot")
        self.board.boot_seconds = max((fault.number() for fault in slow), default=self.board.usual_boot_seconds)
        self.board.boot(now)

    def receive(self, data: bytes, now: float) -> None:
        """Take bytes from the host at time `now`, s."""
        self._look_for_vent(data, now)
        self._apply(now)
        self.board.receive(self._line.to_board(data), now)

    def advance(self, now: float) -> None:
        """Let time pass up to `now`, s."""
        self._apply(now)
        self.board.advance(now)

    def take_output(self) -> bytes:
        """Return and forget what has arrived at the host's end since the last call."""
        return self._line.to_host(self.board.take_output())

    def _look_for_vent(self, data: bytes, now: float) -> None:
        self._heard += data
        ends = self.board.vent_ends(self._heard)
        self.vent_times.extend([now] * len(ends))
        self._heard = self._heard[ends[-1] if ends else 0 :][-_LONGEST_REQUEST:]

    def _apply(self, now: float) -> None:
        for _ in self.schedule.take("reboot"):
            self.boot(now)
        is_on = bool(self.schedule.all_on())
        if is_on or self._suffers:  # once more after the last one, which thereby ends
            self.board.is_hung = bool(self._showing("stall"))
            self.board.suffer(self._showing)
        self._suffers = is_on

    def _showing(self, kind: str) -> list[Fault]:
        """Faults of one kind that are on and show by that alone."""
        faults = self.schedule.on(kind)
        for fault in faults:
            self.schedule.shows(fault)
        return faults
