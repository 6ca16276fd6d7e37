"""A device while it is not driven: opened, safe for sure, tested, and looked for when it is lost."""

import logging
from collections.abc import Callable

from softform_actuation.device import Device, DeviceError, DeviceLostError, Measurement, Rest
from softform_core.errors import SoftformError

_log = logging.getLogger(__name__)

ALIVE_CHECK_SECONDS = 1.0
CHECK_SECONDS = 0.1
"""Until all actuators are measured at rest."""
_SILENT_SECONDS = 5.0
_LATE_STREAM_SECONDS = 0.3


class Connection:
    """What is known of a device, and of whether it is safe.

    Attributes:
        device: The device.
        is_lost: Whether the connection is gone.
        is_tested: Whether its actuators have been tested since it was opened.
        asked: Whether it was asked to make safe, and has driven nothing since.
        acknowledged: Whether it has acknowledged that.
        rest: What it has measured since; None before the first look.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.is_lost = False
        self.is_tested = False
        self.asked = False
        self.acknowledged = False
        self.rest: Rest | None = None
        self._safe_since = 0.0
        self._confirmed_at = 0.0
        self._next_check = 0.0

    @property
    def is_at_rest(self) -> bool:
        """Whether it has acknowledged that it is safe, and all its actuators were measured at rest since."""
        return self.acknowledged and self.rest is not None and not self.rest.complaint and bool(self.rest.at_rest.all())

    @property
    def is_secured(self) -> bool:
        """Whether it is at rest, or holds the robot as its description wants it."""
        return self.is_at_rest or (self.acknowledged and self.device.is_holding)

    @property
    def still_unsafe(self) -> str:
        """Which actuator is not at rest though it should be by now, as `Device.check` says; empty if none."""
        return "" if self.rest is None else self.rest.complaint

    def begin(self) -> None:
        """Take note that it drives: what was measured at rest is out of date."""
        self.asked = self.acknowledged = False
        self.rest = None

    def open(self, interrupted: Callable[[], bool]) -> None:
        """Open the device, which makes it safe.

        Raises:
            SoftformError: If the port cannot be opened or holds no such device.
        """
        self.is_tested = False
        self.device.open(interrupted)
        self.is_lost = False
        self._note_safe(True)

    def test(self, interrupted: Callable[[], bool]) -> None:
        """Find out whether it drives all actuators one by one, unless that is known; it is safe before and after.

        Raises:
            DeviceError: If it does not, or is interrupted; a device that does not confirm then that it is safe is let
                go.
        """
        if self.is_tested:
            return
        try:
            self.device.test(interrupted)
            self._note_safe(self.device.make_safe())
        except BaseException:
            self.make_safe()
            if not self.acknowledged and not self.is_lost:
                self.let_go()
            raise
        self.is_tested = True

    def make_safe(self) -> None:
        """Make safe as well as can be done; raises nothing."""
        confirmed, self.rest = False, None
        try:
            confirmed = self.device.make_safe()
        except DeviceLostError:
            if not self.is_lost:
                self.let_go()
        except Exception:
            _log.exception("making %s safe failed", self.device.identity)
        self._note_safe(confirmed)

    def require_safe(self, interrupted: Callable[[], bool]) -> None:
        """Make a device safe that has not confirmed it yet, opening one that was lost.

        Raises:
            SoftformError: If that cannot be done.
        """
        if self.is_lost:
            self.device.close()
            self.open(interrupted)
        elif not self.acknowledged or self.still_unsafe:  # what it complains of may be mended: it is measured anew
            self._note_safe(self.device.make_safe())
        if not self.acknowledged:
            raise unconfirmed(self.device)

    def note_stray(self, measurement: Measurement) -> None:
        """Take a measurement that came unasked: a safe device is silent, so this one drives on."""
        if measurement.captured > self._safe_since + _LATE_STREAM_SECONDS:
            self.acknowledged = False
            self._next_check = 0.0

    def is_check_due(self, now: float) -> bool:
        """Whether the device should be looked at, at `now` (s)."""
        return now >= self._next_check

    def check(self, now: float, interrupted: Callable[[], bool]) -> bool:
        """Ask a device at rest where its actuators are, make it safe until it confirms that, look for it if it is gone.

        Returns:
            Whether it was gone, and is back.

        Raises:
            SoftformError: If it is gone, does not answer, or does not confirm that it is safe.
        """
        try:
            if self.is_lost:
                self.open(interrupted)
                return True
            if not self.acknowledged:
                self._note_safe(self.device.make_safe())
            self.rest = self.device.check()
            self._safe_since = self.device.clock.now()  # measuring may have left measurements under way
            if not self.acknowledged:
                raise unconfirmed(self.device)
        except SoftformError as error:
            self.rest = None
            is_silent = now - self._confirmed_at > _SILENT_SECONDS
            if not self.is_lost and (isinstance(error, DeviceLostError) or is_silent):
                self.let_go()
            raise
        finally:
            is_patient = self.is_at_rest or self.rest is None or self.still_unsafe
            seconds = ALIVE_CHECK_SECONDS if is_patient else CHECK_SECONDS
            self._next_check = self.device.clock.now() + seconds
        self._confirmed_at = now
        return False

    def let_go(self) -> None:
        """Close the port at once, so that the device can come back under the same name."""
        self.is_lost = True
        self.acknowledged = False
        self.rest = None
        self.device.close()

    def _note_safe(self, confirmed: bool) -> None:
        self.asked, self.acknowledged, self.rest = True, confirmed, None
        self._safe_since = self.device.clock.now()
        if confirmed:
            self._confirmed_at = self._safe_since
        self._next_check = self._safe_since + CHECK_SECONDS


def unconfirmed(device: Device) -> DeviceError:
    """What to say of a device that does not confirm that it is safe."""
    return DeviceError(
        f"{device.identity} does not confirm that it is safe ({device.safe_action.value}).",
        "Cut its supply and power, check it, then reset.",
    )
