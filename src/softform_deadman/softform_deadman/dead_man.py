"""The host's side of a dead-man: arms it, sends heartbeats, and believes nothing but what its controller reports.

Each line but `X` and `N` ends in a CRC-16; docs/dead-man.md lists them. A heartbeat's CRC includes the challenge under
which the dead-man was armed, so that no line of another time counts.
"""

import binascii
import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from softform_actuation.device import DeviceError, DeviceHealth, Measurement, Rest, SafeAction, UnsafeError, never
from softform_actuation.serial_link import SerialLink
from softform_core.arrays import Array

_CUT = b"\nX\n"  # the first line end ends half of another line
_BAUD_RATE = 115_200
_LONGEST_LINE = 80
_REPORT = re.compile(r"S (\w+) ([01]) (\d+) (\d+)", re.ASCII)

_TOLD_SECONDS = 0.45
"""Within which the controller, which reports every 0.1 s, is heard; `make_safe` has half a second."""

_OPEN_SECONDS = 2.0  # a controller that was just plugged in starts
_ARM_TRIES, _ANSWER_SECONDS = 3, 0.25

CUT_WITHIN = 1.0
"""s; a supply that is on for longer after the last heartbeat has no dead-man. A busy computer needs a part of it."""

_POLL = 0.02  # s


class Report(NamedTuple):
    """What the controller reported last: its state, whether the switched supply is on, and its voltage, V."""

    state: str = "silent"
    is_on: bool = False
    supply: float = np.nan
    heartbeats: int = 0

    @property
    def is_cut(self) -> bool:
        """Whether it is cut for sure."""
        return self.state == "cut" and not self.is_on


_NONE = Report()


def _sealed(words: str, salt: str = "") -> bytes:
    return f"{words} {binascii.crc_hqx((words + salt).encode(), 0xFFFF):04x}\n".encode()


