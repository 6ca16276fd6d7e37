"""The watch for values that stand still to the last digit while they should move, and what it must not mistake."""

from dataclasses import replace

import numpy as np
import pytest

from softform_actuation.assembly import served_by_devices
from softform_actuation.device import UnsafeError
from softform_actuation.watches import FrozenWatch
from softform_core.arrays import Array
from softform_core.robots import load_robot

FOLLOW = 1000.0
STEP = 0.05  # s between two measurements


@pytest.fixture
def watch() -> FrozenWatch:
    """Of two chambers."""
    served = served_by_devices(load_robot("membrane"))[0]
    return FrozenWatch(replace(served, actuators=["c1", "c2"]), FOLLOW)


def run(watch: FrozenWatch, values: Array, setpoints: Array, begin: float = 10.0, step: float = STEP) -> float:
    """Measurements (n, 2) under setpoints (n, 2); returns the moment after the last one."""
    for index, (value, setpoint) in enumerate(zip(values, setpoints, strict=True)):
        watch.check(value, setpoint, begin + index * step)
    return begin + len(values) * step


def ramp(seconds: float, begin: float, end: float) -> Array:
    """Of the second chamber alone."""
    steps = round(seconds / STEP)
    return np.stack([np.zeros(steps), np.linspace(begin, end, steps)], axis=1)


def test_a_chamber_that_stands_still_while_its_setpoint_moves_is_found(watch: FrozenWatch) -> None:
    setpoints = np.concatenate([ramp(1.0, 0.0, 1000.0), ramp(3.0, 1000.0, 1000.0)])
    values = np.zeros_like(setpoints)
    values[:, 0] = np.arange(len(values))  # the other one moves
    run(watch, values[:48], setpoints[:48])
    with pytest.raises(UnsafeError, match="c2 reads 0 Pa without any change for 2.0 s, though .* from 0 to 1000 Pa"):
        run(watch, values[48:54], setpoints[48:54], begin=12.4)


def test_a_chamber_that_froze_while_it_moved_is_found(watch: FrozenWatch) -> None:
    setpoints = np.concatenate([ramp(5.0, 0.0, 4000.0), ramp(1.0, 4000.0, 4000.0)])
    with pytest.raises(UnsafeError, match="c2 reads 2000 Pa"):
        run(watch, np.minimum(setpoints, 2000.0), setpoints)


def test_a_chamber_that_froze_is_found_while_its_setpoint_goes_to_and_fro(watch: FrozenWatch) -> None:
    setpoints = np.tile(np.concatenate([ramp(0.5, 0.0, 2000.0), ramp(0.5, 2000.0, 0.0)]), (6, 1))
    with pytest.raises(UnsafeError, match="c2 reads 0 Pa"):
        run(watch, np.zeros_like(setpoints), setpoints)


def test_a_chamber_may_stand_still_while_little_is_asked_of_it(watch: FrozenWatch) -> None:
    setpoints = np.concatenate([ramp(30.0, 1000.0, 1000.0), ramp(3.0, 1000.0, 1499.0), ramp(30.0, 1499.0, 1000.0)])
    run(watch, np.full_like(setpoints, 1200.0), setpoints)


def test_a_chamber_that_stood_still_for_long_may_begin_late(watch: FrozenWatch) -> None:
    setpoints = np.concatenate([ramp(30.0, 0.0, 0.0), ramp(0.5, 0.0, 2000.0), ramp(1.2, 2000.0, 2000.0)])
    now = run(watch, np.zeros_like(setpoints), setpoints)
    moves = ramp(5.0, 2000.0, 2000.0)
    run(watch, np.minimum(np.cumsum(np.full_like(moves, 10.0), axis=0), 500.0), moves, begin=now)


def test_a_pulse_that_a_chamber_does_not_follow_is_no_fault(watch: FrozenWatch) -> None:
    setpoints = np.concatenate([ramp(0.5, 0.0, 2000.0), ramp(0.5, 2000.0, 0.0), ramp(30.0, 0.0, 0.0)])
    run(watch, np.zeros_like(setpoints), setpoints)


def test_the_last_digit_is_enough(watch: FrozenWatch) -> None:
    setpoints = ramp(10.0, 0.0, 40e3)
    values = np.zeros_like(setpoints)
    values[::20, 1] = 1e-6
    run(watch, values, setpoints)


def test_few_measurements_prove_nothing(watch: FrozenWatch) -> None:
    setpoints = np.array([[0.0, 400.0 * index] for index in range(9)])
    run(watch, np.zeros_like(setpoints), setpoints, step=1.0)


def test_what_was_before_a_reset_is_forgotten(watch: FrozenWatch) -> None:
    setpoints = np.concatenate([ramp(0.5, 0.0, 4000.0), ramp(1.4, 4000.0, 4000.0)])
    now = run(watch, np.zeros_like(setpoints), setpoints)
    watch.reset()
    run(watch, np.zeros_like(setpoints), np.full_like(setpoints, 4000.0), begin=now)
