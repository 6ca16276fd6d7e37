"""The node `motion_planner` as a process: plans, rejections with reasons, cancel, preemption, life cycle."""

import re
import threading

import numpy as np
import pytest
import trimesh
from lifecycle_msgs.msg import Transition

from softform_client.client import PlanCode as Code
from softform_client.plan_messages import PlanGoal, goal_to_message
from softform_core.forward.live_pipeline import LivePipeline
from softform_core.paths import models_dir
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M
from softform_interfaces.action import PlanToShape
from softform_interfaces.msg import DriverState
from softform_ros.action_caller import ActionCaller, NotConnectedError

START = np.array([3000.0, 500.0, 500.0, 500.0, 2500.0, 500.0, 500.0, 500.0, 3000.0])
GOAL = np.array([500.0, 3000.0, 500.0, 3000.0, 500.0, 3000.0, 500.0, 3000.0, 500.0])


@pytest.fixture(scope="module")
def node(start_node):
    one = start_node(
        f"sim_to_real:={models_dir() / 'membrane' / 'rig_default'}", "goal_starts:=200", name="motion_planner"
    )
    one.start()
    return one


@pytest.fixture(scope="module")
def real(robot):
    """The pipeline that the node plans with."""
    return LivePipeline(robot, 1681, sim_to_real=str(models_dir() / "membrane" / "rig_default")).current


@pytest.fixture(scope="module")
def caller(node):
    with ActionCaller(PlanToShape, "plan_to_shape", "motion_planner", "planner_client", timeout=30.0) as one:
        yield one


@pytest.fixture
def plan(caller, stand_in):
    stand_in.reset_behaviour()
    stand_in.announce(DriverState.SAFE, "waiting for commands")

    def call(goal, frame="membrane/base_link", on_feedback=None):
        return caller.call(goal_to_message(goal, frame, caller.now()), on_feedback)

    return call


def ball(radius=0.01, center=(0.0, 0.0, 0.12)):
    mesh = trimesh.creation.icosphere(2, radius)
    return Shape.from_mesh(mesh.vertices + np.asarray(center), mesh.faces)


def test_a_plan_leads_from_start_to_shape_and_moves_nothing(plan, stand_in, real):
    seen = []
    target = Shape(real.points(GOAL) / MM_PER_M)
    result = plan(PlanGoal(target, ball(), START, clearance=0.002, max_time=3.0), on_feedback=seen.append)
    assert result.error_code == Code.NONE and result.error_msg == ""
    values = np.array(result.actuators.value).reshape(-1, 9)
    # Where the shape is off by no more than its tolerance, a pressure of the 5 kPa may be off by so much.
    assert values[0] == pytest.approx(START) and values[-1] == pytest.approx(GOAL, abs=200.0)
    assert len(result.times) == len(result.clearances) == len(result.margins) == len(values)
    assert (np.diff(result.times) > 0.0).all() and result.times[0] == 0.0
    assert (np.array(result.clearances) >= np.array(result.margins)).all() and min(result.margins) > 0.002
    assert 0.0 <= result.solve.mean_error < 2e-4 and result.solve.max_error >= result.solve.mean_error
    assert result.solve.used_sim_to_real and result.states_checked > 0 and result.solve.solve_time > 0.0
    assert seen and seen[0].stage == "goal"
    assert stand_in.is_silent() and not stand_in.commands


def test_actuator_values_are_a_goal_and_the_robot_is_where_it_is(plan, stand_in, wait_for):
    wait_for(lambda: np.allclose(stand_in.values, 0.0), "the robot to be vented")
    result = plan(PlanGoal(GOAL, ball(), without_sim_to_real=True))
    assert result.error_code == Code.NONE and not result.solve.used_sim_to_real
    values = np.array(result.actuators.value).reshape(-1, 9)
    assert values[0] == pytest.approx(np.zeros(9)) and values[-1] == pytest.approx(GOAL)
    assert np.isnan(result.solve.mean_error) and np.isnan(result.solve.max_error)


def test_a_robot_that_says_nothing_has_no_start(plan, stand_in, wait_for):
    stand_in.publishes_values = False

    def rejected():
        return plan(PlanGoal(GOAL, ball())).error_code == Code.INVALID_START

    wait_for(rejected, "the values to count as lost")
    assert plan(PlanGoal(GOAL, ball(), START)).error_code == Code.NONE


