"""Find out by a small, safe experiment which channels a board really regulates, each on its own.

The firmware as it ships reports the same version as one that regulates ten channels, yet it sets targets in pairs
(n, n^1), lets odd channels repeat their even neighbour's sensor, and regulates channels 2 and 3 only. Equal readings of
a pair at rest prove nothing (both are zero), so each channel is moved: first all even channels to a fraction of a
kilopascal, the odd ones staying at zero, then the other way round, with a vent in between. A channel that does not move
when commanded to, or moves when its neighbour is, is not independent.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from softform_actuation.device import DeviceError, ServedActuators, never
from softform_core.arrays import Array
from softform_pneumatics.boards.interface import Measurement, PressureBoard

LARGEST_PROBE = 400.0
"""Pa; a soft membrane of 2 mm bulges by millimetres only, and it is far above the sensors' noise."""

_PROBE_SHARE_OF_RANGE = 0.1
_MOVED_SHARE = 0.5
_RISE_SECONDS = 3.0
_DWELL_SECONDS = 0.3
_STREAM_SECONDS = 1.0
_READ_SECONDS = 0.05
_VENT_SECONDS = 0.4
_AVERAGED = 3
_SURGE = 5.0  # times the pressure of the experiment; in two measurements in a row, for one may be corrupt


@dataclass(frozen=True)
class Regulation:
    """What the experiment showed of the robot's channels.

    Args:
        regulated: Channels that moved when commanded to.
        followers: Channels that moved although only their neighbours were commanded to.
    """

    regulated: frozenset[int]
    followers: frozenset[int]


def probe_pressure(served: ServedActuators) -> float:
    """Return the pressure (Pa) of the experiment: small, inside the robot's range, on its wider side."""
    highest, lowest = float(served.actuator_max.min()), float(served.actuator_min.max())
    if highest >= -lowest:
        return min(LARGEST_PROBE, _PROBE_SHARE_OF_RANGE * highest)
    return max(-LARGEST_PROBE, _PROBE_SHARE_OF_RANGE * lowest)


def probe_regulation(
    board: PressureBoard, channels: Sequence[int], pressure: float, interrupted: Callable[[], bool] = never
) -> Regulation:
    """Move `channels` to `pressure` (Pa), first the even then the odd ones, and return which moved; ends vented.

    Raises:
        DeviceError: If the board stops answering or does not stream, pumps a chamber far beyond `pressure`, or if it is
            interrupted.
    """
    regulated: set[int] = set()
    followers: set[int] = set()
    try:
        for group in ([c for c in channels if c % 2 == 0], [c for c in channels if c % 2 == 1]):
            if not group:
                continue
            moved = _moved_channels(board, group, pressure, interrupted)
            regulated |= moved & set(group)
            followers |= moved - set(group)
            _vent(board)
    finally:
        board.vent()
    return Regulation(frozenset(regulated), frozenset(followers))


def require_independent(served: ServedActuators, regulation: Regulation) -> None:
    """Reject a robot whose chambers the board does not regulate one by one.

    Raises:
        DeviceError: If a chamber's channel does not move, or moves with its neighbour.
    """
    chamber_of = dict(zip(served.channels, served.actuators, strict=True))
    silent = sorted(set(chamber_of) - regulation.regulated)
    followers = sorted(set(chamber_of) & regulation.followers)
    if not silent and not followers:
        return
    independent = len(chamber_of) - len(set(silent) | set(followers))
    faults = []
    if silent:
        faults.append(f"channels {_listed(silent)} (chambers {_listed(map(chamber_of.get, silent))}) do not inflate")
    if followers:
        faults.append(f"channels {_listed(followers)} move with their neighbours' targets")
    raise DeviceError(
        f"The board regulates {independent} of the {len(served.actuators)} independent chambers of robot "
        f"'{served.robot}': {'; '.join(faults)}.",
        "The OpenPneu firmware as it ships regulates channels 2 and 3 only, and as a pair: flash one that regulates "
        "every channel on its own, or choose a robot with fewer chambers. If the firmware is right, check the tubes.",
    )


