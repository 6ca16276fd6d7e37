"""Goals as messages: what is accepted survives the trip, what is not is rejected with a code and a reason."""

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import Header

from softform_client.reach_goal import Mode, ReachGoal
from softform_client.reach_messages import goal_from_message, goal_to_message
from softform_core.robots import load_robot
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.shape import Shape
from softform_interfaces.msg import ActuatorValues
from softform_ros.conversions import stamp_from_seconds
from softform_ros.goal_error import GoalCode, GoalError

NOW = 1_000_000.0
CORNERS = FeaturePoints.of(
    [[0, 0], [0, 1], [1, 0], [1, 1]], 0.16 * np.array([[-1, -1, 0], [-1, 1, 0], [1, -1, 0], [1, 1, 0]])
)


def sheet(side=6):
    line = np.linspace(-0.15, 0.15, side)
    return np.stack([*np.meshgrid(line, line, indexing="ij"), np.full((side, side), 0.02)], axis=-1).reshape(-1, 3)


def message(points=None, stamp=None, **changes):
    target = Shape(sheet() if points is None else points)
    packed = goal_to_message(ReachGoal(target, Mode.PLAN_ONLY), "base_link", stamp or Time())
    for name, value in changes.items():
        given = ActuatorValues(value=value) if name in ("seed", "preferred") else value
        setattr(packed if hasattr(packed, name) else packed.options, name, given)
    return packed


def features_message(mode=Mode.PLAN_ONLY, fix_pose=True, partial=False, count=4, **changes):
    chosen = FeaturePoints(CORNERS.uv[:count], CORNERS.positions[:count], CORNERS.weights[:count])
    goal = ReachGoal(None, mode, fix_pose, features=chosen, partial=partial)
    packed = goal_to_message(goal, "base_link", Time())
    for name, value in changes.items():
        setattr(packed.features, name, value)
    return packed


def unpack(goal, robot):
    return goal_from_message(goal, robot, "base_link", NOW, 60.0)


SIDES = np.array([[0, 6, 7], [0, 7, 1]])
DOWN = np.tile([0.0, 0.0, -1.0], (36, 1))


@pytest.mark.parametrize(
    "target",
    [Shape(sheet(), None, SIDES[:, ::-1]), Shape(sheet(), DOWN)],
    ids=["mesh", "cloud with normals"],
)
def test_a_flat_target_upside_down_is_reported(robot, target):
    goal = goal_to_message(ReachGoal(target, Mode.PLAN_ONLY), "base_link", Time())
    with pytest.raises(GoalError, match="upside down.* reverse its triangles or normals") as rejection:
        unpack(goal, robot)
    assert rejection.value.code == GoalCode.INVALID_TARGET
    for takes in ({"accept_unreachable": True}, {"fix_pose": False}):
        unpack(goal_to_message(ReachGoal(target, Mode.PLAN_ONLY, **takes), "base_link", Time()), robot)


@pytest.mark.parametrize(
    "target",
    [Shape(sheet()), Shape(sheet(), -DOWN), Shape(sheet(), None, np.vstack([SIDES, SIDES[:, ::-1]]))],
    ids=["cloud", "cloud with normals", "both sides"],
)
def test_a_target_that_looks_up_or_to_no_side_passes(robot, target):
    unpack(goal_to_message(ReachGoal(target, Mode.PLAN_ONLY), "base_link", Time()), robot)


def test_a_goal_survives_the_trip(robot):
    points = sheet()
    mesh = Shape(points, None, np.array([[0, 6, 7], [0, 7, 1]]))
    sent = ReachGoal(
        mesh,
        Mode.CLOSED_LOOP,
        False,
        7,
        seed=np.full(9, 300.0),
        tolerance=0.002,
        max_time=1.5,
        without_sim_to_real=True,
    )
    got = unpack(goal_to_message(sent, "base_link", stamp_from_seconds(NOW - 30.0)), robot)
    assert np.allclose(got.target.points, points, atol=1e-7) and (got.target.faces == mesh.faces).all()
    assert (got.seed == 300.0).all()
    assert (got.mode, got.fix_pose, got.tolerance, got.max_time) == (Mode.CLOSED_LOOP, False, 0.002, 1.5)
    assert (got.max_rounds, got.without_sim_to_real) == (7, True)


