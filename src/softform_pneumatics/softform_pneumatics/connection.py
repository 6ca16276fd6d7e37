"""The board while nothing is regulated: opened, vented for sure, tested, and looked for when it is lost."""

import logging
from collections.abc import Callable

from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_pneumatics.boards.interface import BoardError, BoardLostError, Measurement, PressureBoard
from softform_pneumatics.probe import probe_pressure, probe_regulation, require_independent
from softform_pneumatics.wiring import Wiring

_log = logging.getLogger(__name__)

ALIVE_CHECK_SECONDS = 1.0
_VENTED_WITHIN_SECONDS = 5.0
_SILENT_SECONDS = 5.0
_LATE_STREAM_SECONDS = 0.3


class Connection:
    """What is known of a board, and of whether it is vented.

    Attributes:
        is_lost: Whether the connection is gone.
        is_probed: Whether its chambers have been tested since it was opened.
        is_vent_confirmed: Whether it has said that it vents.
        still_inflated: What is wrong with a vented chamber; empty if nothing.
    """

    def __init__(self, board: PressureBoard, robot: Robot, wiring: Wiring, tolerance: float) -> None:
        """Describe; nothing is opened.

        Args:
            board: Which.
            robot: Whose chambers are on it.
            wiring: Of them.
            tolerance: Pa; a vented chamber that is further from ambient pressure than this is still inflated.
        """
        self._board = board
        self._robot = robot
        self._wiring = wiring
        self._tolerance = tolerance
        self.is_lost = False
        self.is_probed = False
        self.is_vent_confirmed = False
        self.still_inflated = ""
        self._vented_since = 0.0
        self._confirmed_at = 0.0
        self._next_check = 0.0

    def open(self) -> None:
        """Open the board, which vents it.

        Raises:
            SoftformError: If the port cannot be opened or holds no such board.
        """
        self.is_probed = False
        self._board.open()
        self.is_lost = False
        self._note_vent(True)

    def probe(self, interrupted: Callable[[], bool]) -> None:
        """Find out whether the board regulates all chambers one by one; it is vented before and after.

        Raises:
            BoardError: If it does not, or is interrupted; a board that does not confirm then that it vents is let go.
        """
        try:
            channels, pressure = self._wiring.channels.tolist(), probe_pressure(self._robot)
            require_independent(self._robot, probe_regulation(self._board, channels, pressure, interrupted))
            self._note_vent(self._board.vent())
        except BaseException:
            self.vent()
            if not self.is_vent_confirmed and not self.is_lost:
                self.let_go()
            raise
        self.is_probed = True

    def vent(self) -> None:
        """Vent as well as can be done; raises nothing."""
        confirmed = False
        try:
            confirmed = self._board.vent()
        except BoardLostError:
            if not self.is_lost:
                self.let_go()
        except Exception:
            _log.exception("venting failed")
        self._note_vent(confirmed)

    def require_vented(self) -> None:
        """Vent a board that has not confirmed it yet, opening one that was lost.

        Raises:
            SoftformError: If that cannot be done.
        """
        if self.is_lost:
            self._board.close()
            self.open()
        elif not self.is_vent_confirmed:
            self._note_vent(self._board.vent())
        if not self.is_vent_confirmed:
            raise BoardError("The board does not confirm that it vents.", "Check its power and cable.")
        self._board.check_alive()

    def note_stray(self, measurement: Measurement) -> None:
        """Take a measurement that came unasked: a vented board is silent, so this one regulates on."""
        if measurement.captured > self._vented_since + _LATE_STREAM_SECONDS:
            self.is_vent_confirmed = False
            self._next_check = 0.0

    def is_check_due(self, now: float) -> bool:
        """Whether the board should be looked at, at `now` (s)."""
        return now >= self._next_check

    def check(self, now: float) -> bool:
        """Ask a board at rest for a sign of life, vent it until it confirms that, look for it if it is gone.

        Returns:
            Whether it was gone, and is back.

        Raises:
            SoftformError: If it is gone, or does not answer.
        """
        try:
            if self.is_lost:
                self.open()
                return True
            if not self.is_vent_confirmed:
                self._note_vent(self._board.vent())
            told = self._board.check_alive()
        except SoftformError as error:
            is_silent = now - self._confirmed_at > _SILENT_SECONDS
            if not self.is_lost and (isinstance(error, BoardLostError) or is_silent):
                self.let_go()
            raise
        finally:
            self._next_check = self._board.clock.now() + ALIVE_CHECK_SECONDS
        self._confirmed_at = now
        self.still_inflated = ""
        for chamber, channel in zip(self._robot.actuators, self._wiring.channels, strict=True):
            pressure = told.get(int(channel), 0.0)
            if abs(pressure) > self._tolerance and now - self._vented_since > _VENTED_WITHIN_SECONDS:
                self.still_inflated = f"{chamber} is still at {pressure:.0f} Pa: cut the supply and open its tube"
        return False

    def let_go(self) -> None:
        """Close the port at once, so that the device can come back under the same name."""
        self.is_lost = True
        self.is_vent_confirmed = False
        self._board.close()

    def _note_vent(self, confirmed: bool) -> None:
        self.is_vent_confirmed = confirmed
        self._vented_since = self._board.clock.now()
        if confirmed:
            self._confirmed_at = self._vented_since
        self._next_check = self._vented_since + ALIVE_CHECK_SECONDS
