"""Leaks, stuck valves and kinked tubes of the virtual rig, as the driver's balance of air finds them.

Emulated firmware and plant on a clock of the test's own; the wire is the driver's protocol. `-s` prints how long each
fault took to be found.
"""

import sys

import numpy as np
import pytest
from numpy.typing import NDArray

from softform_actuation.device import UnsafeError
from softform_core.plant import load_plant
from softform_core.robots import load_robot
from softform_core.units import PA_PER_KPA
from softform_pneumatics.balance import Air, BalanceWatch
from softform_pneumatics.boards.protocol_a import StreamLine, StreamParser
from softform_pneumatics.family import PARAMETERS
from softform_rig.emulated_board import CHANNELS, Sensors
from softform_rig.fault_schedule import FaultSchedule
from softform_rig.faults import parse_fault
from softform_rig.faulty_board import FaultyBoard
from softform_rig.line_board import Firmware

pytestmark = pytest.mark.slow

DEFAULTS = {row.name: row.default for row in PARAMETERS}
_TOLERANCES = load_robot("membrane").actuator_tolerances
VENT_THRESHOLD, FOLLOW = float(_TOLERANCES.vent_threshold.min()), float(_TOLERANCES.follow.min())  # alike for all
TOLD_EVERY = 0.02  # s
FAULTY = 3
BEGIN = 8.0  # s; by then everything moves and has been held


def tell(what: str) -> None:
    sys.stderr.write(f"\n{what}")


class Bench:
    """A board, what befalls it, and the watch that hears it."""

    def __init__(self, slew_rate: float, seed: int = 0) -> None:
        self.now, self.slew_rate = 0.0, slew_rate
        self.schedule = FaultSchedule(clock=lambda: self.now)
        self.board = FaultyBoard(Firmware(load_plant(), Sensors(noise=0.03, seed=seed)), self.schedule)
        self.setpoint = np.zeros(CHANNELS)
        self._stream = StreamParser()
        self.watch = BalanceWatch(
            [f"c{channel}" for channel in range(CHANNELS)],
            Air(load_plant()),
            VENT_THRESHOLD,
            FOLLOW,
            DEFAULTS["response_timeout"],
        )
        self.board.receive(b"ST=%.2f\r\nC\r\n" % (VENT_THRESHOLD / PA_PER_KPA), 0.0)

    def follow(self, goal: NDArray[np.float64], seconds: float) -> None:
        """Move towards (10,) Pa at the slew rate, then stay; raises what the watch raises."""
        end = self.now + seconds
        while self.now < end:
            step = self.slew_rate * TOLD_EVERY
            self.setpoint = self.setpoint + np.clip(goal - self.setpoint, -step, step)
            for channel, target in enumerate(self.setpoint / PA_PER_KPA):
                self.board.receive(b"SC=%d\r\nT=%.2f\r\n" % (channel, target), self.now)
            self.watch.note_target(self.setpoint, self.now)
            self.now += TOLD_EVERY
            self.board.advance(self.now)
            for message in self._stream.feed(self.board.take_output()):
                if isinstance(message, StreamLine):
                    self.watch.check(np.array(message.pressures), self.now)

    def wander(self, highest: float, seconds: float, seed: int = 0) -> None:
        """Follow random goals within 0 … `highest` Pa, each for 2 s."""
        random = np.random.default_rng(seed)
        end = self.now + seconds
        while self.now < end:
            self.follow(random.uniform(0.1 * highest, highest, CHANNELS), 2.0)


@pytest.mark.parametrize(("highest", "slew_rate"), [(5e3, 4e3), (60e3, 20e3)])
def test_sound_chambers_of_the_rig_are_left_alone(highest: float, slew_rate: float) -> None:
    bench = Bench(slew_rate)
    bench.wander(highest, 60.0)
    assert bench.watch.leaks == {}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("fault", ["stuck_valve", "blocked_tube"])
