"""Prandtl and Ishlinskii's operator and its inverse; what measured values tell of what a running robot's body feels."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.history import History, HistoryKeeper
from softform_core.forward.memory import FRAME_S, NO_MEMORY, Commands, Memory, PrandtlIshlinskii, play_of
from softform_core.robots import load_robot
from softform_core.stores.past import REMEMBERED, pasts

pytestmark = pytest.mark.slow

ROBOT = load_robot("membrane")
LOW, HIGH = np.zeros(9), np.full(9, 5000.0)
WIDTH = np.linspace(50.0, 200.0, 9)
PLAY = PrandtlIshlinskii.play(WIDTH)
SEVERAL = PrandtlIshlinskii(
    np.outer([0.1, 0.5, 1.0, 2.0], WIDTH), np.outer([-0.1, 0.2, 0.3, 0.3], np.ones(9)), np.empty(0), np.empty((0, 9))
)
CREEPING = PrandtlIshlinskii(
    SEVERAL.widths, SEVERAL.weights, np.array([0.3, 0.8]), np.outer([0.02, 0.05], np.linspace(0.5, 1.5, 9))
)
ALL = pytest.mark.parametrize("memory", [PLAY, SEVERAL, CREEPING], ids=["play", "several", "creeping"])

sequences = arrays(np.float64, st.tuples(st.integers(1, 12), st.just(9)), elements=st.floats(0.0, 5000.0))


def commands_from(memory: Memory, here: Array) -> Commands:
    return Commands(memory, memory.state_after(History(), here, 0.0), (LOW, HIGH))


def effective_at(play: PrandtlIshlinskii, keeper: HistoryKeeper, values: Array, stamp: float = 0.0) -> Array:
    return play.now(play.state_after(keeper.history, values, stamp))


def effective_along(memory: PrandtlIshlinskii, commands: Array, start: Array) -> Array:
    state, along = memory.at_rest(start), []
    for command in commands:
        state = memory.advance(state, command)
        along.append(memory.now(state))
    return np.array(along)


def test_a_body_stays_behind_on_the_way_and_does_not_follow_a_turn_within_twice_the_width() -> None:
    play, ways = PrandtlIshlinskii.play(np.array([100.0])), np.array([[1000.0], [850.0], [700.0]])
    assert effective_along(play, ways, np.zeros(1)).ravel().tolist() == [900.0, 900.0, 800.0]


def test_several_plays_let_go_one_after_the_other() -> None:
    """After a turn only what no play holds follows, beyond twice each width its share more (Kuhnen 2003)."""
    widths, weights = np.array([[50.0], [100.0]]), np.array([[0.3], [0.5]])
    memory = PrandtlIshlinskii(widths, weights, np.empty(0), np.empty((0, 1)))
    ways = np.array([[1000.0], [900.0], [800.0], [700.0]])
    felt = effective_along(memory, ways, np.zeros(1)).ravel()
    assert felt[0] == pytest.approx(1000.0 - memory.lag[0]) and memory.lag[0] == 65.0
    assert np.diff(felt) == pytest.approx([-20.0, -50.0, -100.0])


def test_what_creeps_comes_in_the_end() -> None:
    memory = PrandtlIshlinskii(np.empty((0, 1)), np.empty((0, 1)), np.array([0.5]), np.array([[0.1]]))
    felt = effective_along(memory, np.full((30, 1), 100.0), np.zeros(1)).ravel()
    assert felt[:3] == pytest.approx([95.0, 97.5, 98.75]) and felt[-1] == pytest.approx(100.0, abs=1e-6)
    assert commands_from(memory, np.zeros(1)).command(np.array([500.0])) == pytest.approx(500.0 / 0.95)


def test_creep_goes_by_the_clock_however_often_is_commanded() -> None:
    """In 200 commands of a stream at 20 Hz as much as in the one of a frame, and what is looked at late has crept."""
    stream, frame, here = commands_from(CREEPING, LOW), commands_from(CREEPING, LOW), np.full(9, 3000.0)
    for _ in range(200):
        stream.state = CREEPING.advance(stream.state, here, FRAME_S / 200)
    frame.state = CREEPING.advance(frame.state, here)
    np.testing.assert_allclose(CREEPING.now(stream.state), CREEPING.now(frame.state), rtol=1e-9)
    wanted = np.full(9, 2000.0)
    along = [stream.command(wanted, FRAME_S / 200) for _ in range(200)]
    np.testing.assert_allclose(stream.effective, wanted, atol=0.1 * CREEPING.lag.max() + 1e-6)
    assert np.isfinite(along).all()
    history = History((((100.0, 0.0),),) * 9)
    soon, late = (CREEPING.now(CREEPING.state_after(history, here, 100.0 + s)) for s in (0.5, 600.0))
    in_the_end = replace(CREEPING, fading=np.empty(0), shares=np.empty((0, 9)))
    expected = in_the_end.now(in_the_end.state_after(history, here, 0.0))
    np.testing.assert_allclose(late, expected, rtol=1e-6)
    assert (late - soon > 10.0).all()


@ALL
def test_a_closed_minor_loop_is_forgotten(memory: PrandtlIshlinskii) -> None:
    """Return-point memory, of all but what creeps."""
    memory = replace(memory, fading=np.empty(0), shares=np.empty((0, 9)))
    ways = np.array([0.0, 3000.0, 2000.0, 2400.0, 2200.0, 2400.0, 2000.0, 3500.0])[:, None] * np.ones(9)
    felt = effective_along(memory, ways, LOW)
    np.testing.assert_allclose(felt[5], felt[3], rtol=1e-12)
    np.testing.assert_allclose(felt[6], felt[2], rtol=1e-12)
    np.testing.assert_allclose(felt[7], effective_along(memory, ways[[0, 7]], LOW)[-1], rtol=1e-12)


@ALL
@given(commands=sequences)
def test_many_frames_are_felt_as_one_after_the_other(memory: PrandtlIshlinskii, commands: Array) -> None:
    past = pasts(commands, LOW)
    assert past.shape == (len(commands), REMEMBERED, 9)
    assert np.array_equal(past[0], np.zeros((REMEMBERED, 9)))
    assert np.array_equal(past[-1][-1], commands[-2] if len(commands) > 1 else LOW)
    if len(commands) <= REMEMBERED:  # all of it is remembered
        expected = effective_along(memory, commands, LOW)
        np.testing.assert_allclose(memory.effective_after(past, commands), expected, atol=1e-9)


@ALL
@given(wanted=sequences)
def test_what_is_wanted_is_felt_as_far_as_the_limits_allow(memory: PrandtlIshlinskii, wanted: Array) -> None:
    found, commands = commands_from(memory, LOW), []
    for each in wanted:
        lowest, highest = (memory.effective(found.state, limit) for limit in (LOW, HIGH))
        commands.append(found.command(each))
        assert (commands[-1] >= LOW).all() and (commands[-1] <= HIGH).all()
        effective = effective_along(memory, np.array(commands), LOW)[-1]
        np.testing.assert_allclose(found.effective, effective, atol=1e-9)
        missed = np.abs(effective - np.clip(each, lowest, highest))
        assert (missed <= 0.1 * memory.lag + 1e-6).all()


@ALL
@given(commands=sequences)
def test_what_is_felt_now_is_what_has_come_into_effect(memory: PrandtlIshlinskii, commands: Array) -> None:
    """A robot that is looked at goes nowhere: no creep passes by looking, and a frame is so many seconds."""
    stamps = FRAME_S * np.arange(len(commands))
    stamped = tuple(tuple(zip(stamps.tolist(), each, strict=True)) for each in commands.T.tolist())
    state = memory.state_after(History(stamped), commands[-1], FRAME_S * len(commands))
    after, felt = memory.after(commands, commands[-1]), memory.effective_after(commands, commands[-1])
    np.testing.assert_allclose(memory.now(state), felt, atol=1e-9)
    np.testing.assert_allclose(Commands(memory, after, (LOW, HIGH)).effective, felt, atol=1e-9)


def test_noise_of_what_is_wanted_turns_nothing_back() -> None:
    found = commands_from(PLAY, LOW)
    random = np.random.default_rng(0)
    commands = [found.command(2000.0 + 0.05 * WIDTH * random.uniform(-1.0, 1.0, 9)) for _ in range(50)]
    assert np.ptp(commands, axis=0).max() < 0.2 * WIDTH.max()


def test_without_a_play_commands_are_what_is_wanted() -> None:
    wanted = np.linspace(0.0, 900.0, 9)
    assert np.array_equal(commands_from(NO_MEMORY, LOW).command(wanted), wanted)


@pytest.mark.parametrize("memory", [PLAY, SEVERAL], ids=["play", "several"])
@settings(max_examples=20)
@given(corners=sequences, seed=st.integers(0, 2**32 - 1))
def test_measured_values_tell_what_is_felt_after_any_way(memory: PrandtlIshlinskii, corners: Array, seed: int) -> None:
    """Slewing at different rates and holding, at 30 Hz with a sensor's noise of 30 Pa."""
    random, stamp = np.random.default_rng(seed), 100.0
    past, state, values = HistoryKeeper(ROBOT), memory.at_rest(LOW), LOW
    past.note(values, stamp)
    for corner in corners:
        rate = random.uniform(50.0, 300.0, 9)
        held = 0
        while held < 60:
            held += int((values == corner).all())
            values = values + np.clip(corner - values, -rate, rate)
            state, stamp = memory.advance(state, values), stamp + 1.0 / 30.0
            past.note(values + random.normal(0.0, 30.0, 9), stamp)
    assert np.abs(effective_at(memory, past, values) - memory.now(state)).max() < 50.0  # without the mean of them, 100


