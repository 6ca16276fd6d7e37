"""The action `follow_waypoints` of the node as a process: paths, rejections, every end, and who has the robot."""

import threading

import numpy as np
import pytest
from lifecycle_msgs.msg import Transition

from softform_client.client import (
    ActuatorPath,
    FollowCode,
    GoalFailedError,
    Mode,
    NotConnectedError,
    PointPath,
    ShapeClient,
    ShapePath,
)
from softform_interfaces.msg import DriverState

WAYPOINTS = np.array([[1000.0] * 9, [2000.0, *[500.0] * 8], [0.0] * 9])
SLEW_RATE = 4000.0

pytestmark = pytest.mark.usefixtures("fresh_robot")


@pytest.fixture(scope="module")
def node(start_node):
    one = start_node("settle_timeout:=4.0", "path_settle_time:=0.1", "sim_to_real:=none", "surface_points:=200")
    one.start()
    return one


def reshaped(result):
    return np.reshape(result.actuators.value, (-1, 9))


def test_a_path_of_actuator_values_is_followed_and_its_end_is_held(moving_client, stand_in, wait_for):
    seen = []
    result = moving_client.follow(ActuatorPath(WAYPOINTS[:2]), on_feedback=seen.append)
    assert reshaped(result) == pytest.approx(WAYPOINTS[:2])
    assert len(result.times) == len(result.measured_errors) == 2 and np.isnan(result.measured_errors).all()
    assert stand_in.values == pytest.approx(WAYPOINTS[1], abs=60.0)
    assert {one.stage for one in seen} == {"solving", "moving"} and seen[-1].waypoint <= 2
    commands = np.array(stand_in.commands)
    assert np.abs(np.diff(commands, axis=0)).max() <= 0.25 * SLEW_RATE, "commands are led, and not thrown"
    assert any((one == WAYPOINTS[0]).all() for one in commands)
    count = len(stand_in.commands)
    wait_for(lambda: len(stand_in.commands) > count + 5, "the end to be held")
    assert (stand_in.commands[-1] == WAYPOINTS[1]).all()


def test_a_path_of_shapes_is_planned_without_moving(client, stand_in, shape_of):
    hidden = [[500.0, 3000.0, 1000.0] * 3, [800.0, 2700.0, 1200.0] * 3]
    shapes = ShapePath(tuple(shape_of(values) for values in hidden))
    result = client.follow(shapes, plan_only=True, seed=np.full(9, 1000.0))
    assert reshaped(result) == pytest.approx(np.array(hidden), abs=100.0)
    assert max(result.errors) < 3e-4 and result.solve.solve_time > 0.0 and not result.solve.used_sim_to_real
    assert len(result.times) == 2 and not result.measured_errors and not stand_in.commands


def test_one_point_of_the_surface_is_led(moving_client, stand_in, pipeline, wait_for):
    middle = pipeline.at(np.array([[0.5, 0.5]]))
    places = np.array([middle.points(np.full(9, pressure))[0] for pressure in (1000.0, 1500.0)]) / 1000.0
    result = moving_client.follow(PointPath(places, np.array([0.5, 0.5])), times=[1.0, 2.0])
    assert max(result.errors) < 1e-4 and result.times == pytest.approx([1.0, 2.0], abs=0.3)

    def distance():
        return np.linalg.norm(middle.points(stand_in.values)[0] / 1000.0 - places[-1])

    wait_for(lambda: distance() < 1e-3, "the point to come where it was led")


def test_a_rejected_path_names_its_reason(client, stand_in):
    with pytest.raises(GoalFailedError, match=r"Waypoint 2.*outside") as rejection:
        client.follow(ActuatorPath([[0.0] * 9, [6000.0] * 9]))
    assert rejection.value.code == FollowCode.INVALID_PATH
    with pytest.raises(GoalFailedError, match=r"no later") as rejection:
        client.follow(ActuatorPath(WAYPOINTS), times=[1.0, 1.0, 2.0])
    assert rejection.value.code == FollowCode.INVALID_TIMES
    assert not stand_in.commands


def test_a_path_that_leaves_the_reach_moves_nothing(moving_client, stand_in, pipeline):
    middle = pipeline.at(np.array([[0.5, 0.5]]))
    start = middle.points(np.full(9, 1000.0))[0] / 1000.0
    path = PointPath(np.array([start, start + [0.0, 0.0, 0.5]]), np.array([0.5, 0.5]))
    before = len(stand_in.commands)
    with pytest.raises(GoalFailedError, match=r"waypoint 2 is out of reach.*direction") as failure:
        moving_client.follow(path)
    assert failure.value.code == FollowCode.UNREACHABLE and len(failure.value.result.errors) == 2
    assert len(stand_in.commands) == before
    assert len(moving_client.follow(path, plan_only=True, accept_unreachable=True).errors) == 2