def test_a_stuck_valve_and_a_kinked_tube_of_the_rig_end_in_a_fault(fault: str, seed: int) -> None:
    bench = Bench(4e3, seed)
    bench.wander(5e3, BEGIN, seed)
    bench.schedule.inject(parse_fault(f"{fault}={FAULTY}"))
    with pytest.raises(
        UnsafeError, match=f"Chamber c{FAULTY} (does not fill|does not empty|reacts several times|is pumped far more)"
    ):
        bench.wander(5e3, 30.0, seed + 100)
    tell(f"{fault}: after {bench.now - BEGIN:.1f} s")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("highest", [5e3, 20e3])
def test_a_sensor_of_the_rig_that_stands_still_ends_in_a_fault_before_much_is_pumped(highest: float, seed: int) -> None:
    bench = Bench(4e3, seed)
    bench.wander(highest, BEGIN, seed)
    bench.schedule.inject(parse_fault(f"stuck_sensor={FAULTY}"))
    with pytest.raises(UnsafeError, match=f"Chamber c{FAULTY} "):
        bench.wander(highest, 30.0, seed + 100)
    reached = PA_PER_KPA * bench.board.board.pressures()[FAULTY]
    tell(f"stuck_sensor: after {bench.now - BEGIN:.1f} s, at {reached:.0f} Pa")
    assert reached < 2.5 * highest + 10e3


@pytest.mark.parametrize("above", [200.0, 500.0, 900.0])
def test_a_sensor_that_stands_still_just_below_its_target_is_noticed(above: float) -> None:
    """The board pumps on and on, and all that is measured is within the tolerance."""
    bench = Bench(4e3)
    bench.follow(np.full(CHANNELS, 2e3), BEGIN)
    bench.schedule.inject(parse_fault(f"stuck_sensor={FAULTY}"))
    with pytest.raises(UnsafeError, match=f"Chamber c{FAULTY} is pumped far more"):
        bench.follow(np.full(CHANNELS, 2e3 + above), 5.0)
    reached = PA_PER_KPA * bench.board.board.pressures()[FAULTY]
    tell(f"stuck_sensor {above:g} Pa below its target: after {bench.now - BEGIN:.1f} s, at {reached:.0f} Pa")


@pytest.mark.parametrize(
    ("held", "slew_rate", "time_constant"), [(4e3, 4e3, 1.0), (4e3, 4e3, 3.0), (20e3, 20e3, 5.0), (60e3, 20e3, 10.0)]
)
def test_a_leak_that_the_pump_holds_is_named_with_its_time_constant(
    held: float, slew_rate: float, time_constant: float
) -> None:
    bench = Bench(slew_rate)
    bench.follow(np.full(CHANNELS, held), BEGIN)
    bench.schedule.inject(parse_fault(f"leak={FAULTY}:{time_constant}"))
    while not bench.watch.leaks:
        assert bench.now < BEGIN + 20.0
        bench.follow(bench.setpoint, 0.1)
    found = bench.now - BEGIN
    bench.follow(bench.setpoint, 2.0 * DEFAULTS["response_timeout"])  # what is seen at first is diluted by what was
    assert list(bench.watch.leaks) == [f"c{FAULTY}"]
    assert bench.watch.leaks[f"c{FAULTY}"] == pytest.approx(time_constant, rel=0.5)
    told = bench.watch.leaks[f"c{FAULTY}"]
    tell(f"leak of {time_constant:g} s at {held / PA_PER_KPA:g} kPa: after {found:.1f} s, told as {told:.1f} s")


def test_a_leak_that_the_pump_cannot_hold_ends_in_a_fault() -> None:
    bench = Bench(20e3)
    bench.follow(np.full(CHANNELS, 60e3), BEGIN)
    bench.schedule.inject(parse_fault(f"leak={FAULTY}:1"))
    with pytest.raises(UnsafeError, match=f"Chamber c{FAULTY} does not fill"):
        bench.follow(bench.setpoint, 5.0)
    tell(f"leak of 1 s at 60 kPa: after {bench.now - BEGIN:.1f} s")


def test_a_leak_too_slow_to_be_distinguished_from_the_plants_own_is_not_named() -> None:
    bench = Bench(4e3)
    bench.follow(np.full(CHANNELS, 4e3), BEGIN)
    bench.schedule.inject(parse_fault(f"leak={FAULTY}:20"))
    bench.follow(bench.setpoint, 20.0)
    assert bench.watch.leaks == {}
