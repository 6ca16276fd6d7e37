import numpy as np
import pytest
import trimesh

from softform_core.planning.clearance import ClearanceGauge
from softform_core.planning.obstacles import MeshObstacle
from softform_core.planning.sweep import BENT, STEP_PART, MotionChecker, StoppedError

pytestmark = pytest.mark.slow

LEFT, RIGHT = np.array([0.0, 2500.0]), np.array([5000.0, 2500.0])


def test_nothing_is_tunnelled_through(plate_checker):
    """A foil of 0.05 mm in the way of a plate that is clear of it at every tenth of the way."""
    checker = plate_checker(((52.3, 50.0, 0.0), (0.05, 60.0, 60.0)))
    assert (checker.spare(np.stack([LEFT, RIGHT])) > 0.0).all()
    assert not checker.is_clear(LEFT, RIGHT)
    assert not checker.is_clear(RIGHT, LEFT)


def test_a_narrow_passage_is_passed(plate_checker):
    """The plate is 20 mm wide, its margin 1 mm, and the gap 22.8 mm."""
    gap = ((50.0, 50.0 + 31.4, 0.0), (30.0, 40.0, 40.0)), ((50.0, 50.0 - 31.4, 0.0), (30.0, 40.0, 40.0))
    assert plate_checker(*gap).is_clear(LEFT, RIGHT)
    assert not plate_checker(*gap, clearance=1.3).is_clear(LEFT, RIGHT)


def test_a_motion_that_is_clear_keeps_its_margin_all_the_way(surface, robot):
    generator = np.random.default_rng(7)
    ball = trimesh.creation.icosphere(3, 12.0)
    gauge = ClearanceGauge(
        MeshObstacle(ball.vertices + [20.0, 10.0, 68.0], ball.faces),
        np.array([[-160.0] * 3, [160.0] * 3]),
        surface.faces,
        1.0,
    )
    checker = MotionChecker(surface, gauge, robot.actuation_max - robot.actuation_min, lambda: False)
    outcomes = []
    for _ in range(12):
        start, end = generator.uniform(robot.actuation_min, robot.actuation_max, (2, 9))
        clear = checker.is_clear(start, end)
        spare = gauge.spare(surface.at(np.linspace(start, end, 60)))
        outcomes.append(clear)
        if clear:
            assert (spare >= 0.0).all()
        else:
            assert spare.min() < 1.0
    assert 2 <= sum(outcomes) <= 10


def test_points_move_almost_straight(surface, robot):
    generator = np.random.default_rng(8)
    reach = STEP_PART * (robot.actuation_max - robot.actuation_min)
    for _ in range(15):
        start = generator.uniform(robot.actuation_min, robot.actuation_max)
        end = np.clip(start + generator.uniform(-reach, reach), robot.actuation_min, robot.actuation_max)
        points = surface.pipeline.points(np.linspace(start, end, 9))
        way = np.linalg.norm(np.diff(points, axis=0), axis=2).sum(axis=0).max()
        assert way < (1.0 + 0.1 * (BENT - 1.0)) * np.linalg.norm(points[-1] - points[0], axis=1).max()


def test_a_check_is_stopped_between_states(plate_checker):
    asked = []

    def should_stop():
        asked.append(True)
        return len(asked) > 2

    checker = plate_checker(((50.0, 50.0, 14.0), (5.0, 5.0, 20.0)), should_stop=should_stop)
    with pytest.raises(StoppedError):
        checker.is_clear(LEFT, RIGHT)
    assert checker.states_checked <= 8
