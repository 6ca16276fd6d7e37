"""Paths as messages: what is accepted survives the trip, what is not is rejected with a code and a reason."""

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point
from std_msgs.msg import Header

from softform_client.follow_messages import (
    MAX_WAYPOINTS,
    ActuatorPath,
    FollowGoal,
    PointPath,
    ShapePath,
    goal_from_message,
    goal_to_message,
)
from softform_core.forward.homing import homing_path
from softform_core.robots import load_robot
from softform_core.shapes.shape import Shape
from softform_interfaces.action import FollowWaypoints
from softform_interfaces.msg import ActuatorValues
from softform_ros.conversions import cloud_from_points, stamp_from_seconds
from softform_ros.goal_error import GoalCode, GoalError

NOW = 1_000_000.0
MIDDLE = np.array([0.5, 0.5])


@pytest.fixture(scope="module")
def fingers():
    return load_robot("planar_fingers", "tip")


def sheet(height=0.02):
    line = np.linspace(-0.15, 0.15, 6)
    return np.stack([*np.meshgrid(line, line, indexing="ij"), np.full((6, 6), height)], axis=-1).reshape(-1, 3)


def packed(path, stamp=None, **changes):
    message = goal_to_message(FollowGoal(path), "base_link", stamp or Time())
    for name, value in changes.items():
        given = ActuatorValues(value=value) if name == "seed" else value
        setattr(message if hasattr(message, name) else message.options, name, given)
    return message


def along_points(points=((0.0, 0.0, 0.03), (0.01, 0.0, 0.03)), uv=MIDDLE, **changes):
    return packed(PointPath(np.asarray(points, dtype=float), uv), **changes)


def along_shapes(*shapes, **changes):
    return packed(ShapePath(tuple(Shape(points) for points in shapes or (sheet(), sheet(0.03)))), **changes)


def along_values(values=((500.0,) * 9,) * 3, **changes):
    return packed(ActuatorPath(np.asarray(values)), **changes)


def unpack(message, robot):
    return goal_from_message(message, robot, "base_link", NOW, 60.0)


def test_the_way_home_needs_no_waypoints_and_takes_none(robot):
    home = FollowWaypoints.Goal(kind=FollowWaypoints.Goal.HOME)
    path = unpack(home, robot).path
    assert (path.values == homing_path(robot)).all() and len(path.values) > 9
    home.points = [Point(z=0.03)]
    with pytest.raises(GoalError, match="takes no waypoints") as caught:
        unpack(home, robot)
    assert caught.value.code == GoalCode.INVALID_PATH


def test_points_survive_the_trip(robot):
    path = PointPath(np.array([[0.0, 0.01, 0.03], [0.02, 0.0, 0.04]]), np.array([0.25, 0.75]))
    sent = FollowGoal(path, np.array([0.0, 2.5]), True, seed=np.full(9, 300.0), without_sim_to_real=True)
    got = unpack(goal_to_message(sent, "base_link", stamp_from_seconds(NOW - 30.0)), robot)
    assert (got.path.points == path.points).all() and (got.path.uv == path.uv).all()
    assert (got.times == sent.times).all() and (got.seed == 300.0).all()
    assert got.plan_only and got.without_sim_to_real


def test_a_named_point_survives_the_trip_and_goes_before_surface_parameters(fingers):
    arm = load_robot("compressible", "surface")
    for robot, place in ((arm, [0.1, 0.0, -0.8]), (fingers, [0.2, 0.1, 0.0])):
        got = unpack(packed(PointPath(np.array([place]), np.array([7.0, np.nan]), "tip")), robot)
        assert got.path.output == "tip" and (got.path.points == [place]).all()
        with pytest.raises(GoalError, match=r"no patch or frame 'elbow' .known: .*tip") as rejection:
            unpack(packed(PointPath(np.array([place]), output="elbow")), robot)
        assert rejection.value.code == GoalCode.INVALID_PATH


def test_shapes_survive_the_trip(robot):
    got = unpack(along_shapes(sheet(), sheet(0.03), stamp=stamp_from_seconds(NOW)), robot)
    assert len(got.path.shapes) == 2 and got.path.shapes[1].points == pytest.approx(sheet(0.03), abs=1e-7)
    assert got.times is None and got.seed is None and not got.plan_only and not got.without_sim_to_real


def test_actuator_values_survive_the_trip_and_need_no_frame(robot):
    values = np.random.default_rng(0).uniform(0.0, 5000.0, (4, 9))
    got = unpack(along_values(values, header=Header()), robot)
    assert (got.path.values == values).all()


def test_a_tip_is_led_whatever_the_surface_parameters(fingers):
    got = unpack(along_points([[0.2, 0.1, 0.0]], uv=np.array([7.0, np.nan])), fingers)
    assert (got.path.points == [[0.2, 0.1, 0.0]]).all()


