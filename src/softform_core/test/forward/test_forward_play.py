"""The play operator and its inverse, and what a running robot's measured values tell of what its body feels."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from softform_core.arrays import Array
from softform_core.forward.actuator_past import ActuatorPast
from softform_core.forward.play import REMEMBERED, WIDEST, InversePlay, Play, pasts
from softform_core.robots import load_robot

ROBOT = load_robot("membrane")
LOW, HIGH = np.zeros(9), np.full(9, 5000.0)
PLAY = Play(np.linspace(50.0, 200.0, 9))

sequences = arrays(np.float64, st.tuples(st.integers(1, 12), st.just(9)), elements=st.floats(0.0, 5000.0))


def felt_along(commands: Array, felt: Array) -> Array:
    along = []
    for command in commands:
        felt = PLAY.felt(felt, command)
        along.append(felt)
    return np.array(along)


def test_a_body_stays_behind_on_the_way_and_does_not_follow_a_turn_within_twice_the_width() -> None:
    play = Play(np.array([100.0]))
    felt = play.felt(np.zeros(1), np.array([1000.0]))
    assert felt == 900.0
    assert play.felt(felt, np.array([850.0])) == 900.0
    assert play.felt(felt, np.array([700.0])) == 800.0


@given(sequences)
def test_many_frames_are_felt_as_one_after_the_other(commands: Array) -> None:
    past = pasts(commands, LOW)
    assert past.shape == (len(commands), REMEMBERED, 9)
    assert np.array_equal(past[0], np.zeros((REMEMBERED, 9)))
    assert np.array_equal(past[-1][-1], commands[-2] if len(commands) > 1 else LOW)
    if len(commands) <= REMEMBERED:  # all of it is remembered
        np.testing.assert_array_equal(PLAY.felt_after(past, commands), felt_along(commands, LOW))


@given(sequences)
def test_what_is_wanted_is_felt_as_far_as_the_limits_allow(wanted: Array) -> None:
    inverse, felt = InversePlay(PLAY, LOW, LOW, (LOW, HIGH)), LOW
    for each in wanted:
        command = inverse.command(each)
        assert (command >= LOW).all() and (command <= HIGH).all()
        felt = PLAY.felt(felt, command)
        np.testing.assert_array_equal(inverse.felt, felt)
        reachable = np.clip(each, LOW + PLAY.width, HIGH - PLAY.width)
        missed = np.abs(felt - each)
        assert (missed <= np.abs(reachable - each) + 0.1 * PLAY.width + 1e-9).all()


def test_noise_of_what_is_wanted_turns_nothing_back() -> None:
    inverse = InversePlay(PLAY, LOW, LOW, (LOW, HIGH))
    random = np.random.default_rng(0)
    commands = [inverse.command(2000.0 + 0.05 * PLAY.width * random.uniform(-1.0, 1.0, 9)) for _ in range(50)]
    assert np.ptp(commands, axis=0).max() < 0.2 * PLAY.width.max()


def test_without_a_play_commands_are_what_is_wanted() -> None:
    wanted = np.linspace(0.0, 900.0, 9)
    assert np.array_equal(InversePlay(None, LOW, LOW, (LOW, HIGH)).command(wanted), wanted)


@settings(max_examples=40)
@given(sequences, st.integers(0, 2**32 - 1))
def test_measured_values_tell_what_is_felt_after_any_way(corners: Array, seed: int) -> None:
    """Slewing at different rates and holding, at 30 Hz with a sensor's noise of 30 Pa."""
    random, stamp = np.random.default_rng(seed), 100.0
    past, felt, values = ActuatorPast(ROBOT), np.zeros(9), np.zeros(9)
    past.note(values, stamp)
    for corner in corners:
        rate = random.uniform(50.0, 300.0, 9)
        held = 0
        while held < 60:
            held += int((values == corner).all())
            values = values + np.clip(corner - values, -rate, rate)
            felt, stamp = PLAY.felt(felt, values), stamp + 1.0 / 30.0
            past.note(values + random.normal(0.0, 30.0, 9), stamp)
    assert np.abs(past.felt(PLAY, values) - felt).max() < 50.0  # without the mean of them, 100


long_ways = arrays(np.float64, st.tuples(st.integers(1, 40), st.just(9)), elements=st.floats(0.0, 5000.0))


NEXT_TO_NOTHING = np.array([0.0, 626.0, *[0.0] * 14, 6e-253, 0.0, 0.0, 0.0, 1.0])[:, None] * np.ones(9)


@given(long_ways, st.floats(0.0, WIDEST))
@example(NEXT_TO_NOTHING, 0.125)
def test_turns_tell_any_play_exactly(ways: Array, width: float) -> None:
    """Seconds apart, so that nothing is averaged; ways of all lengths, the play wide or narrow."""
    play, past = Play(np.full(9, 2500.0 * width)), ActuatorPast(ROBOT)
    felt = ways[0]
    for second, values in enumerate(ways):
        past.note(values, 100.0 + 10.0 * second)
        felt = play.felt(felt, values)
        np.testing.assert_allclose(past.felt(play, values), felt, atol=1e-6)


def test_a_clock_that_is_set_back_loses_no_turn() -> None:
    past = ActuatorPast(ROBOT)
    for stamp, pressure in ((100.0, 0.0), (110.0, 2000.0), (50.0, 2000.0), (60.0, 1800.0)):
        past.note(np.full(9, pressure), stamp)
    assert past.felt(PLAY, np.full(9, 1800.0)) == pytest.approx(np.minimum(2000.0 - PLAY.width, 1800.0 + PLAY.width))


def test_hours_at_one_place_cost_no_memory() -> None:
    past, random = ActuatorPast(ROBOT), np.random.default_rng(0)
    for second in range(20_000):
        past.note(2000.0 + random.normal(0.0, 30.0, 9), second / 30.0)
    assert max(len(turns) for turns in past._turns) < 30


def test_a_robot_whose_values_are_not_known_is_commanded_as_it_is_wanted() -> None:
    wanted = np.full(9, 1200.0)
    assert np.array_equal(ActuatorPast(ROBOT).inverse(PLAY, None).command(wanted), wanted)
    first = ActuatorPast(ROBOT).inverse(PLAY, np.full(9, 1000.0))
    assert first.felt == pytest.approx(1000.0)  # nothing came before: felt as it is measured
    np.testing.assert_allclose(first.command(wanted), wanted + PLAY.width)
