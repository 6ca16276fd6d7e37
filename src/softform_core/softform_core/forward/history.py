"""History of a running robot: where each degree of freedom, and each actuator, has turned back. Not in the papers.

A body with hysteresis remembers the turns of its actuators, and forgets those of a loop that a wider one has closed
(Madelung's rules). The driver alone keeps the history, as it alone hears every measurement; all others take it from
there, so that none rebuilds it from what it happened to hear.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.robots.actuation_map import Identity

_SMOOTHING_S = 0.2
"""Time constant of the mean of measured values, s: peaks of their noise are no turns."""
_LEAST_TURN = 0.002
"""Shortest way back that counts as a turn, as a share of the range; shorter ones are noise."""
_JUMP = 20.0
"""Speed of a motor, over its slew rate, that none has: its position was lost, as when a tendon leaves its drum."""
_NO_JUMP = 0.05
"""Way, as a share of the range, that noise and late measurements explain at any speed."""
WIPES = 0.4
"""Travel after which a body has forgotten what was before, as a share of the range."""

Turn = tuple[float, float]
"""Time, s since the epoch, and value at which a degree of freedom or an actuator turned back."""

Turns = tuple[tuple[Turn, ...], ...]


def turning_names(robot: Robot) -> list[str]:
    """Return names of what a history tells of: degrees of freedom, then the actuators where those are others.

    A tendon may turn back while no bend does, and the other way round.
    """
    own = [] if isinstance(robot.actuation_map, Identity) else robot.actuators
    return [*robot.actuation_names, *own]


@dataclass(frozen=True)
class History:
    """Turning points of each of the m degrees of freedom and k actuators, the oldest first.

    Attributes:
        turns: The turns of each degree of freedom; the first is where it was when the driver began to measure.
        is_known: Whether what was before that cannot matter: each has moved through `WIPES` of its range since, an
            actuator through that share of what the degrees of freedom use of it.
        of_actuators: The turns of each actuator; empty where the actuators are the degrees of freedom.
    """

    turns: Turns = ()
    is_known: bool = False
    of_actuators: Turns = ()

    @classmethod
    def of_rows(
        cls, counts: Sequence[int], stamps: Sequence[float], values: Sequence[float], is_known: bool, m: int
    ) -> "History":
        """Return the history of a message: so many turns of each of m degrees of freedom, then of each actuator.

        Raises:
            SoftformError: If the counts do not add up to the rows, or a number is not finite.
        """
        if not sum(counts) == len(stamps) == len(values) or not np.isfinite([*stamps, *values]).all():
            raise SoftformError(
                f"A history tells of {sum(counts)} turns and has {len(stamps)} times and {len(values)} values.",
                "See whether driver and node are of one version.",
            )
        rows = iter(zip(stamps, values, strict=True))
        turns = tuple(tuple(next(rows) for _ in range(count)) for count in counts)
        return cls(turns[:m], is_known, turns[m:])

    @property
    def sequence(self) -> Array:
        """All degrees of freedom at each moment at which one has turned, (h, m); between its turns each is steady."""
        return _sequence(self.turns)

    @property
    def actuator_sequence(self) -> Array:
        """All actuators at each moment at which one has turned, (h, k); as `sequence`."""
        return _sequence(self.of_actuators)

    def seconds(self, stamp: float, of_actuators: bool = False) -> Array:
        """Return the times (h,), s, that the ways took from each row of a sequence to the next, and to a moment.

        Only turns are known: what has crept on a way is counted as if it had been gone at once at its beginning. A
        clock that was set back has stood still meanwhile.
        """
        moments = _moments(self.of_actuators if of_actuators else self.turns)
        return np.maximum(np.diff([*moments, stamp]), 0.0) if moments else np.empty(0)


class HistoryKeeper:
    """Keeps the history of one robot, of its measured values; for its driver."""

    def __init__(self, robot: Robot) -> None:
        self.robot, self._limits = robot, (robot.actuation_min, robot.actuation_max)
        self._m = robot.degrees_of_freedom
        span = robot.actuation_max - robot.actuation_min
        self._has_others = len(turning_names(robot)) > self._m
        wipes = WIPES * span
        if self._has_others:
            whole = robot.actuator_max - robot.actuator_min
            span, wipes = np.concatenate([span, whole]), np.concatenate([wipes, WIPES * _used(robot, whole)])
        self._least, self._wipes = (_LEAST_TURN * span).tolist(), wipes
        is_motor = np.array([unit == "m" for unit in robot.actuator_units])  # air is vented at any speed
        self._speed = np.where(is_motor, _JUMP * robot.slew_rate, np.inf)
        self._slack = _NO_JUMP * (robot.actuator_max - robot.actuator_min)
        self._forget()

    def _forget(self) -> None:
        """Know nothing of what was before."""
        self._lowest, self._highest = np.full_like(self._wipes, np.inf), np.full_like(self._wipes, -np.inf)
        self._turns: Turns = ()
        self._mean, self._last, self._stamp = np.empty(0), np.empty(0), 0.0

    @property
    def history(self) -> History:
        """The turns until now; the way that each is on, which a new value may prolong, has not turned yet."""
        is_known = bool((self._highest - self._lowest >= self._wipes).all())
        turns = tuple(turns[:-1] or turns for turns in self._turns)
        return History(turns[: self._m], is_known, turns[self._m :])

    def note(self, values: Array, stamp: float) -> None:
        """Take the newest measured values (k,) of the actuators, of a moment in s since the epoch.

        Where a motor has jumped its position is lost, and with it what its tendon did: the history begins anew.
        """
        if self._turns and stamp > self._stamp:
            most = self._speed * (stamp - self._stamp) + self._slack
            if (np.abs(values - self._last) > most).any():
                self._forget()
        self._last = values
        passed, self._stamp = stamp - self._stamp, stamp
        if not self._turns:
            self._mean = values
        elif passed < 0.0:  # the clock was set back
            passed = _SMOOTHING_S
        self._mean = values + (self._mean - values) * exp(-passed / _SMOOTHING_S)
        # `Robot.nearest_actuation`, without asking for the limits at each of fifty measurements a second.
        newest = np.clip(self.robot.actuation_of(self._mean), *self._limits)
        if self._has_others:
            newest = np.concatenate([newest, self.robot.actuators_of(newest)])
        self._lowest, self._highest = np.minimum(self._lowest, newest), np.maximum(self._highest, newest)
        before = self._turns or ((),) * len(newest)
        each = zip(before, newest.tolist(), self._least, strict=True)
        self._turns = tuple(_turned(turns, (stamp, value), least) for turns, value, least in each)


def _used(robot: Robot, whole: Array) -> Array:
    """Return how much of the ranges (k,) of the actuators the degrees of freedom use together, at most."""
    ends = (
        np.diag(end - robot.rest_actuation) + robot.rest_actuation for end in (robot.actuation_min, robot.actuation_max)
    )
    low, high = (robot.actuators_of(end) for end in ends)
    return np.minimum(whole, np.abs(high - low).sum(axis=0))


def _moments(each: Turns) -> list[float]:
    return sorted({stamp for turns in each for stamp, _ in turns}) if all(each) else []


def _sequence(each: Turns) -> Array:
    moments = _moments(each)
    if not moments:
        return np.empty((0, len(each)))
    steps = [np.array(turns).T for turns in each]
    return np.stack([np.interp(moments, stamps, values) for stamps, values in steps], axis=1)


def _turned(turns: tuple[Turn, ...], newest: Turn, least: float) -> tuple[Turn, ...]:
    """Return the turns of one of them; the last is how far it has come on the way that it is on."""
    if len(turns) < 2:
        return (*turns, newest)
    (_, before), (_, last), (_, value) = turns[-2], turns[-1], newest
    if (value - last) * (last - before) >= 0.0 or abs(last - before) < least:
        turns = (*turns[:-1], newest)  # further on the same way, or on none yet
    elif abs(value - last) >= least:
        turns = (*turns, newest)
    while len(turns) > 3:
        outer, back, inner, last = (value for _, value in turns[-4:])
        if abs(back - inner) > min(abs(outer - back), abs(inner - last)):
            break
        turns = (*turns[:-3], turns[-1])
    return turns
