"""The node as a process: all modes, rejections with reasons, cancel, preemption, faults, orderly ends."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from lifecycle_msgs.msg import Transition
from scipy.spatial.transform import Rotation
from tf2_msgs.msg import TFMessage

from softform_client.client import Code, GoalFailedError, Mode, NotConnectedError, ShapeClient
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_core.networks.store import FORWARD_KINEMATICS
from softform_core.paths import models_dir
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M
from softform_interfaces.msg import DriverState
from softform_ros import qos
from softform_ros.background_node import BackgroundNode
from softform_ros.frames import StaticFrames, transform_message

HIDDEN = np.array([4000.0, 500.0, 3000.0, 800.0, 2500.0, 1500.0, 200.0, 3500.0, 1000.0])

pytestmark = pytest.mark.usefixtures("fresh_robot")


@pytest.fixture(scope="module")
def node(start_node):
    one = start_node("settle_timeout:=4.0", "capture_timeout:=3.0", "sim_to_real:=none")
    one.start()
    return one


def test_plan_only_finds_the_actuation_and_moves_nothing(client, stand_in, shape_of):
    seen = []
    result = client.reach(shape_of(HIDDEN), tolerance=1e-6, on_feedback=seen.append)
    assert np.asarray(result.actuators.value) == pytest.approx(HIDDEN, abs=30.0)
    assert result.error_code == Code.NONE and result.error_msg == "" and not result.measured.valid
    assert result.solve.mean_error < 2e-5 and result.solve.iterations >= 1 and result.solve.solve_time > 0.0
    assert len(result.solve.error_history) == result.solve.iterations + 1 and "error" in result.solve.termination
    assert result.solve.target_pose.orientation.w == 1.0 and result.solve.shape.header.frame_id == "membrane/base_link"
    assert seen and seen[0].stage == "solving" and len(seen[0].actuators.value) == 9
    assert stand_in.is_silent() and not stand_in.commands


def test_what_a_callback_raises_comes_out_of_the_call_and_the_connection_lives_on(client, stand_in, shape_of):
    def misspelt(feedback):
        raise KeyError("typo")

    with pytest.raises(KeyError, match="typo"):
        client.reach(shape_of(HIDDEN), Mode.PLAN_AND_MOVE, on_feedback=misspelt)
    nested = []

    def ask_again(feedback):
        try:
            client.reach(shape_of(HIDDEN))
        except SoftformError as error:
            nested.append(str(error))

    assert client.reach(shape_of(HIDDEN), on_feedback=ask_again).error_code == Code.NONE
    assert "inside `on_feedback`" in nested[0]


def test_free_pose_is_returned_with_the_shape(client, shape_of):
    moved = shape_of(HIDDEN).transformed(np.eye(3), np.array([0.02, -0.01, 0.03]))
    result = client.reach(moved, fix_pose=False, tolerance=1e-6)
    assert result.solve.mean_error < 1e-4
    position = result.solve.target_pose.position
    assert [position.x, position.y, position.z] == pytest.approx([-0.02, 0.01, -0.03], abs=1e-3)


def test_moving_settles_and_goes_on_holding_the_shape(client, stand_in, shape_of, wait_for):
    seen = []
    result = client.reach(shape_of(HIDDEN), Mode.PLAN_AND_MOVE, tolerance=1e-6, on_feedback=seen.append)
    assert [one.stage for one in seen][-2:] == ["moving", "settling"]
    assert stand_in.values == pytest.approx(np.asarray(result.actuators.value), abs=60.0)
    count = len(stand_in.commands)
    wait_for(lambda: len(stand_in.commands) > count + 5, "the held command to be repeated")
    assert (stand_in.commands[-1] == np.asarray(result.actuators.value)).all()
    assert not result.measured.valid


def test_feature_points_alone_move_the_robot_where_they_are_wanted(client, stand_in, pipeline):
    uv = np.stack(np.meshgrid([1 / 6, 0.5, 5 / 6], [1 / 6, 0.5, 5 / 6], indexing="ij"), axis=-1).reshape(-1, 2)
    features = FeaturePoints.of(uv, pipeline.at(uv).points(HIDDEN) / MM_PER_M)
    result = client.reach(mode=Mode.PLAN_AND_MOVE, features=features, starts=3, tolerance=1e-6)
    assert stand_in.values == pytest.approx(HIDDEN, abs=60.0)
    assert (
        result.solve.reachable and list(result.solve.active_bounds) == [0] * 9 and result.solve.unreachable_error < 1e-5
    )
    before = len(stand_in.commands)
    with pytest.raises(GoalFailedError, match="between 0 and 1"):
        client.reach(features=FeaturePoints(uv * 320.0, features.positions, features.weights))
    with pytest.raises(GoalFailedError, match="feature points alone"):
        client.reach(mode=Mode.CLOSED_LOOP, features=features)
    assert all((command == np.asarray(result.actuators.value)).all() for command in stand_in.commands[before:])


@pytest.mark.parametrize("offset", [0.0, 0.003])
def test_verifying_measures_the_captured_shape(client, stand_in, shape_of, offset):
    stand_in.scan_offset = offset
    result = client.reach(shape_of(HIDDEN), Mode.PLAN_MOVE_AND_VERIFY, tolerance=1e-6)
    assert result.measured.valid and len(result.measured.shape.data) > 0
    # The stand-in counts as settled within 50 Pa, about half a millimetre.
    assert result.measured.mean_error == pytest.approx(0.9 * offset, abs=0.0006)
    assert result.measured.max_error >= result.measured.mean_error


def test_a_rejected_goal_names_its_reason(client, stand_in, shape_of):
    target = shape_of(HIDDEN)
    bad = target.points.copy()
    bad[7] = np.nan
    cases = [
        (Shape(bad), {}, "NaN"),
        (Shape(np.zeros((0, 3))), {}, "0 points"),
        (Shape(target.points[:3]), {}, "3 points"),
        (Shape(target.points * 1000.0), {}, "millimetres"),
        (replace(target, faces=target.faces + len(target.points)), {}, "face"),
        (target, {"seed": np.zeros(8)}, "9 pressures"),
        (target, {"seed": np.full(9, 6000.0)}, "outside"),
        (target, {"seed": np.full(9, np.nan)}, "not a finite number"),
        (target, {"tolerance": -1.0}, "tolerance"),
        (target, {"max_time": float("nan")}, "max_time"),
    ]
    for shape, options, reason in cases:
        with pytest.raises(GoalFailedError, match=reason):
            client.reach(shape, **options)
    assert not stand_in.commands
    assert client.reach(target).error_code == Code.NONE


def test_a_bad_goal_preempts_nothing(moving_client, stand_in, shape_of):
    stand_in.part_a_tick = 0.1
    rejections = []

    def send_a_bad_one():
        with ShapeClient(timeout=30.0) as second, pytest.raises(GoalFailedError) as rejection:
            second.reach(shape_of(HIDDEN), Mode.PLAN_AND_MOVE, seed=np.zeros(8))
        rejections.append(rejection.value)

    sender = threading.Thread(target=send_a_bad_one, daemon=True)
    result = moving_client.reach(
        shape_of(HIDDEN),
        Mode.PLAN_AND_MOVE,
        on_feedback=lambda feedback: feedback.stage == "settling" and not sender.is_alive() and sender.start(),
    )
    sender.join(timeout=30.0)
    assert result.error_code == Code.NONE and rejections[0].code == Code.INVALID_SEED


def test_a_target_half_a_metre_away_moves_nothing_unless_it_is_accepted(moving_client, stand_in, shape_of):
    mesh = shape_of(HIDDEN)
    far = replace(mesh, points=mesh.points + [0.0, 0.0, 0.5])
    before = len(stand_in.commands)
    for mode in (Mode.PLAN_ONLY, Mode.PLAN_AND_MOVE, Mode.CLOSED_LOOP):
        with pytest.raises(GoalFailedError, match=r"mm away in the direction \(-?0.00, -?0.00, 1.00\)") as failure:
            moving_client.reach(far, mode)
        assert failure.value.code == Code.UNREACHABLE
        assert failure.value.result.solve.mean_error > 0.3
    assert len(stand_in.commands) == before
    result = moving_client.reach(far, Mode.PLAN_AND_MOVE, accept_unreachable=True)
    assert result.error_code == Code.NONE and len(stand_in.commands) > before


def test_a_frame_that_tf_does_not_know_is_rejected(node, shape_of):
    with ShapeClient(frame="world", timeout=30.0) as client, pytest.raises(GoalFailedError, match="no frame 'world'"):
        client.reach(shape_of(HIDDEN))


@pytest.mark.parametrize(
    ("frame", "said"), [("old_camera", "was last published"), ("egg", "each other: egg in hen in egg")]
)
def test_frames_that_are_stale_or_stand_in_each_other_are_rejected(client, shape_of, wait_for, frame, said):
    place, hour_ago = RigidTransform(np.eye(3), np.zeros(3)), time.time() - 3600.0
    pairs = (("membrane/base_link", "old_camera"), ("hen", "egg"), ("egg", "hen"))
    message = TFMessage(transforms=[transform_message(*pair, hour_ago, place) for pair in pairs])
    with BackgroundNode("camera", "/lab") as camera, ShapeClient(frame=frame, timeout=30.0) as planner:
        frames = camera.create_publisher(TFMessage, "/tf", qos.TF)

        def is_told():
            frames.publish(message)
            with pytest.raises(GoalFailedError) as rejection:
                planner.reach(shape_of(HIDDEN))
            assert rejection.value.code == Code.INVALID_TARGET
            return said in str(rejection.value)

        wait_for(is_told, said)


def test_a_cloud_in_a_cameras_frame_is_reached_as_in_the_robots(client, shape_of, wait_for):
    place = RigidTransform(Rotation.from_euler("xyz", [2.8, 0.3, 1.0]).as_matrix(), np.array([0.05, -0.2, 0.6]))
    target = shape_of(HIDDEN)
    seen = Shape.from_cloud(place.apply_inverse(target.points))
    expected = client.reach(Shape.from_cloud(target.points), tolerance=1e-6)
    with BackgroundNode("camera", "/lab") as camera, ShapeClient(frame="camera_optical", timeout=30.0) as planner:
        StaticFrames(camera).tell("membrane/base_link", "camera_optical", place)

        def is_known():
            try:
                return planner.reach(seen, max_time=1e-6, accept_unreachable=True) is not None
            except GoalFailedError as error:
                assert "no frame 'camera_optical'" in str(error)
                return False

        wait_for(is_known, "the node to hear of the camera")
        result = planner.reach(seen, tolerance=1e-6)
        wanted = place.apply_inverse(np.array([[0.0, 0.0, 0.03]]))
        features = FeaturePoints(np.array([[0.5, 0.5]]), wanted, np.ones(1))
        reached = planner.reach(features=features)
    assert np.asarray(result.actuators.value) == pytest.approx(HIDDEN, abs=30.0)
    assert np.asarray(result.actuators.value) == pytest.approx(np.asarray(expected.actuators.value), abs=5.0)
    assert reached.solve.mean_error < 1e-4


def test_a_driver_at_fault_rejects_moves_but_not_plans(client, stand_in, shape_of, wait_for):
    stand_in.announce(DriverState.FAULT, "stopped by the operator")

    def rejected():
        try:
            client.reach(shape_of(HIDDEN), Mode.PLAN_AND_MOVE)
        except GoalFailedError as error:
            return error.code == Code.DRIVER_FAULT and "stopped by the operator" in str(error)

    wait_for(rejected, "the rejection to name the fault")
    assert not stand_in.commands
    assert client.reach(shape_of(HIDDEN)).error_code == Code.NONE


def test_a_silent_driver_is_not_moved(client, stand_in, shape_of, wait_for):
    stand_in.publishes_values = False

    def rejected():
        try:
            client.reach(shape_of(HIDDEN), Mode.PLAN_AND_MOVE, max_time=0.1)
        except GoalFailedError as error:
            return "actuator_state" in str(error)

    wait_for(rejected, "the rejection to name actuator_state")


def test_cancel_gives_the_best_so_far_and_stops_the_robot_where_it_is(moving_client, stand_in, shape_of, wait_for):
    stand_in.part_a_tick = 0.02
    settling = threading.Event()

    def cancel_when_settling(feedback):
        if feedback.stage == "settling":
            settling.set()

    canceller = threading.Thread(target=lambda: settling.wait(30.0) and moving_client.cancel())
    canceller.start()
    with pytest.raises(GoalFailedError) as failure:
        moving_client.reach(shape_of(HIDDEN), Mode.PLAN_AND_MOVE, on_feedback=cancel_when_settling)
    canceller.join()
    assert failure.value.code == Code.CANCELLED
    assert np.asarray(failure.value.result.actuators.value) == pytest.approx(HIDDEN, abs=300.0)
    wait_for(
        lambda: stand_in.commands and stand_in.commands[-1].max() < 0.8 * HIDDEN.max(),
        "the robot to be held where it was",
    )
    assert not stand_in.is_silent()


def test_a_new_goal_preempts_the_old_one(moving_client, stand_in, shape_of, wait_for):
    stand_in.part_a_tick = 0.001
    settling, old = threading.Event(), []

    def first():
        try:
            old.append(
                moving_client.reach(
                    shape_of(HIDDEN),
                    Mode.PLAN_AND_MOVE,
                    on_feedback=lambda feedback: feedback.stage == "settling" and settling.set(),
                )
            )
        except GoalFailedError as error:
            old.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    assert settling.wait(30.0)
    with ShapeClient(timeout=30.0) as second:
        newer = second.reach(shape_of(HIDDEN[::-1]), tolerance=1e-6)
    thread.join()
    assert isinstance(old[0], GoalFailedError) and old[0].code == Code.PREEMPTED
    assert np.asarray(newer.actuators.value) == pytest.approx(HIDDEN[::-1], abs=30.0)


def test_a_fault_while_moving_ends_the_goal_and_is_not_resumed(moving_client, stand_in, shape_of, wait_for):
    stand_in.part_a_tick = 0.01
    with pytest.raises(GoalFailedError, match="burst hose") as failure:
        moving_client.reach(
            shape_of(HIDDEN),
            Mode.PLAN_AND_MOVE,
            on_feedback=lambda feedback: (
                feedback.stage == "settling" and stand_in.announce(DriverState.FAULT, "burst hose")
            ),
        )
    assert failure.value.code == Code.DRIVER_FAULT
    wait_for(lambda: stand_in.is_silent(), "the commands to end")
    stand_in.announce(DriverState.SAFE, "reset")
    assert stand_in.is_silent()


def test_a_robot_that_does_not_settle_is_reported(moving_client, stand_in, shape_of, wait_for):
    stand_in.part_a_tick = 0.001
    with pytest.raises(GoalFailedError, match="did not settle within 4 s: c1 is -") as failure:
        moving_client.reach(shape_of(HIDDEN), Mode.PLAN_AND_MOVE)
    assert failure.value.code == Code.SETTLE_TIMEOUT


def test_without_captures_the_verification_times_out(moving_client, stand_in, shape_of, wait_for):
    stand_in.scans = False
    with pytest.raises(GoalFailedError, match="No cloud captured") as failure:
        moving_client.reach(shape_of(HIDDEN), Mode.PLAN_MOVE_AND_VERIFY)
    assert failure.value.code == Code.CAPTURE_TIMEOUT
    assert not stand_in.is_silent()


def test_a_capture_in_another_frame_is_not_compared(moving_client, stand_in, shape_of, wait_for):
    stand_in.scan_frame = "scanner"
    with pytest.raises(GoalFailedError, match="'scanner'") as failure:
        moving_client.reach(shape_of(HIDDEN), Mode.PLAN_MOVE_AND_VERIFY)
    assert failure.value.code == Code.CAPTURE_INVALID


def test_deactivating_ends_goal_and_commands(node, moving_client, stand_in, shape_of, wait_for):
    stand_in.part_a_tick = 0.001
    with pytest.raises(GoalFailedError) as failure:
        moving_client.reach(
            shape_of(HIDDEN),
            Mode.PLAN_AND_MOVE,
            on_feedback=lambda feedback: (
                feedback.stage == "settling"
                and threading.Thread(
                    target=node.change_state, args=(Transition.TRANSITION_DEACTIVATE,), daemon=True
                ).start()
            ),
        )
    assert failure.value.code == Code.NODE_DEACTIVATED
    wait_for(lambda: stand_in.is_silent(), "the commands to end")
    with pytest.raises(GoalFailedError, match="not active"):
        moving_client.reach(shape_of(HIDDEN))
    assert node.change_state(Transition.TRANSITION_CLEANUP)
    node.start()
    wait_for(lambda: moving_client.is_served, "the action to come back")
    assert moving_client.reach(shape_of(HIDDEN)).error_code == Code.NONE


def test_sigterm_during_a_move_ends_the_process_in_order(start_node, moving_client, node, stand_in, shape_of, wait_for):
    stand_in.part_a_tick = 0.001
    with pytest.raises((NotConnectedError, GoalFailedError)):
        moving_client.reach(
            shape_of(HIDDEN),
            Mode.PLAN_AND_MOVE,
            on_feedback=lambda feedback: feedback.stage == "settling" and node.process.terminate(),
        )
    assert node.process.wait(timeout=30.0) == 0
    assert not any("Traceback" in line for line in node.log), "".join(node.log)


def test_a_missing_node_is_reported():
    with pytest.raises(NotConnectedError, match="No inverse_kinematics node"):
        ShapeClient(namespace="/elsewhere", timeout=0.5).connect()
    with pytest.raises(NotConnectedError, match="not connected"):
        ShapeClient().reach(Shape(np.zeros((4, 3))))


@pytest.fixture
def model_of_another_robot(tmp_path):
    for file in (models_dir() / "membrane").glob("forward_kinematics.*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    card = tmp_path / FORWARD_KINEMATICS.card_file
    card.write_text(card.read_text().replace('"robot": "membrane"', '"robot": "mannequin"'))
    return tmp_path


def test_the_model_of_another_robot_fails_configure_with_the_reason(start_node, model_of_another_robot, wait_for):
    node = start_node(f"model_folder:={model_of_another_robot}")
    assert not node.change_state(Transition.TRANSITION_CONFIGURE)
    wait_for(lambda: any("configure failed" in line for line in node.log), "the reason in the log")
    assert any("trained for robot 'mannequin'" in line for line in node.log), "".join(node.log)
    assert node.close() == 0