def _listed(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))


def _moved_channels(
    board: PressureBoard, group: Sequence[int], pressure: float, interrupted: Callable[[], bool]
) -> set[int]:
    surge = _SurgeWatch(board, pressure)

    def stream(seconds: float) -> Array:
        return _average(_stream_for(board, targets, seconds, interrupted, surge))

    targets = np.zeros(len(board.pressure_min))
    board.start(targets)
    # A sensor that is off by as much as the experiment moves: the firmware first brings its reading to zero.
    baseline = surge.baseline = stream(_DWELL_SECONDS)
    # The others are sent nothing: in firmware that sets pairs, a neighbour's zero would undo what is looked for.
    targets = np.full(len(targets), np.nan)
    targets[list(group)] = pressure
    started = board.clock.now()
    moved = np.zeros(len(baseline), dtype=bool)
    while board.clock.now() - started < _RISE_SECONDS and not moved[list(group)].all():
        moved = (stream(0.0) - baseline) / pressure > _MOVED_SHARE
    # A neighbour that follows may have a larger chamber: give it time to show.
    moved |= (stream(_DWELL_SECONDS) - baseline) / pressure > _MOVED_SHARE
    return set(np.flatnonzero(moved).tolist())


class _SurgeWatch:
    """Looks for a board that took another target than the experiment's, as a byte was lost on the wire.

    Attributes:
        baseline: Readings before the experiment, (channels,) Pa; None before they are known.
    """

    def __init__(self, board: PressureBoard, pressure: float) -> None:
        self.baseline: Array | None = None
        self._board, self._pressure = board, pressure
        self._in_a_row = 0

    def look(self, measurement: Measurement) -> None:
        """Take a measurement.

        Raises:
            DeviceError: If a chamber is far beyond the experiment's pressure, and was before.
        """
        if self.baseline is None:
            return
        moved = np.abs(measurement.pressures - self.baseline)
        self._in_a_row = self._in_a_row + 1 if moved.max() > _SURGE * abs(self._pressure) else 0
        if self._in_a_row >= 2:
            raise DeviceError(
                f"{self._board.identity} was sent {self._pressure:.0f} Pa, and its channel {int(moved.argmax())} has "
                f"moved by {moved.max():.0f} Pa.",
                "Check the cable (disturbances), the channel's valve and sensor; then reset.",
            )


def _average(measurements: Sequence[Measurement]) -> Array:
    # The median: one corrupt line that looks like a good one must not decide.
    return np.asarray(np.median([m.pressures for m in measurements[-_AVERAGED:]], axis=0))


def _stream_for(
    board: PressureBoard,
    targets: Array,
    seconds: float,
    interrupted: Callable[[], bool],
    surge: _SurgeWatch,
) -> list[Measurement]:
    measurements: list[Measurement] = []
    started = heard = board.clock.now()
    while board.clock.now() - started < seconds or len(measurements) < _AVERAGED:
        if interrupted():
            raise DeviceError("The test of the chambers was interrupted.", "Reset when nothing else is asked.")
        board.set_targets(targets)
        arrived = board.read(_READ_SECONDS)
        if arrived:
            heard = board.clock.now()
        elif board.clock.now() - heard > _STREAM_SECONDS:
            raise DeviceError(f"{board.identity} does not stream its pressures.", "Check its firmware and cable.")
        for measurement in arrived:
            surge.look(measurement)
        measurements += arrived
    return measurements


def _vent(board: PressureBoard) -> None:
    if not board.vent():
        raise DeviceError(f"{board.identity} does not confirm that it vents.", "Cut its power and check it.")
    until = board.clock.now() + _VENT_SECONDS
    while (remaining := until - board.clock.now()) > 0.0:
        board.read(remaining)
