"""What faults do to the bytes on the line between host and board, in either direction."""

import numpy as np

from softform_rig.fault_schedule import FaultSchedule
from softform_rig.faults import Fault

_LINE_END = b"\r\n"
_BITS = 8


class FaultyLine:
    """A serial line that loses, corrupts and merges while the schedule says so.

    Args:
        schedule: Schedule of faults.
        seed: Seed of the bytes that are lost or corrupted.
    """

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