def test_a_rejected_goal_names_its_code_and_reason(plan, stand_in, shape_of):
    nan = ball()
    nan.points[3] = np.nan
    cases = [
        (PlanGoal(GOAL, Shape(np.zeros((0, 3)))), Code.INVALID_OBSTACLES, "0 points"),
        (PlanGoal(GOAL, nan), Code.INVALID_OBSTACLES, "NaN"),
        (PlanGoal(GOAL, ball(10.0, (0.0, 0.0, 100.0))), Code.INVALID_OBSTACLES, "millimetres"),
        (PlanGoal(GOAL, ball(), clearance=-1.0), Code.INVALID_OBSTACLES, "clearance"),
        (PlanGoal(GOAL, ball(), clearance=5.0), Code.INVALID_OBSTACLES, "clearance"),
        (PlanGoal(GOAL, ball(), np.full(9, 9000.0)), Code.INVALID_START, "outside"),
        (PlanGoal(GOAL[:8], ball()), Code.INVALID_TARGET, "9 pressures"),
        (PlanGoal(np.full(9, np.nan), ball()), Code.INVALID_TARGET, "finite"),
        (PlanGoal(GOAL, ball(), max_time=float("nan")), Code.INVALID_TARGET, "max_time"),
        (PlanGoal(np.array([]), ball()), Code.INVALID_TARGET, "neither"),
        (PlanGoal(Shape(1000.0 * shape_of(GOAL).points), ball()), Code.INVALID_TARGET, "millimetres"),
    ]
    for goal, code, reason in cases:
        rejected = plan(goal)
        assert rejected.error_code == code and re.search(reason, rejected.error_msg)
    foreign = plan(PlanGoal(GOAL, ball()), frame="world")
    assert foreign.error_code == Code.INVALID_OBSTACLES and "TF knows no frame 'world'" in foreign.error_msg
    assert not stand_in.commands


def test_a_target_half_a_metre_away_is_unreachable(plan, shape_of):
    far = Shape(shape_of(GOAL).points + [0.0, 0.0, 0.5])
    result = plan(PlanGoal(far, ball(), START))
    assert result.error_code == Code.UNREACHABLE and "accept_unreachable" in result.error_msg
    accepted = PlanGoal(far, ball(), START, accept_unreachable=True, max_time=1.0)
    assert plan(accepted).error_code != Code.UNREACHABLE


def test_what_cannot_be_planned_has_its_code(plan, real):
    room = trimesh.creation.box(extents=(2.0, 2.0, 2.0))
    top = real.points(GOAL)
    at_goal = ball(center=top[top[:, 2].argmax()] / MM_PER_M)
    top = real.points(START)
    at_start = ball(center=top[top[:, 2].argmax()] / MM_PER_M)
    cases = [
        (Shape.from_mesh(room.vertices, room.faces), Code.INVALID_OBSTACLES),
        (at_start, Code.START_IN_COLLISION),
        (at_goal, Code.GOAL_IN_COLLISION),
    ]
    for obstacle, code in cases:
        result = plan(PlanGoal(GOAL, obstacle, START))
        assert result.error_code == code and result.error_msg and not result.actuators.value


def in_background(plan, goal):
    """Planning in another thread; returns it, what it brought, and when it had begun."""
    outcome, begun = [], threading.Event()
    thread = threading.Thread(target=lambda: outcome.append(plan(goal, on_feedback=lambda _: begun.set())))
    thread.start()
    assert begun.wait(30.0)
    return thread, outcome


@pytest.fixture
def slow_goal(shape_of):
    """Of a target of many points many solutions are looked for, in half of the 30 s: long enough to be cut off."""
    return PlanGoal(shape_of(GOAL).sample(20_000), ball(), START)


def test_cancelling_ends_planning(plan, caller, slow_goal):
    thread, outcome = in_background(plan, slow_goal)
    assert caller.cancel()
    thread.join()
    assert outcome[0].error_code == Code.CANCELLED and not outcome[0].actuators.value


def test_a_newer_goal_takes_the_place_of_the_older(plan, slow_goal):
    with ActionCaller(PlanToShape, "plan_to_shape", "motion_planner", "other_client", timeout=30.0) as other:
        thread, outcome = in_background(plan, slow_goal)
        newer = other.call(goal_to_message(PlanGoal(GOAL, ball(), START), "membrane/base_link", other.now()))
    thread.join()
    assert outcome[0].error_code == Code.PREEMPTED and newer.error_code == Code.NONE


def test_deactivating_ends_planning_and_rejects_more(node, plan, stand_in, slow_goal):
    thread, outcome = in_background(plan, slow_goal)
    assert node.change_state(Transition.TRANSITION_DEACTIVATE)
    thread.join()
    assert outcome[0].error_code == Code.NODE_DEACTIVATED
    inactive = plan(PlanGoal(GOAL, ball(), START))
    assert inactive.error_code == Code.NODE_DEACTIVATED and "not active" in inactive.error_msg
    assert node.change_state(Transition.TRANSITION_ACTIVATE)
    assert plan(PlanGoal(GOAL, ball(), START)).error_code == Code.NONE
    assert not stand_in.commands


def test_it_ends_in_the_middle_of_a_plan(node, plan, slow_goal):
    thread, outcome = in_background(_ended_by(plan), slow_goal)
    assert node.close() == 0
    thread.join()
    assert outcome == [None] or outcome[0].error_code == Code.NODE_DEACTIVATED


def _ended_by(plan):
    def call(goal, on_feedback):
        try:
            return plan(goal, on_feedback=on_feedback)
        except NotConnectedError:
            return None

    return call