long_ways = arrays(np.float64, st.tuples(st.integers(1, 40), st.just(9)), elements=st.floats(0.0, 5000.0))


NEXT_TO_NOTHING = np.array([0.0, 626.0, *[0.0] * 14, 6e-253, 0.0, 0.0, 0.0, 1.0])[:, None] * np.ones(9)


@given(long_ways, st.floats(0.0, 0.2))
@example(NEXT_TO_NOTHING, 0.125)
def test_turns_tell_any_play_but_for_ways_that_are_noise(ways: Array, width: float) -> None:
    """Seconds apart, so that nothing is averaged; ways of all lengths, the play wide or narrow."""
    play, past = PrandtlIshlinskii.play(np.full(9, 2500.0 * width)), HistoryKeeper(ROBOT)
    state = play.at_rest(ways[0])
    for second, values in enumerate(ways):
        past.note(values, 100.0 + 10.0 * second)
        state = play.advance(state, values)
        np.testing.assert_allclose(effective_at(play, past, values), play.now(state), atol=10.0)


def test_a_clock_that_is_set_back_loses_no_turn() -> None:
    past = HistoryKeeper(ROBOT)
    for stamp, pressure in ((100.0, 0.0), (110.0, 2000.0), (50.0, 2000.0), (60.0, 1800.0)):
        past.note(np.full(9, pressure), stamp)
    expected = np.minimum(2000.0 - WIDTH, 1800.0 + WIDTH)
    assert effective_at(PLAY, past, np.full(9, 1800.0)) == pytest.approx(expected)