class DeadMan:
    """A `Device` that serves no actuator: the relay in the supply of those that others serve.

    Args:
        line: Serial line to the controller.
    """

    safe_action, is_holding = SafeAction.VENT, False

    def __init__(self, line: SerialLink) -> None:
        self._line, self.clock = line, line.clock
        self._bytes, self._report, self._challenge = b"", _NONE, ""
        self._sequence = self._damaged = 0
        self._is_armed = self._needs_safety = False
        self._cut_seconds = np.nan

    @property
    def identity(self) -> str:
        """Where it is."""
        return f"the dead-man on {self._line.path}"

    def open(self, interrupted: Callable[[], bool] = never) -> None:
        """As `Device.open`: nothing is sent before a controller was heard; its relay has to be open.

        Raises:
            SoftformError: If the port cannot be opened, no dead-man is on it, or its relay does not open.
        """
        self._line.open(_BAUD_RATE)
        try:
            self._forget()
            self._require_report(_OPEN_SECONDS, interrupted)
            self._needs_safety = True
            self._line.guard(_CUT)
            if not self.make_safe():
                raise DeviceError(self._not_cut())
        except BaseException:
            self.close()
            raise

    def test(self, interrupted: Callable[[], bool]) -> None:
        """Arm it and send no heartbeat: measures that the supply comes, and that it goes by itself.

        Raises:
            DeviceError: If it does not, or interrupted.
        """
        try:
            armed = self._arm()
            if not self._wait(
                lambda: self._report.state == "latched" and not self._report.is_on, CUT_WITHIN, interrupted
            ):
                raise DeviceError(
                    f"The dead-man did not cut the supply within {CUT_WITHIN:g} s without a heartbeat.",
                    "Drive nothing on it; look at its relay and circuit.",
                )
            self._cut_seconds = self.clock.now() - armed
        finally:
            self.make_safe()

    def begin(self) -> Array:
        """As `Device.begin`: the supply is on from here on, as long as `set_targets` is called.

        Raises:
            DeviceError: If it cannot be armed, or the supply does not come; it is cut then.
        """
        try:
            self._arm()
        except DeviceError:
            self.make_safe()
            raise
        self._is_armed = True
        return np.empty(0)

    def set_targets(self, targets: Array, interrupted: Callable[[], bool]) -> bool:
        """Send a heartbeat; `targets` is empty.

        Raises:
            DeviceLostError: If the connection is gone.
        """
        self._sequence += 1
        self._line.write(_sealed(f"B {self._sequence}", self._challenge))
        return True

    def read(self, timeout: float) -> list[Measurement]:
        """Return an empty measurement for each report, so that the driver finds out when none come; see `Device`.

        Raises:
            UnsafeError: If the supply is cut though it should be on.
        """
        reports = self._hear(timeout)
        now = self.clock.now()
        for report in reports if self._is_armed else []:
            if report.state != "armed":
                raise UnsafeError(
                    f"The dead-man has cut the supply and is '{report.state}'.",
                    "See what kept the driver's heartbeats from it: a busy computer, its cable, its plug; then reset.",
                )
            if not report.is_on:
                raise UnsafeError(
                    f"The dead-man is armed, but the switched supply is at {report.supply:.1f} V.",
                    "Look at the supply, its fuse and the relay, then reset.",
                )
        return [Measurement(np.empty(0), now) for report in reports if self._is_armed or report.is_on]

    def make_safe(self) -> bool:
        """Cut the supply; returns whether the controller has reported since that it is cut and the supply is gone.

        Raises:
            DeviceLostError: If the connection is gone.
        """
        self._is_armed = False
        self._line.write(_CUT)
        while self._line.receive(0.0):  # reported before
            pass
        self._forget()
        confirmed = self._wait(lambda: self._report.is_cut, _TOLD_SECONDS)
        self._needs_safety = not confirmed
        return confirmed

    def check(self) -> Rest:
        """As `Device.check`: a fresh report, with a complaint unless the supply is cut.

        Raises:
            DeviceError: If none comes.
        """
        self._forget()
        self._require_report(_TOLD_SECONDS, never)
        return Rest(np.empty(0), np.empty(0, dtype=np.bool_), "" if self._report.is_cut else self._not_cut())

    def calibrate(self, interrupted: Callable[[], bool]) -> str:
        """As `Device.calibrate`: there is nothing to calibrate."""
        return ""

    def close(self) -> None:
        """As `Device.close`; the guardian cuts the supply if that was never confirmed."""
        self._is_armed = False
        self._line.close(self._needs_safety)
        self._needs_safety = False

    def health(self) -> DeviceHealth:
        """What its controller reported last, and what the last test measured."""
        report = self._report
        return DeviceHealth({
            "dead-man": report.state,
            "switched supply (V)": f"{report.supply:.1f}",
            "heartbeats taken": report.heartbeats,
            "cut in the last test after (s)": f"{self._cut_seconds:.2f}",
            "damaged reports": self._damaged,
        })  # fmt: skip

    def _arm(self) -> float:
        """Switch the supply on; returns when that was asked for, s."""
        for _ in range(_ARM_TRIES):
            self._forget()
            self._line.write(_CUT + b"N\n")
            if not self._wait(lambda: self._challenge != "", _ANSWER_SECONDS):
                continue
            self._needs_safety, self._sequence, asked = True, 0, self.clock.now()
            self._line.write(_sealed("A", self._challenge))
            if self._wait(lambda: self._report.state == "armed" and self._report.is_on, _ANSWER_SECONDS):
                return asked
        raise DeviceError(
            f"The dead-man does not switch the supply on; it is '{self._report.state}'.",
            "Look at the supply, its fuse and the relay.",
        )

    def _forget(self) -> None:
        self._bytes, self._report, self._challenge = b"", _NONE, ""

    def _wait(self, condition: Callable[[], bool], seconds: float, interrupted: Callable[[], bool] = never) -> bool:
        end = self.clock.now() + seconds
        while not condition():
            if interrupted():
                raise DeviceError("What was asked of the dead-man was interrupted.", "Ask for it again.")
            if self.clock.now() > end:
                return False
            self._hear(_POLL)
        return True

    def _hear(self, timeout: float) -> list[Report]:
        self._bytes += self._line.receive(timeout)
        *lines, rest = self._bytes.split(b"\n")
        self._bytes = rest[-_LONGEST_LINE:]
        reports = []
        for line in (one.strip().decode("ascii", "replace") for one in lines):
            words, _, _ = line.rpartition(" ")
            if line.encode() + b"\n" != _sealed(words):
                self._damaged += 1
            elif found := _REPORT.fullmatch(words):
                state, on, heartbeats, millivolts = found.groups()
                self._report = Report(state, on == "1", int(millivolts) / 1000.0, int(heartbeats))
                reports.append(self._report)
            elif words.startswith("N "):
                self._challenge = words[2:]
        return reports

    def _require_report(self, seconds: float, interrupted: Callable[[], bool]) -> None:
        if not self._wait(lambda: self._report is not _NONE, seconds, interrupted):
            raise DeviceError(
                f"No dead-man reports on {self._line.path}.",
                "Check its plug, and that its program is on it as main.py.",
            )

    def _not_cut(self) -> str:
        state, supply = self._report.state, self._report.supply
        return (
            f"The dead-man does not cut: it is '{state}', the switched supply at {supply:.1f} V. Its relay may be "
            "welded or bypassed: unplug the supply, and replace it"
        )
