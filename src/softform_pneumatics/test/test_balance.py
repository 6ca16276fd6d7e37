"""Leaks and blockages, by a board and chambers that follow the identified plant step by step."""

import numpy as np
import pytest
from numpy.typing import NDArray

from softform_actuation.device import UnsafeError
from softform_core.plant import load_plant
from softform_pneumatics.balance import Air, BalanceWatch, expected_flows

TICK = 1.0 / 30.0
THRESHOLD, TOLERANCE = 200.0, 1000.0
PLANT = load_plant()


class Chambers:
    """Three chambers at 30 Hz: noise of 30 Pa, the firmware's law, and what a test spoils."""

    def __init__(self, seed: int = 0, volume: float | NDArray[np.float64] = 1.0) -> None:
        self.pressure = np.zeros(3)
        self.leak = np.zeros(3)  # 1/s
        self.shut = np.zeros(3, dtype=bool)
        self.quick = np.ones(3)
        self._volume = volume
        self._random = np.random.default_rng(seed)

    def tick(self, target: NDArray[np.float64]) -> NDArray[np.float64]:
        reading = self.pressure + 30.0 * self._random.standard_normal(3)
        gained, lost = expected_flows(PLANT, self._volume, target, reading, THRESHOLD)
        emptying = np.where(self.shut, 0.0, self.quick * lost / np.maximum(reading, 1.0)) + self.leak  # 1/s
        filled = np.where(self.shut, 0.0, self.quick * gained * TICK)
        self.pressure = self.pressure * np.exp(-emptying * TICK) + filled
        return reading


def run(chambers: Chambers, seconds: float, goal: float = 3000.0, delay: int = 1, watch: BalanceWatch | None = None):  # type: ignore[no-untyped-def]
    """Ramp up to `goal`, hold, come down by halves; the board gets its targets `delay` ticks late."""
    watch = watch or BalanceWatch(["c1", "c2", "c3"], Air(PLANT), THRESHOLD, TOLERANCE, 1.5)
    setpoint, told = np.zeros(3), [np.zeros(3)] * (delay + 1)
    for tick in range(int(seconds / TICK)):
        wanted = goal if tick * TICK % 6.0 < 4.0 else 0.5 * goal
        setpoint = setpoint + np.clip(wanted - setpoint, -4000.0 * TICK, 4000.0 * TICK)
        watch.note_target(setpoint, tick * TICK)
        told.append(setpoint)
        watch.check(chambers.tick(told[-1 - delay]), tick * TICK)
    return watch


@pytest.mark.parametrize("delay", [0, 1, 3])
@pytest.mark.parametrize("volume", [0.67, 1.0, 1.5])
def test_sound_chambers_are_left_alone(delay: int, volume: float) -> None:
    assert run(Chambers(delay, volume), 18.0, delay=delay).leaks == {}


def test_chambers_that_are_unlike_are_left_alone_once_their_volumes_are_given() -> None:
    volumes = np.array([0.2, 1.0, 3.0])
    told = BalanceWatch(["c1", "c2", "c3"], Air(PLANT, volumes), THRESHOLD, TOLERANCE, 1.5)
    assert run(Chambers(0, volumes), 18.0, watch=told).leaks == {}
    with pytest.raises(UnsafeError, match="Chamber c1 reacts several times as fast.*'chamber_volumes'"):
        run(Chambers(0, volumes), 18.0)


def test_a_leak_that_the_pump_holds_is_named_with_its_time_constant() -> None:
    chambers = Chambers()
    watch = run(chambers, 6.0)
    chambers.leak[1] = 1.0 / 0.5
    watch = run(chambers, 6.0, watch=BalanceWatch(["c1", "c2", "c3"], Air(PLANT), THRESHOLD, TOLERANCE, 1.5))
    assert list(watch.leaks) == ["c2"]
    assert watch.leaks["c2"] == pytest.approx(0.5, rel=0.4)


def test_a_chamber_that_is_shut_in_does_not_fill() -> None:
    chambers = Chambers()
    chambers.shut[2] = True
    with pytest.raises(UnsafeError, match="Chamber c3 does not fill"):
        run(chambers, 4.0)


def test_a_chamber_that_is_shut_in_does_not_empty() -> None:
    chambers = Chambers()
    chambers.pressure[:] = 4500.0
    chambers.shut[0] = True
    with pytest.raises(UnsafeError, match="Chamber c1 does not empty"):
        run(chambers, 4.0, goal=1000.0)


def test_a_sensor_that_is_cut_off_from_its_chamber_is_noticed() -> None:
    chambers = Chambers()
    chambers.quick[1] = 10.0
    with pytest.raises(UnsafeError, match="Chamber c2 reacts several times as fast"):
        run(chambers, 4.0)


def test_readings_with_gaps_give_no_verdict() -> None:
    watch = BalanceWatch(["c1"], Air(PLANT), THRESHOLD, TOLERANCE, 1.5)
    for tick in range(200):  # every second reading is lost: nobody knows what happened in between
        watch.note_target(np.array([5000.0]), 2.0 * tick * TICK)
        watch.check(np.zeros(1), 2.0 * tick * TICK)
    assert watch.leaks == {}
