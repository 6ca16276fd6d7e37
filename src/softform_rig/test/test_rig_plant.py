"""The emulated pneumatics behave as the recorded board did; the figures are facts read from its recordings."""

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.plant import Plant, load_plant
from softform_rig.channels import Channels
from softform_rig.control import DEFAULT_THRESHOLD, proportional_control
from softform_rig.identify_plant import simulate_loop

TICK = 1.0 / 30.0
OVERSHOOT = 0.8  # kPa, largest recorded while pumping
STEADY_ERROR = 0.66  # kPa, largest recorded


@pytest.fixture(scope="module")
def plant() -> Plant:
    return load_plant()


def response(plant: Plant, before: float, after: float, seconds: float = 5.0) -> np.ndarray:
    settle = int(5.0 / TICK)
    targets = np.concatenate([np.full(settle, before), np.full(int(seconds / TICK), after)])
    return simulate_loop(before, targets, plant.coefficients(), DEFAULT_THRESHOLD, TICK)[settle:]


def time_to_90_percent(pressure: np.ndarray, after: float) -> float:
    """Where the line through the readings crosses 90 % for the first time, s."""
    share = (pressure - pressure[0]) / (after - pressure[0])
    past = int(np.argmax(share >= 0.9))
    return float((past - (share[past] - 0.9) / (share[past] - share[past - 1])) * TICK)


@pytest.mark.parametrize(
    ("before", "after", "recorded"), [(10.0, 30.0, 0.35), (30.0, 50.0, 0.9), (50.0, 70.0, 1.1), (-30.0, -50.0, 0.9)]
)
def test_rise_times_of_the_recordings(plant: Plant, before: float, after: float, recorded: float) -> None:
    """Repeated steps of the recordings differ by up to 60 %; the model stays within 40 % of the stated times."""
    assert time_to_90_percent(response(plant, before, after), after) == pytest.approx(recorded, rel=0.4)


@pytest.mark.parametrize(("before", "after"), [(70.0, 50.0), (50.0, 30.0), (30.0, 10.0), (-50.0, -30.0)])
def test_steps_towards_zero_vent_in_a_quarter_second(plant: Plant, before: float, after: float) -> None:
    assert 0.05 <= time_to_90_percent(response(plant, before, after), after) <= 0.27


@pytest.mark.parametrize("step", [(10.0, 30.0), (30.0, 50.0), (50.0, 70.0), (-30.0, -50.0), (0.0, 5.0), (0.0, 2.0)])
def test_overshoot_and_steady_error_of_the_recordings(plant: Plant, step: tuple[float, float]) -> None:
    before, after = step
    pressure = response(plant, before, after)
    beyond = np.sign(after - before) * (pressure - after)
    assert beyond.max() <= OVERSHOOT
    assert np.abs(pressure[-30:] - after).max() <= STEADY_ERROR


def test_a_small_step_down_is_held_and_leaks(plant: Plant) -> None:
    pressure = response(plant, 5.0, 3.5)
    assert pressure[3] > 4.5, "within the vent threshold of 2 kPa the board only holds"
    assert abs(pressure[-1] - 3.5) <= 0.1, "the leak brings it down"


def test_control_law_uses_three_gains_and_saturates() -> None:
    counts = [4090 * proportional_control(10.0, 10.0 - error, 2.0)[1] for error in (0.25, 0.75, 1.5, 3.0)]
    assert counts == pytest.approx([3 * 1440 * 0.25, 1.6 * 1440 * 0.75, 1440 * 1.5, 4090])


def test_control_law_holds_then_vents_on_either_side() -> None:
    assert proportional_control(10.0, 11.9, 2.0) == (0, 0.0, False)
    assert proportional_control(10.0, 12.1, 2.0) == (0, 0.0, True)
    assert proportional_control(-10.0, -11.9, 2.0) == (0, 0.0, False)
    assert proportional_control(-10.0, -12.1, 2.0) == (0, 0.0, True)


def test_a_stopped_board_vents_all_channels(plant: Plant) -> None:
    channels = Channels(plant, 10)
    channels.pressure[:] = 5.0
    for _ in range(60):
        channels.advance(TICK)
    assert np.abs(channels.pressure).max() < 0.01


def test_a_wrong_plant_file_names_the_field(tmp_path) -> None:
    file = tmp_path / "plant.yaml"
    file.write_text("plant: {inflation: {rate: -1, stall: 1, dead_duty: 0, spin_up: 1}}")
    with pytest.raises(SoftformError, match=r"inflation\.rate"):
        load_plant(file)