def test_feature_points_and_wishes_survive_the_trip(robot):
    features = FeaturePoints.of([[0.0, 1.0], [0.5, 0.25]], [[0.1, 0.0, 0.02], [0.0, 0.05, 0.03]], [1.0, 4.0])
    wishes = {"partial": True, "starts": 12, "preferred": np.full(9, 100.0), "preference": 0.5}
    sent = ReachGoal(Shape(sheet()), Mode.PLAN_ONLY, features=features, **wishes)
    got = unpack(goal_to_message(sent, "base_link", stamp_from_seconds(NOW)), robot)
    for name in ("uv", "positions", "weights"):
        assert np.allclose(getattr(got.features, name), getattr(features, name))
    assert (got.partial, got.starts, got.preference) == (True, 12, 0.5) and (got.preferred == 100.0).all()


def test_points_of_frames_and_other_patches_are_named():
    arm = load_robot("compressible")
    features = FeaturePoints.of([[0.25, 0.5], [0.0, 0.0]], [[0.02, 0.0, 0.1], [0.0, 0.0, 0.2]], output=["skin", "tip"])
    sent = ReachGoal(None, Mode.PLAN_ONLY, features=features)
    message = goal_to_message(sent, "base_link", stamp_from_seconds(NOW))
    got = unpack(message, arm).features
    rim = arm.point_parameters("tip")
    assert len(got) == 2 and np.array_equal(got.uv, np.vstack([[[0.25, 0.5]], rim]))
    shares = got.anchors.shares @ got.anchors.places
    assert np.array_equal(shares.toarray(), [[1.0, *[0.0] * len(rim)], [0.0, *[1.0 / len(rim)] * len(rim)]])
    for output, reason in ((["skin"], "1 output"), (["skin", "elbow"], "no patch or frame 'elbow'")):
        message.features.output = output
        with pytest.raises(GoalError, match=reason):
            unpack(message, arm)


def test_feature_points_alone_are_a_goal_and_need_no_cloud(robot):
    sent = goal_to_message(ReachGoal(None, Mode.PLAN_AND_MOVE, features=CORNERS), "base_link", Time())
    sent.target = PointCloud2()
    sent.features.weight = []
    got = unpack(sent, robot)
    assert got.target is None and len(got.features) == 4 and (got.features.weights == 1.0).all()


def test_named_values_come_in_any_order(robot):
    goal, values = message(), np.arange(9.0) * 100.0
    goal.options.seed = ActuatorValues(name=robot.actuators[::-1], value=values[::-1].tolist(), unit="Pa")
    assert (unpack(goal, robot).seed == values).all()


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (ActuatorValues(value=[0.1] * 9, unit="kPa"), "in kPa, those of 'membrane' in Pa"),
        (ActuatorValues(name=["tendon"], value=[0.1]), "tendon are not those of 'membrane'"),
        (ActuatorValues(name=["c1"] * 9, value=[0.1] * 9), "Name each of"),
    ],
    ids=["unit", "name", "a name twice"],
)
def test_values_of_other_actuators_are_rejected(robot, given, reason):
    goal = message()
    goal.options.seed = given
    with pytest.raises(GoalError, match=reason) as rejection:
        unpack(goal, robot)
    assert rejection.value.code == GoalCode.INVALID_SEED


def test_a_cloud_without_stamp_or_seed_is_accepted(robot):
    got = unpack(message(), robot)
    assert got.target.faces is None and got.seed is None and got.mode is Mode.PLAN_ONLY