def test_times_that_the_slew_rate_does_not_allow_move_nothing(moving_client, stand_in):
    with pytest.raises(GoalFailedError, match="Waypoint 1 is due 0.01 s after the start") as failure:
        moving_client.follow(ActuatorPath(WAYPOINTS), times=[0.01, 1.0, 2.0])
    assert failure.value.code == FollowCode.INVALID_TIMES
    assert stand_in.is_silent()


def followed_in_background(client, path, **options):
    """Follow in another thread; returns the thread and where its result or failure will be."""
    ended = []

    def follow():
        try:
            ended.append(client.follow(path, **options))
        except (GoalFailedError, NotConnectedError) as failure:
            ended.append(failure)

    thread = threading.Thread(target=follow)
    thread.start()
    return thread, ended


@pytest.fixture
def under_way(moving_client, stand_in, wait_for):
    """A slow path that has begun to move; returns its thread and where its end will be."""
    thread, ended = followed_in_background(moving_client, ActuatorPath([[3000.0] * 9, [0.0] * 9]), times=[20.0, 40.0])
    wait_for(lambda: stand_in.commands and stand_in.commands[-1][0] > 100.0, "the path to be under way")
    yield thread, ended
    moving_client.cancel()
    thread.join()


def test_cancelled_the_robot_stays_where_it_is(under_way, moving_client, stand_in, wait_for):
    thread, ended = under_way
    assert moving_client.cancel()
    thread.join()
    assert ended[0].code == FollowCode.CANCELLED and "0 of 2 waypoints" in str(ended[0])
    assert not stand_in.is_silent()
    assert 50.0 < stand_in.commands[-1][0] < 2900.0
    assert (stand_in.commands[-1] == stand_in.commands[-2]).all()


def test_a_newer_goal_of_either_action_takes_the_robot(under_way, stand_in, shape_of):
    thread, ended = under_way
    with ShapeClient(timeout=30.0) as other:
        result = other.reach(shape_of([1000.0] * 9), Mode.PLAN_AND_MOVE)
    thread.join()
    assert ended[0].code == FollowCode.PREEMPTED
    assert (stand_in.commands[-1] == np.asarray(result.actuators.value)).all()


def test_a_fault_of_the_driver_ends_the_path_and_is_not_resumed(under_way, stand_in, wait_for):
    thread, ended = under_way
    stand_in.announce(DriverState.FAULT, "burst hose")
    thread.join()
    assert ended[0].code == FollowCode.DRIVER_FAULT and len(ended[0].result.actuators.value) == 18
    wait_for(stand_in.is_silent, "the commands to end")
    stand_in.announce(DriverState.SAFE, "reset")
    assert stand_in.is_silent()


def test_deactivating_ends_the_path_and_the_commands(under_way, node, stand_in, wait_for):
    thread, ended = under_way
    assert node.change_state(Transition.TRANSITION_DEACTIVATE)
    thread.join()
    assert ended[0].code == FollowCode.NODE_DEACTIVATED
    wait_for(stand_in.is_silent, "the commands to end")
    assert node.change_state(Transition.TRANSITION_ACTIVATE)
    assert stand_in.is_silent()


def test_a_client_that_goes_away_leaves_the_path_to_others_that_listen(stand_in, moving_client, wait_for):
    """The module's client is one; test_ik_asked_node.py has the path that nobody listens to."""
    leaving = ShapeClient(timeout=30.0).connect()
    thread, ended = followed_in_background(leaving, ActuatorPath(WAYPOINTS[:1]), times=[1.5])
    wait_for(lambda: stand_in.commands, "the path to be under way")
    leaving.close()
    thread.join()
    assert isinstance(ended[0], NotConnectedError)
    wait_for(lambda: (stand_in.commands[-1] == WAYPOINTS[0]).all(), "the end of the path")
    assert not stand_in.is_silent()


def test_a_node_that_is_killed_commands_nothing_more(under_way, moving_client, node, stand_in):
    """The driver's watchdog then vents the robot; tests/test_follow.py sees it do so."""
    thread, ended = under_way
    node.process.kill()
    node.process.wait()
    assert stand_in.is_silent()
    moving_client.close()
    thread.join()
    assert isinstance(ended[0], NotConnectedError)
