import itertools
import time

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.planning.motion_plan import ALGORITHMS, PlannerSettings
from softform_core.planning.planner import find_path
from softform_core.planning.sweep import StoppedError

START, GOAL = np.array([500.0, 2500.0]), np.array([4500.0, 2500.0])
BOUNDS = np.zeros(2), np.full(2, 5000.0)
PILLAR = ((50.0, 50.0, 0.0), (16.0, 16.0, 60.0))
WALL = ((50.0, 50.0, 0.0), (4.0, 300.0, 60.0))


def search(checker, algorithm="rrt_connect", seed=1, seconds=20.0, goals=(GOAL,)):
    return find_path(START, goals, BOUNDS, checker, PlannerSettings(algorithm, seed, seconds, 0.5))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_plate_goes_around_a_pillar(plate_checker, algorithm):
    checker = plate_checker(PILLAR)
    found = search(checker, algorithm)
    assert found.path is not None and len(found.path) >= 3
    assert found.path[0] == pytest.approx(START) and found.path[-1] == pytest.approx(GOAL)
    assert all(checker.is_clear(*leg) for leg in itertools.pairwise(found.path))
    length = np.linalg.norm(np.diff(found.path, axis=0), axis=1).sum()
    assert length < 1.6 * np.linalg.norm(GOAL - START)


def test_what_is_free_is_gone_straight(plate_checker):
    found = search(plate_checker(((50.0, 50.0, 40.0), (16.0, 16.0, 40.0))))
    assert found.path == pytest.approx(np.stack([START, GOAL])) and found.motions_checked == 1


def test_the_same_seed_gives_the_same_path(plate_checker):
    first, second, other = (search(plate_checker(PILLAR), seed=seed).path for seed in (3, 3, 4))
    assert np.array_equal(first, second)
    assert first.shape != other.shape or not np.allclose(first, other)


def test_of_several_goals_one_that_can_be_reached_is_taken(plate_checker):
    behind_the_wall, before_it = GOAL, np.array([1500.0, 4500.0])
    found = search(plate_checker(WALL), goals=(behind_the_wall, before_it))
    assert found.path[-1] == pytest.approx(before_it)


def test_no_path_is_not_found(plate_checker):
    assert search(plate_checker(WALL), seconds=0.5).path is None


def test_a_stop_ends_the_search(plate_checker):
    began = time.monotonic()
    checker = plate_checker(WALL, should_stop=lambda: time.monotonic() - began > 0.3)
    with pytest.raises(StoppedError):
        search(checker, seconds=600.0)


def test_what_fails_in_a_check_comes_out(plate_checker):
    def fails():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        search(plate_checker(PILLAR, should_stop=fails))


@pytest.mark.parametrize("change", [{"algorithm": "prm"}, {"seed": 0}, {"seconds": 0.0}])
def test_settings_that_make_no_sense_are_rejected(plate_checker, change):
    with pytest.raises(SoftformError, match="Invalid planner settings"):
        search(plate_checker(PILLAR), **change)
