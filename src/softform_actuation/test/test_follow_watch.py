"""The watches over chambers that go their own way: quick where one runs away, silent where one only lags."""

import numpy as np
import pytest
from numpy.typing import NDArray

from softform_actuation.assembly import served_by_devices
from softform_actuation.device import ServedActuators, UnsafeError
from softform_actuation.watches import FollowWatch, RangeWatch
from softform_core.robots import load_robot

PERIOD = 0.05  # s between measurements
NOISE = 30.0  # Pa


@pytest.fixture
def served() -> ServedActuators:
    return served_by_devices(load_robot("membrane"))[0]


def readings(setpoints: NDArray[np.float64], lag: float, seed: int) -> NDArray[np.float64]:
    """What sensors show of chambers that follow with a first-order lag (s), (n, k) Pa."""
    random, pressures, seen = np.random.default_rng(seed), setpoints[0].copy(), []
    for setpoint in setpoints:
        pressures += (setpoint - pressures) * (1.0 - np.exp(-PERIOD / lag))
        seen.append(pressures + random.normal(0.0, NOISE, len(pressures)))
    return np.array(seen)


@pytest.mark.parametrize("seed", range(5))
def test_chambers_that_lag_behind_a_setpoint_at_the_slew_rate_are_left_alone(
    served: ServedActuators, seed: int
) -> None:
    watch, moments = FollowWatch(served, 1000.0, 5.0), PERIOD * np.arange(400)
    span, phase = served.actuator_max, np.random.default_rng(seed).uniform(0.0, 4.0, len(served.actuators))
    rise = moments[:, None] * served.slew_rate / span + phase
    setpoints = span * np.abs(rise % 2.0 - 1.0)  # up and down between the ends of the range
    for moment, pressures, setpoint in zip(moments, readings(setpoints, 0.2, seed), setpoints, strict=True):
        watch.check(pressures, setpoint, moment)


def test_a_chamber_that_runs_away_is_found_within_three_measurements(served: ServedActuators) -> None:
    watch, setpoint = FollowWatch(served, 1000.0, 5.0), np.full(9, 500.0)
    watch.check(setpoint, setpoint, 0.0)
    pressures = setpoint.copy()
    with pytest.raises(UnsafeError, match=r"c3 rises to (3100|2800) Pa while no more than 500 Pa were"):
        for step in range(1, 4):
            pressures[2] += 800.0 if step < 2 else 900.0
            watch.check(pressures, setpoint, step * PERIOD)
    watch.reset()
    watch.check(pressures, setpoint, 1.0)


@pytest.mark.parametrize("late", [0.5, 0.9])
def test_measurements_that_come_late_in_a_burst_are_no_runaway(served: ServedActuators, late: float) -> None:
    """A board's computer that slept: its chambers still rise to what was asked before the setpoint fell."""
    watch, rate = FollowWatch(served, 1000.0, 5.0), float(served.slew_rate.max())
    for number in range(20):
        watch.check(np.full(9, rate * number * PERIOD), np.full(9, rate * number * PERIOD), number * PERIOD)
    top, moment = rate * 19 * PERIOD, 19 * PERIOD + late
    for number in range(5):  # up to the top, while the setpoint falls
        pressures = np.full(9, top - 500.0 + 125.0 * number)
        watch.check(pressures, np.full(9, max(0.0, top - rate * late)), moment + 0.001 * number)


@pytest.mark.parametrize("others", [1, 2, 3])
def test_readings_that_are_corrupt_one_at_a_time_are_no_runaway(served: ServedActuators, others: int) -> None:
    watch, setpoint = FollowWatch(served, 1000.0, 5.0), np.full(9, 500.0)
    for number in range(60):
        watch.check(setpoint + (4000.0 if number % (others + 1) == 0 else 0.0), setpoint, number * PERIOD)


def test_a_chamber_that_falls_towards_its_setpoint_has_time(served: ServedActuators) -> None:
    watch, setpoint = FollowWatch(served, 1000.0, 5.0), np.zeros(9)
    for number in range(40):
        watch.check(np.full(9, 5000.0 * np.exp(-number * PERIOD)), setpoint, number * PERIOD)


def test_one_corrupt_reading_is_not_beyond_the_range(served: ServedActuators) -> None:
    watch = RangeWatch(served, 1000.0)
    good, bad = np.zeros(9), np.full(9, 90_000.0)
    for moment in range(10):
        watch.check(bad if moment % 2 else good)
    with pytest.raises(UnsafeError, match="c1 is at 9e\\+04 Pa"):
        watch.check(bad)