@pytest.mark.parametrize(
    ("bad", "code", "reason"),
    [
        (message(points=np.zeros((0, 3))), GoalCode.INVALID_TARGET, "0 points"),
        (message(points=sheet()[:3]), GoalCode.INVALID_TARGET, "3 points"),
        (message(points=np.full((9, 3), np.nan)), GoalCode.INVALID_TARGET, "NaN"),
        (message(points=np.zeros((9, 3))), GoalCode.INVALID_TARGET, "coincide"),
        (message(points=sheet() * 1000.0), GoalCode.INVALID_TARGET, "millimetres"),
        (message(points=sheet() / 1000.0), GoalCode.INVALID_TARGET, "twice"),
        (message(stamp=stamp_from_seconds(NOW - 61.0)), GoalCode.INVALID_TARGET, "stale"),
        (message(stamp=stamp_from_seconds(NOW + 5.0)), GoalCode.INVALID_TARGET, "future"),
        (message(mode=4), GoalCode.INVALID_TARGET, "no mode 4"),
        (message(tolerance=float("inf")), GoalCode.INVALID_TARGET, "tolerance"),
        (message(max_time=-1.0), GoalCode.INVALID_TARGET, "max_time"),
        (message(max_rounds=101), GoalCode.INVALID_TARGET, "max_rounds"),
        (message(seed=[0.0] * 4), GoalCode.INVALID_SEED, "9 pressures"),
        (message(seed=[-100.0] + [0.0] * 8), GoalCode.INVALID_SEED, "outside"),
        (message(seed=[float("nan")] * 9), GoalCode.INVALID_SEED, "finite"),
        (message(target=PointCloud2()), GoalCode.INVALID_TARGET, "frame ''"),
        (message(starts=1001), GoalCode.INVALID_TARGET, "starts"),
        (message(preference=float("nan")), GoalCode.INVALID_TARGET, "preference"),
        (message(preferred=[0.0] * 10), GoalCode.INVALID_SEED, "Preferred"),
        (message(preferred=[9e9] * 9), GoalCode.INVALID_SEED, "outside"),
        (features_message(u=[0.0]), GoalCode.INVALID_TARGET, "4 positions .* 1 u"),
        (features_message(position=[]), GoalCode.INVALID_TARGET, "0 positions"),
        (features_message(weight=[1.0]), GoalCode.INVALID_TARGET, "weights of 4"),
        (features_message(weight=[1.0, 1.0, -1.0, 1.0]), GoalCode.INVALID_TARGET, "positive weight"),
        (features_message(u=[0.0, 0.5, 1.5, 1.0]), GoalCode.INVALID_TARGET, "between 0 and 1"),
        (features_message(v=[0.0, float("nan"), 0.5, 1.0]), GoalCode.INVALID_TARGET, "NaN"),
        (features_message(position=[Point(z=30.0)] * 4), GoalCode.INVALID_TARGET, "millimetres"),
        (features_message(header=Header(frame_id="camera")), GoalCode.INVALID_TARGET, "'camera'"),
        (features_message(Mode.PLAN_MOVE_AND_VERIFY), GoalCode.INVALID_TARGET, "feature points alone"),
        (features_message(Mode.CLOSED_LOOP), GoalCode.INVALID_TARGET, "feature points alone"),
        (features_message(partial=True), GoalCode.INVALID_TARGET, "partial"),
        (features_message(fix_pose=False, count=2), GoalCode.INVALID_TARGET, "at least 3"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_bad_goals_are_rejected_with_a_reason(robot, bad, code, reason):
    with pytest.raises(GoalError, match=reason) as rejection:
        unpack(bad, robot)
    assert rejection.value.code == code and rejection.value.next_step


def test_five_million_points_are_rejected_before_they_are_unpacked(robot):
    goal = message()
    goal.target.width = 5_000_000
    with pytest.raises(GoalError, match="5000000 points"):
        unpack(goal, robot)


def test_a_truncated_cloud_is_rejected(robot):
    goal = message()
    goal.target.width += 10
    with pytest.raises(GoalError, match="truncated"):
        unpack(goal, robot)