def test_hours_at_one_place_cost_no_memory() -> None:
    past, random = HistoryKeeper(ROBOT), np.random.default_rng(0)
    for second in range(20_000):
        past.note(2000.0 + random.normal(0.0, 30.0, 9), second / 30.0)
    assert max(len(turns) for turns in past._turns) < 30


def test_a_history_is_known_once_each_has_been_moved_through_what_wipes_it() -> None:
    keeper = HistoryKeeper(ROBOT)
    for second, pressure in enumerate((0.0, 1500.0, 2500.0, 2400.0)):
        keeper.note(np.array([pressure, *[2.0 * pressure] * 8]), 10.0 * second)
        assert keeper.history.is_known == (pressure >= 2400.0)


def test_rows_that_do_not_add_up_are_rejected() -> None:
    whole = History.of_rows([2, 1], [1.0, 2.0, 1.0], [0.0, 5.0, 7.0], False, 2)
    assert whole.turns == (((1.0, 0.0), (2.0, 5.0)), ((1.0, 7.0),))
    np.testing.assert_array_equal(whole.sequence, [[0.0, 7.0], [5.0, 7.0]])
    for counts, stamps, values in (([2], [1.0], [0.0]), ([1], [1.0], [np.nan]), ([1], [], [])):
        with pytest.raises(SoftformError, match="turns"):
            History.of_rows(counts, stamps, values, False, 2)


