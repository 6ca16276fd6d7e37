"""Time parametrisation: never faster than the slew rate, times that ascend, ends that have settled."""

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.inverse.timing import check_times, fastest_schedule, slew_durations, timed_schedule

SLEW_RATE = 4000.0
SETTLE_TIME = 0.7
SEEDS = range(40)


def random_path(seed):
    """A start and waypoints; some legs have no length, as a path may say the same twice."""
    rng = np.random.default_rng(seed)
    waypoints = rng.uniform(0.0, 5000.0, (rng.integers(2, 30), rng.integers(1, 10)))
    repeated = rng.random(len(waypoints)) < 0.2
    repeated[:2] = False
    waypoints[repeated] = waypoints[np.flatnonzero(repeated) - 1]
    start = waypoints[0] if seed % 5 == 0 else rng.uniform(0.0, 5000.0, waypoints.shape[1])
    return start, waypoints


def feasible_times(start, waypoints, seed):
    """Each leg takes its shortest time or longer."""
    shortest = slew_durations(start, waypoints, SLEW_RATE)
    return np.cumsum(np.maximum(shortest * np.random.default_rng(seed).choice([1.0, 1.5, 4.0], len(shortest)), 1e-3))


def assert_obeys_the_robot(schedule, start, waypoints):
    assert schedule.moments[0] == 0.0 and (np.diff(schedule.moments) > 0.0).all()
    assert (schedule.actuations[0] == start).all()
    rates = np.abs(np.diff(schedule.actuations, axis=0)).max(axis=1, initial=0.0) / np.diff(schedule.moments)
    assert rates.max(initial=0.0) <= SLEW_RATE * (1.0 + 1e-9)
    assert len(schedule.due) == len(waypoints) and (np.diff(schedule.due) > 0.0).all()
    for due, waypoint in zip(schedule.due, waypoints, strict=True):
        assert schedule.at(due) == pytest.approx(waypoint, abs=1e-6)
    held = np.linspace(schedule.duration - SETTLE_TIME, schedule.duration + 5.0, 7)
    assert all(schedule.at(moment) == pytest.approx(waypoints[-1], abs=1e-6) for moment in held)
    for moment in np.random.default_rng(0).uniform(-1.0, schedule.duration + 1.0, 20):
        corners = np.vstack([start, waypoints])
        assert (schedule.at(moment) >= corners.min(axis=0) - 1e-9).all()
        assert (schedule.at(moment) <= corners.max(axis=0) + 1e-9).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_fastest_schedule_obeys_the_robot(seed):
    start, waypoints = random_path(seed)
    schedule = fastest_schedule(start, waypoints, SLEW_RATE, SETTLE_TIME)
    assert_obeys_the_robot(schedule, start, waypoints)
    for due, waypoint in zip(schedule.due, waypoints, strict=True):
        assert schedule.at(due - SETTLE_TIME) == pytest.approx(waypoint, abs=1e-6), "a waypoint is held until it is due"
    assert schedule.duration == pytest.approx(
        slew_durations(start, waypoints, SLEW_RATE).sum() + SETTLE_TIME * len(waypoints)
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_a_timed_schedule_obeys_the_robot_and_the_times(seed):
    start, waypoints = random_path(seed)
    times = feasible_times(start, waypoints, seed)
    schedule = timed_schedule(start, waypoints, times, SLEW_RATE, SETTLE_TIME)
    assert_obeys_the_robot(schedule, start, waypoints)
    assert schedule.due == pytest.approx(times)
    assert schedule.duration == pytest.approx(times[-1] + SETTLE_TIME)


@pytest.mark.parametrize("seed", SEEDS)
def test_times_that_are_too_short_anywhere_are_rejected(seed):
    start, waypoints = random_path(seed)
    shortest = slew_durations(start, waypoints, SLEW_RATE)
    long_legs = np.flatnonzero(shortest > 1e-3)
    hurried = np.maximum(shortest, 1e-3)
    chosen = long_legs[seed % len(long_legs)]
    hurried[chosen] *= 0.9
    with pytest.raises(SoftformError, match=f"Waypoint {chosen + 1} is due .* takes"):
        timed_schedule(start, waypoints, np.cumsum(hurried), SLEW_RATE, SETTLE_TIME)


def test_a_robot_near_the_first_waypoint_may_begin_there_and_is_late_by_what_it_needs():
    start, waypoints = np.array([100.0, 0.0]), np.array([[0.0, 0.0], [2000.0, 0.0]])
    times = np.array([0.0, 1.0])
    schedule = timed_schedule(start, waypoints, times, SLEW_RATE, SETTLE_TIME, nearness=100.0)
    assert schedule.due == pytest.approx([0.025, 1.025])
    assert_obeys_the_robot(schedule, start, waypoints)
    with pytest.raises(SoftformError, match="Waypoint 1 is due 0 s after the start"):
        timed_schedule(start, waypoints, times, SLEW_RATE, SETTLE_TIME, nearness=99.0)


@pytest.mark.parametrize(
    ("times", "reason"),
    [
        ([1.0, 2.0], "2 times for 3 waypoints"),
        ([1.0, np.nan, 3.0], "Time 2 is not a finite"),
        ([-0.1, 1.0, 2.0], "-0.1 s"),
        ([0.0, 1.0, 1.0], "no later than time 2"),
        ([3.0, 2.0, 1.0], "no later than time 1"),
        ([1.0, 2.0, 602.1], "Waypoint 3 is due 600.1 s after the one before"),
        ([601.0, 602.0, 603.0], "Waypoint 1 is due 601 s"),
    ],
)
def test_times_that_are_none_are_rejected(times, reason):
    with pytest.raises(SoftformError, match=reason) as rejection:
        check_times(np.array(times), 3)
    assert rejection.value.next_step


def test_times_from_zero_are_times():
    check_times(np.array([0.0, 1.0, 1.5]), 3)
    check_times(np.array([600.0, 1200.0, 1800.0]), 3)
