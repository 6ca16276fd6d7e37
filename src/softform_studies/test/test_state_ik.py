"""Inverse kinematics through the state, on a toy whose tip stays behind its tendons by a play that is known."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_rig.reality import load_reality
from softform_studies.hysteresis import memories, one_move, state_ik
from softform_studies.hysteresis.state_ik import LEAST, WAYS, led_on, planned, seconds_of, via
from softform_studies.tendon_robot.approaches import Robots

ROBOT = load_robot("tendon_robot")
GAINS = np.array([[6.0, -3.0, -3.0, 2.0], [0.0, 5.2, -5.2, 3.0], [-1.0, -1.0, -1.0, -0.5]]) * 1e3  # mm / m
PLAY = ((0.0, 0.002),)


@dataclass(frozen=True)
class Toy:
    """Tips of what is felt, behind a play or not, and what is not known of paths that do not come from home."""

    remembers: bool = True
    doubt_mm: float = 0.1

    def felt(self, paths):
        behind = memories.plays(paths, PLAY)[:, 0] if self.remembers else 0.0
        return np.where(paths[:, -1] > 0.0, paths[:, -1] + behind, 0.0)

    def tips(self, paths):
        return self.felt(paths) @ GAINS.T

    def doubts(self, paths):
        return np.where((paths[:, -2] == 0.0).all(axis=1), 0.1, self.doubt_mm)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    for name, value in (("_LEVELS", 3), ("_HELICAL", 3)):
        monkeypatch.setattr(state_ik, name, value)


def pasts(count: int) -> np.ndarray:
    """Pairs of tendons, as deep as the range allows: what is asked for then lies behind a reversal."""
    random, found = np.random.default_rng(0), np.zeros((count, 5, 4))
    for row, step in np.ndindex(count, 4):
        found[row, step + 1, random.permutation(3)[:2]] = random.uniform(0.006, 0.013, 2)
    return found


def wanted(count: int) -> np.ndarray:
    random, felt = np.random.default_rng(1), np.zeros((count, 4))
    for row in range(count):
        felt[row, random.permutation(3)[:2]] = random.uniform(0.003, 0.009, 2)
    return felt @ GAINS.T


def off(plans, past, targets):
    """How far the toy that remembers ends from its targets."""
    found = [
        Toy().tips(led_on(ROBOT, before[None], way, asked[None]))[0]
        for before, way, asked in zip(past, plans.ways, plans.configurations, strict=True)
    ]
    return np.linalg.norm(np.array(found) - targets, axis=1)


def test_through_the_state_the_tip_ends_nearer_than_memory_free():
    past, targets = pasts(6), wanted(6)
    blind = off(planned(Toy(remembers=False), ROBOT, past, targets, ["straight"]), past, targets)
    plans = planned(Toy(), ROBOT, past, targets)
    assert off(plans, past, targets).mean() < 0.2 * blind.mean()
    assert (plans.configurations <= ROBOT.actuator_max).all() and (plans.configurations >= 0.0).all()
    assert ((plans.configurations == 0.0) | (plans.configurations >= LEAST)).all()


def test_what_is_not_known_of_a_way_sends_it_by_home_and_time_straight_on():
    past, targets = pasts(2), wanted(2)
    assert planned(Toy(doubt_mm=20.0), ROBOT, past, targets).ways == ["by_home"] * 2
    assert planned(Toy(), ROBOT, past, targets, price=5.0).ways == ["straight"] * 2


def test_a_past_that_is_not_known_is_told_and_asks_for_home():
    past, targets = pasts(2), wanted(2)
    past[1, 0] = np.nan
    with pytest.raises(SoftformError, match="past is not known") as told:
        planned(Toy(), ROBOT, past, targets)
    assert "Home it first" in told.value.next_step
    with pytest.raises(SoftformError, match="not finite"):
        planned(Toy(), ROBOT, pasts(2), targets * np.inf)


@pytest.mark.parametrize("way", WAYS)
def test_ways_lead_where_they_should_and_take_their_time(way):
    past = pasts(3)
    asked = np.where(past[:, -1] > 0.0, 0.5 * past[:, -1], 0.0)
    between, path = via(ROBOT, way, past[:, -1], asked), led_on(ROBOT, past, way, asked)
    assert path.shape == past.shape
    np.testing.assert_array_equal(path[:, -1], asked)
    np.testing.assert_array_equal(path[:, -2], past[:, -1] if between is None else between)
    spent = seconds_of(ROBOT, way, past[:, -1], asked)
    straight = seconds_of(ROBOT, "straight", past[:, -1], asked)
    assert (spent == straight).all() if way == "straight" else (spent > straight + 2.9).all()


class State(NamedTuple):
    """Of toy robots: pulls (n, k) m, and what their tendons feel."""

    pulls: np.ndarray
    felt: np.ndarray

    def part(self, chosen):
        return State(*(each[chosen] for each in self))

    def put(self, chosen, other):
        for mine, new in zip(self, other, strict=True):
            mine[chosen] = new


class Body:
    """Toy robots behind a play that the model does not know; their tips are the toy's, and 4 mm beside."""

    def new(self, count):
        return np.zeros((count, 4)), State(np.zeros((count, 4)), np.zeros((count, 4)))

    def advance(self, unknowns, pulls, state, seconds):
        q = np.maximum(pulls, 0.0)
        felt = np.where(q > 0.0, np.clip(state.felt, q, 1.2 * q + 5e-4), 0.0)
        return felt, State(pulls.copy(), felt)

    def points(self, unknowns):
        return (1e-3 * (unknowns @ (0.9 * GAINS).T + [4.0, -3.0, 0.0]))[:, None]