def test_a_robot_of_unknown_history_feels_what_is_measured() -> None:
    wanted = np.full(9, 1200.0)
    first = commands_from(PLAY, np.full(9, 1000.0))
    assert first.effective == pytest.approx(1000.0)
    np.testing.assert_allclose(first.command(wanted), wanted + WIDTH)


def test_of_an_unknown_past_the_oldest_known_is_taken_as_commanded():
    play, unknown = PrandtlIshlinskii.play(np.array([1.0])), np.full((1, 1), np.nan)
    known = np.array([[5.0], [9.0]])
    behind = play.effective_after(known, np.array([3.0]))
    np.testing.assert_array_equal(play.effective_after(np.concatenate([unknown, known]), np.array([3.0])), behind)
    np.testing.assert_array_equal(play.effective_after(np.concatenate([unknown, unknown]), np.array([3.0])), [3.0])


def test_a_tendon_turns_back_while_no_bend_does() -> None:
    """The second tendon goes with the first bend from 0 to -5 mm, and comes back with the second."""
    rod = load_robot("tendon_rod")
    memory, keeper = play_of(rod, np.full(4, 1e-3)), HistoryKeeper(rod)
    ways = np.array([[0.0, 0.0, 0.0], [1e-2, 0.0, 0.0], [1e-2, 2e-3, 0.0]])
    for second, way in enumerate(ways):
        keeper.note(rod.actuators_of(way), 100.0 + 10.0 * second)
    history = keeper.history
    assert [len(turns) for turns in history.turns] == [1, 1, 1]
    assert np.diff(rod.actuators_of(ways)[:, 1]) == pytest.approx([-5e-3, 2e-3 * np.sqrt(0.75)])
    felt = memory.now(memory.state_after(history, ways[-1], 0.0))
    np.testing.assert_allclose(felt, memory.effective_after(ways[:-1], ways[-1]), atol=1e-6)
    without = replace(history, of_actuators=())
    assert np.abs(memory.now(memory.state_after(without, ways[-1], 0.0)) - felt).max() > 2e-4


def test_each_tendon_has_a_play_of_its_own_though_three_bends_are_commanded():
    rod = load_robot("tendon_rod")
    memory = play_of(rod, np.full(4, 2e-4))
    low, high = rod.actuation_min, rod.actuation_max
    path = np.random.default_rng(0).uniform(low, high, (5, 3))
    state = memory.state_after(History(), path[0], 0.0)
    for one in path[1:]:
        effective, state = memory.effective(state, one), memory.advance(state, one)
    np.testing.assert_allclose(memory.effective_after(path[:-1], path[-1]), effective, atol=1e-12)
    by_tendon = PrandtlIshlinskii.play(np.full(4, 2e-4)).effective_after(
        rod.actuators_of(path[:-1]), rod.actuators_of(path[-1])
    )
    np.testing.assert_allclose(rod.actuation_of(by_tendon), effective, atol=1e-12)
    assert np.abs(effective - path[-1]).max() > 1e-4
    commands = Commands(memory, state, (low, high))
    for wanted in np.random.default_rng(1).uniform(low + 0.3 * (high - low), high - 0.3 * (high - low), (6, 3)):
        commands.command(wanted)
        assert np.abs(commands.effective - wanted).max() < 1e-4
    assert play_of(rod, np.empty(0)) is NO_MEMORY and isinstance(play_of(rod, np.ones(3)), PrandtlIshlinskii)
