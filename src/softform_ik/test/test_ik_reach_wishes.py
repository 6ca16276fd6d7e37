"""What a goal may ask beside a whole target, and what its result says about reachability; planned without ROS."""

from types import SimpleNamespace

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from served_models import served

from softform_client.driver_watch import DriverWatch
from softform_client.reach_goal import Mode, ReachGoal
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M
from softform_ik.goals.reach_limit import ReachSettings
from softform_ik.reach.reach import Reach, result_to_message
from softform_ik.robot.stop_request import StopRequest
from softform_ros.goal_error import GoalCode

HIDDEN = np.array([4000.0, 500.0, 3000.0, 800.0, 2500.0, 1500.0, 200.0, 3500.0, 1000.0])
GRID_3X3 = np.stack(np.meshgrid([1 / 6, 0.5, 5 / 6], [1 / 6, 0.5, 5 / 6], indexing="ij"), axis=-1).reshape(-1, 2)


@pytest.fixture
def plan(robot, pipeline):
    """Plans a goal; `model_error` in mm."""

    def run(goal, stop=None, on_progress=lambda one: None, model_error=0.01, **settings):
        pipelines = served(current=pipeline, simulated=pipeline, mean_error_mm=lambda _: model_error)
        driver = DriverWatch(robot, 60.0)
        hardware = SimpleNamespace(given=lambda model: model, commands=lambda memory: driver.commands(memory, None))
        limits = ReachSettings(**{"tolerance": 1e-6, **settings})
        return Reach(robot, pipelines, limits, hardware).run(goal, stop or StopRequest(), on_progress)

    return run


def over_the_chambers(pipeline, values=HIDDEN):
    return FeaturePoints.of(GRID_3X3, pipeline.at(GRID_3X3).points(values) / MM_PER_M)


def test_feature_points_alone_are_planned_for(plan, pipeline, robot):
    outcome = plan(ReachGoal(None, Mode.PLAN_ONLY, features=over_the_chambers(pipeline)))
    assert outcome.code == GoalCode.NONE and outcome.reachable
    assert outcome.solution.actuation == pytest.approx(HIDDEN, abs=30.0)
    message = result_to_message(outcome, robot, "base_link", Time())
    assert (
        message.solve.reachable
        and list(message.solve.active_bounds) == [0] * 9
        and len(message.solve.weak_directions) == 0
    )
    assert message.solve.shape.width == len(pipeline.uv) and message.solve.max_error < 1e-4


def test_an_unreachable_target_is_said_to_be_one(plan, shape_of, robot):
    shape = shape_of(np.full(9, 4500.0))
    higher = Shape(shape.points * [1.0, 1.0, 2.0], None, shape.faces)
    outcome = plan(ReachGoal(higher, Mode.PLAN_ONLY))
    message = result_to_message(outcome, robot, "base_link", Time())
    assert outcome.code == GoalCode.NONE and not message.solve.reachable
    assert list(message.solve.active_bounds) == [1] * 9
    assert message.solve.unreachable_error > 0.005 and message.solve.mean_error > 0.005


@pytest.fixture(scope="session")
def noisy(shape_of):
    shape = shape_of(HIDDEN)
    noise = np.random.default_rng(0).normal(0.0, 2e-4, shape.points.shape)
    return Shape(shape.points + noise, None, shape.faces)


def test_within_the_models_own_error_a_target_counts_as_reached(plan, noisy):
    assert not plan(ReachGoal(noisy, Mode.PLAN_ONLY), model_error=0.01).reachable
    assert plan(ReachGoal(noisy, Mode.PLAN_ONLY), model_error=0.5).reachable
    assert plan(ReachGoal(noisy, Mode.PLAN_ONLY, tolerance=5e-4)).reachable


def test_a_global_search_tells_of_each_start_and_can_be_stopped(plan, noisy):
    told = []
    outcome = plan(ReachGoal(noisy, Mode.PLAN_ONLY, starts=20), on_progress=told.append)
    assert outcome.code == GoalCode.NONE and outcome.solution.actuation == pytest.approx(HIDDEN, abs=60.0)
    assert [one.iteration for one in told] == list(range(1, len(told) + 1)) and 3 <= len(told) < 20
    assert {one.stage for one in told} == {"solving"}
    stop = StopRequest()
    cut_short = plan(
        ReachGoal(noisy, Mode.PLAN_ONLY, starts=20),
        stop,
        lambda one: stop.request(GoalCode.CANCELLED) if one.iteration == 2 else None,
    )
    assert cut_short.code == GoalCode.CANCELLED and cut_short.solution.mean_error_mm < 0.3


def test_the_nodes_default_number_of_starts_holds_when_the_goal_does_not_say(plan, noisy):
    told = []
    plan(ReachGoal(noisy, Mode.PLAN_ONLY), on_progress=told.append, starts=4)
    assert [one.iteration for one in told][:2] == [1, 2]
    told.clear()
    plan(ReachGoal(noisy, Mode.PLAN_ONLY, starts=1), on_progress=told.append, starts=4)
    assert told[0].iteration == 0


def test_a_part_with_a_thing_on_it_is_planned_for_as_one(plan, pipeline, shape_of):
    shape = shape_of(HIDDEN).sample(4000)
    part = shape.points[shape.points[:, 0] < 0.05].copy()
    part[np.linalg.norm(part[:, :2] - [-0.08, 0.02], axis=1) < 0.035, 2] += 0.012
    target = Shape(part)
    errors = []
    for partial in (True, False):
        solution = plan(ReachGoal(target, Mode.PLAN_ONLY, partial=partial)).solution
        difference = pipeline.points(solution.actuation) - pipeline.points(HIDDEN)
        errors.append(np.linalg.norm(difference, axis=1)[pipeline.points(HIDDEN)[:, 0] < 50.0].mean())
    assert errors[0] < 0.15 and errors[0] < 0.5 * errors[1]


def test_a_preferred_posture_is_kept_as_far_as_the_target_allows(plan, pipeline):
    point = FeaturePoints.of(GRID_3X3[4:5], pipeline.at(GRID_3X3[4:5]).points(HIDDEN) / MM_PER_M)
    posture = np.linspace(200.0, 4800.0, 9)
    away = {}
    for preference in (0.001, 10.0):
        goal = ReachGoal(None, Mode.PLAN_ONLY, features=point, preferred=posture, preference=preference)
        outcome = plan(goal)
        away[preference] = np.abs(outcome.solution.actuation - posture).mean()
    assert away[10.0] < 500.0 and away[10.0] < away[0.001] < 2500.0