def toys(count):
    return Robots(Body(), ROBOT, load_reality("ideal", ROBOT), count)


def test_plans_are_executed_by_their_ways_and_the_robots_stay_where_they_were():
    robots = toys(3)
    robots.go(pasts(3)[:, -1])
    before = robots.at.copy()
    asked = np.where(before > 0.0, 0.6 * before, 0.0)
    plans = state_ik.Plans(["by_home", "straight", "by_home"], asked, np.zeros(3), np.zeros(3))
    tips, after = one_move.executed(robots, plans)
    np.testing.assert_array_equal(robots.at, before)
    np.testing.assert_array_equal(after.at, asked)
    np.testing.assert_allclose(tips, 1e3 * robots.body.points(after.unknowns)[:, 0])
    np.testing.assert_allclose(after.unknowns[[0, 2]], asked[[0, 2]])  # tightened from slack: nothing stays behind
    assert (after.unknowns[1] > asked[1] + 4e-4)[asked[1] > 0.0].all()


def test_the_loop_ends_near_the_best_fit_and_no_worse_than_it_began():
    robots, past = toys(4), pasts(4)
    robots.go(past[:, -1])
    targets = 0.9 * wanted(4) + [4.0, -3.0, 0.0]
    loop = one_move.closed_loop(Toy(), ROBOT, robots, past, targets, lambda seen: seen)
    assert loop.errors.shape == (4, 4) and loop.errors[0].mean() > 3.0
    best = np.minimum(one_move.best_fit(robots, loop.best, 1e-3 * targets), loop.errors.min(axis=0))
    assert (loop.end <= loop.errors[0]).all() and loop.end.mean() < 1.2 * best.mean() + 0.05
    assert (loop.seconds > 4 * 6.0).all()


def test_plans_of_some_robots_are_theirs():
    plans = planned(Toy(), ROBOT, pasts(3), wanted(3))
    some = plans.of(np.array([2, 0]))
    assert some.ways == [plans.ways[2], plans.ways[0]]
    np.testing.assert_array_equal(some.configurations, plans.configurations[[2, 0]])
