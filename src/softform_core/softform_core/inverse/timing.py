"""Due times of a path's waypoints: as early as slew rate and settling allow, or as given.

A soft body follows its actuation late (paper 001, Sec. III-C: a marker becomes stable after seconds), and a command
must not change faster than the robot's slew rate. The robot's unit and seconds.
"""

from dataclasses import dataclass

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError

_ROUNDING = 1e-6
"""Share of a leg's shortest time by which wanted times may fall short of it, due to rounding on their way."""


@dataclass(frozen=True)
class Schedule:
    """Actuation over time, on straight lines between knots.

    Attributes:
        moments: (n,) s, strictly ascending from 0.
        actuations: (n, k) at these moments.
        due: (m,) s, ascending: when each waypoint is due; the last knot is no earlier than the last of them.
    """

    moments: Array
    actuations: Array
    due: Array

    @property
    def duration(self) -> float:
        """Time until the last waypoint has settled, s."""
        return float(self.moments[-1])

    def at(self, moment: float) -> Array:
        """Return the actuation (k,) at `moment` s after the start; before and after the schedule, those of its ends."""
        return np.array([np.interp(moment, self.moments, values) for values in self.actuations.T])


def slew_durations(start: Array, waypoints: Array, slew_rate: Array) -> Array:
    """Return the shortest times (m,) s from `start` or the predecessor to waypoints (m, k), at (k,) per second."""
    legs = np.diff(np.vstack([start, waypoints]), axis=0)
    return np.asarray((np.abs(legs) / slew_rate).max(axis=1))


def fastest_schedule(start: Array, waypoints: Array, slew_rate: Array, settle_time: float) -> Schedule:
    """Return each waypoint (m, k) as soon as the slew rate allows, held for `settle_time` s; then it is due."""
    legs = slew_durations(start, waypoints, slew_rate)
    due = np.cumsum(legs + settle_time)
    moments = np.stack([due - settle_time, due], axis=1).ravel()
    return _schedule(start, moments, np.repeat(waypoints, 2, axis=0), due)


def timed_schedule(
    start: Array, waypoints: Array, times: Array, slew_rate: Array, settle_time: float, nearness: Array | float = 0.0
) -> Schedule:
    """Return each waypoint at its time, straight lines between; the last is held until the robot has settled.

    Args:
        start: (k,), where the robot is.
        waypoints: (m, k).
        times: (m,) s after the start, strictly ascending, not negative (`check_times`).
        slew_rate: Fastest change of each degree of freedom, (k,) per second.
        settle_time: Time for which the last waypoint is held, s.
        nearness: A robot that is so near to the first waypoint may begin there whatever its time: the schedule is
            then late by what the robot needs to come there.

    Raises:
        SoftformError: If a waypoint cannot be reached in time.
    """
    shortest = slew_durations(start, waypoints, slew_rate)
    allowed = np.diff(times, prepend=0.0)
    late = 0.0
    if (np.abs(waypoints[0] - start) <= nearness).all():
        late = max(0.0, float(shortest[0] - allowed[0]))
    missing = shortest * (1.0 - _ROUNDING) - allowed
    missing[0] -= late
    if (missing > 0.0).any():
        index = int(np.flatnonzero(missing > 0.0)[0])
        raise SoftformError(
            f"Waypoint {index + 1} is due {allowed[index]:.3g} s after "
            f"{'the start' if index == 0 else f'waypoint {index}'}, but at its slew rate the robot takes "
            f"{shortest[index]:.3g} s.",
            "Give later times, or none: then it goes as fast as the robot settles.",
        )
    # Times that fall short by rounding must not make the command faster than the slew rate.
    due = np.cumsum(np.maximum(np.concatenate([[allowed[0] + late], allowed[1:]]), shortest))
    moments = np.append(due, due[-1] + settle_time)
    return _schedule(start, moments, np.vstack([waypoints, waypoints[-1:]]), due)


LONGEST_GAP = 600.0
"""Longest gap between waypoints, s: the driver lets go of a robot that is held for longer (`hold_timeout`)."""


def check_times(times: Array, count: int) -> None:
    """Reject times that are none of so many waypoints.

    Raises:
        SoftformError: If they are not one for each waypoint, not finite, negative, not ascending, or too far apart.
    """
    if times.shape != (count,):
        raise SoftformError(
            f"There are {times.size} times for {count} waypoints.", "Give one time for each waypoint, or none."
        )
    if not np.isfinite(times).all():
        index = int(np.flatnonzero(~np.isfinite(times))[0])
        raise SoftformError(f"Time {index + 1} is not a finite number.", "Give times in s after the start.")
    if times[0] < 0.0:
        raise SoftformError(f"The first time is {times[0]:g} s.", "Times count from the start: none is negative.")
    if (np.diff(times) <= 0.0).any():
        index = int(np.flatnonzero(np.diff(times) <= 0.0)[0])
        raise SoftformError(
            f"Time {index + 2} ({times[index + 1]:g} s) is no later than time {index + 1} ({times[index]:g} s).",
            "Give times that increase from waypoint to waypoint.",
        )
    gaps = np.diff(times, prepend=0.0)
    if gaps.max() > LONGEST_GAP:
        index = int(gaps.argmax())
        raise SoftformError(
            f"Waypoint {index + 1} is due {gaps[index]:g} s after the one before; at most {LONGEST_GAP:g} s may pass.",
            "Nobody would hold a robot for so long: send the path in parts, when they are due.",
        )


def _schedule(start: Array, moments: Array, actuations: Array, due: Array) -> Schedule:
    moments, actuations = np.concatenate([[0.0], moments]), np.vstack([start, actuations])
    # A leg or a hold of no length has two knots at one moment and the same actuation.
    distinct = np.diff(moments, prepend=-1.0) > 0.0
    return Schedule(moments[distinct], actuations[distinct], due)
