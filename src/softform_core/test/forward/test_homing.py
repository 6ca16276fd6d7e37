"""The way home makes the past of every robot known, moves one degree of freedom at a time, and stays in the range."""

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.forward import homing
from softform_core.forward.history import HistoryKeeper
from softform_core.forward.homing import homing_path
from softform_core.paths import described_names
from softform_core.robots import load_robot

ROBOTS = [load_robot(name) for name in described_names("robots")]


@pytest.mark.parametrize("robot", ROBOTS, ids=lambda robot: robot.name)
def test_the_past_is_known_at_home_and_not_before(robot):
    keeper, path, known = HistoryKeeper(robot), homing_path(robot), []
    for number, values in enumerate(path):
        for moment in np.arange(0.0, 2.0, 0.1):  # as a driver measures: often, and a little behind
            keeper.note(values + 1e-4 * (robot.actuator_max - robot.actuator_min), 2.0 * number + moment)
        known.append(keeper.history.is_known)
    assert known[-1] and not any(known[: len(path) // 2])
    np.testing.assert_allclose(path[-1], robot.actuators_of(robot.rest_actuation))


@pytest.mark.parametrize("robot", ROBOTS, ids=lambda robot: robot.name)
def test_one_degree_of_freedom_moves_at_a_time_within_the_range(robot):
    path = homing_path(robot)
    assert (path >= robot.actuator_min - 1e-12).all() and (path <= robot.actuator_max + 1e-12).all()
    felt = robot.actuation_of(path)
    span = robot.actuation_max - robot.actuation_min
    away = np.abs(felt - robot.rest_actuation) > 1e-6 * span
    assert (away.sum(axis=1) <= 1).all() and away.any(axis=0).all()


def test_a_robot_that_cannot_be_made_known_is_told(monkeypatch):
    monkeypatch.setattr(homing, "_makes_known", lambda robot, path: False)
    with pytest.raises(SoftformError, match="through 40% of its range"):
        homing_path(ROBOTS[0])


def measured(keeper, begin, end, since, seconds, rate=50.0):
    """What a driver measures of a steady move, with a little noise; returns when it ends."""
    random = np.random.default_rng(0)
    for moment in np.arange(0.0, seconds, 1.0 / rate):
        values = begin + moment / seconds * (end - begin)
        keeper.note(values + 1e-5 * random.standard_normal(len(values)), since + moment)
    return since + seconds


def test_a_motor_that_jumps_makes_the_past_unknown_again_and_home_makes_it_known():
    robot = load_robot("tendon_robot")
    keeper, path = HistoryKeeper(robot), homing_path(robot)

    def home(since):
        for begin, end in zip(path, path[1:], strict=False):
            since = measured(keeper, begin, end, since, 1.5)
        return since

    since = home(100.0)
    assert keeper.history.is_known
    since = measured(keeper, path[-1], path[-1], since, 0.2)
    jumped = path[-1] + np.array(
        [0.012, 0.0, 0.0, 0.0]
    )  # a quarter of a turn of its drum, from one reading to the next
    measured(keeper, jumped, jumped, since, 0.2)
    assert not keeper.history.is_known and [len(turns) for turns in keeper.history.turns] == [1] * 4
    home(since + 10.0)
    assert keeper.history.is_known


def test_slackening_venting_and_late_measurements_are_no_jumps():
    for name, seconds in (("tendon_robot", 0.41), ("membrane", 0.04)):  # at 0.1 m/s; at any speed
        robot = load_robot(name)
        keeper, since = HistoryKeeper(robot), 100.0
        for values in homing_path(robot):
            keeper.note(values, since := since + 2.0)
        known = keeper.history.is_known
        since = measured(keeper, robot.safe, robot.actuator_max, since + 2.0, 5.0)
        measured(keeper, robot.actuator_max, robot.safe, since, seconds)
        assert known and keeper.history.is_known, name