BAD = [
    (lambda: along_points(kind=4), GoalCode.INVALID_PATH, "no kind of path 4"),
    (lambda: along_points(points=np.empty((0, 3))), GoalCode.INVALID_PATH, "empty"),
    (lambda: along_points(points=[[0.0, np.nan, 0.0]]), GoalCode.INVALID_PATH, "Waypoint 1 is NaN"),
    (
        lambda: along_points(points=[[0.0, 0.0, 0.0], [0.0, 0.0, 30.0]]),
        GoalCode.INVALID_PATH,
        "Waypoint 2 .* millim",
    ),
    (lambda: along_points(uv=np.array([1.5, 0.5])), GoalCode.INVALID_PATH, "u = 1.5"),
    (lambda: along_points(uv=np.array([np.nan, 0.5])), GoalCode.INVALID_PATH, "u = nan"),
    (lambda: along_points(header=Header(frame_id="world")), GoalCode.INVALID_PATH, "'world'"),
    (lambda: along_points(stamp=stamp_from_seconds(NOW - 61.0)), GoalCode.INVALID_PATH, "stale"),
    (lambda: along_points(stamp=stamp_from_seconds(NOW + 5.0)), GoalCode.INVALID_PATH, "future"),
    (lambda: along_points(times=[1.0]), GoalCode.INVALID_TIMES, "1 times for 2"),
    (lambda: along_points(times=[1.0, 1.0]), GoalCode.INVALID_TIMES, "no later"),
    (lambda: along_points(times=[-1.0, 1.0]), GoalCode.INVALID_TIMES, "-1 s"),
    (lambda: along_points(times=[0.0, float("inf")]), GoalCode.INVALID_TIMES, "finite"),
    (lambda: along_points(starts=5), GoalCode.INVALID_PATH, "does not take the option starts"),
    (lambda: along_points(seed=[1.0] * 4), GoalCode.INVALID_SEED, "9 pressures"),
    (lambda: along_points(seed=[6000.0] * 9), GoalCode.INVALID_SEED, "outside"),
    (lambda: along_shapes(shapes=[]), GoalCode.INVALID_PATH, "empty"),
    (lambda: along_shapes(sheet(), np.full((9, 3), np.nan)), GoalCode.INVALID_PATH, "Waypoint 2: .*NaN"),
    (lambda: along_shapes(sheet()[:3]), GoalCode.INVALID_PATH, "Waypoint 1: .*3 points"),
    (lambda: along_shapes(sheet() * 1000.0), GoalCode.INVALID_PATH, "Waypoint 1: .*millimetres"),
    (
        lambda: along_shapes(shapes=[cloud_from_points(sheet(), "scanner", Time())]),
        GoalCode.INVALID_PATH,
        "Waypoint 1: .*'scanner'",
    ),
    (lambda: along_values(np.empty((0, 9))), GoalCode.INVALID_PATH, "empty"),
    (lambda: along_values(np.ones(13)), GoalCode.INVALID_PATH, "13 values are no waypoints of 9"),
    (
        lambda: along_values([[500.0] * 9, [5500.0] * 9]),
        GoalCode.INVALID_PATH,
        "Waypoint 2: .*5500 Pa of c1 is out",
    ),
    (lambda: along_values([[np.nan] * 9]), GoalCode.INVALID_PATH, "Waypoint 1: .*not a finite"),
    (lambda: along_values([[-300.0] * 9]), GoalCode.INVALID_PATH, "outside"),
]


@pytest.mark.parametrize(("bad", "code", "reason"), BAD, ids=[reason for _, _, reason in BAD])
def test_bad_paths_are_rejected_with_a_reason(robot, bad, code, reason):
    with pytest.raises(GoalError, match=reason) as rejection:
        unpack(bad(), robot)
    assert rejection.value.code == code and rejection.value.next_step


def test_too_many_waypoints_are_rejected_before_they_are_unpacked(robot):
    many = MAX_WAYPOINTS + 1
    for message in (along_points(points=np.zeros((many, 3))), along_values(np.full((many, 9), 500.0))):
        with pytest.raises(GoalError, match=f"{many} waypoints"):
            unpack(message, robot)


def test_shapes_of_too_many_points_together_are_rejected_before_they_are_unpacked(robot):
    message = along_shapes()
    for cloud in message.shapes:
        cloud.width = 1_500_000
    with pytest.raises(GoalError, match="3000000 points together"):
        unpack(message, robot)


def test_a_robot_with_a_tip_takes_no_shapes_and_keeps_to_its_plane(fingers):
    with pytest.raises(GoalError, match="tip and no surface") as rejection:
        unpack(along_shapes(), fingers)
    assert rejection.value.code == GoalCode.INVALID_PATH and "POINTS" in rejection.value.next_step
    message = along_points()
    message.points = [Point(x=0.2, y=0.1, z=0.05)]
    with pytest.raises(GoalError, match="off the plane z = 0"):
        unpack(message, fingers)
