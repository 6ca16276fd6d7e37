"""The action `capture_shape` of the node as a process: fits, frames, reasons; the robot is never moved."""

import threading

import numpy as np
import pytest

from softform_client.client import CaptureCode, GoalFailedError, Mode, ShapeClient
from softform_core.geometry.rigid import RigidTransform
from softform_core.shapes.shape import Shape
from softform_interfaces.msg import DriverState
from softform_ros.background_node import BackgroundNode
from softform_ros.conversions import points_from_cloud
from softform_ros.frames import StaticFrames

HIDDEN = np.array([4000.0, 500.0, 3000.0, 800.0, 2500.0, 1500.0, 200.0, 3500.0, 1000.0])
LIFT = 0.003

pytestmark = pytest.mark.usefixtures("fresh_robot")


@pytest.fixture(scope="module")
def node(start_node):
    one = start_node("settle_timeout:=4.0", "capture_timeout:=2.0", "sim_to_real:=none")
    one.start()
    return one


@pytest.fixture
def held(moving_client, shape_of, stand_in):
    """A client of a robot that holds a shape."""
    moving_client.reach(shape_of(HIDDEN), Mode.PLAN_AND_MOVE, tolerance=1e-6)
    return moving_client


def test_a_held_shape_is_captured_and_goes_on_being_held(held, stand_in, shape_of):
    holding = stand_in.commands[-1]
    count = len(stand_in.commands)
    stages = []
    result = held.capture(on_feedback=lambda feedback: stages.append(feedback.stage))
    assert result.error_code == CaptureCode.NONE and result.error_msg == "" and stages == ["settling", "capturing"]
    assert result.cloud.header.frame_id == "membrane/base_link"
    assert np.array(result.actuators.value) == pytest.approx(HIDDEN, abs=60.0) and result.actuators.unit == "Pa"
    # The stand-in counts as settled within 50 Pa, about half a millimetre.
    assert result.measured.valid and result.measured.mean_error < 6e-4
    stand_in.scan_offset = LIFT
    lifted = held.capture(shape_of(HIDDEN), captures=3)
    assert lifted.measured.mean_error == pytest.approx(0.9 * LIFT, abs=6e-4)
    assert len(points_from_cloud(lifted.cloud)) == 3 * len(points_from_cloud(result.cloud))
    assert all((command == holding).all() for command in stand_in.commands[count:])


def test_a_robot_at_rest_is_captured_without_a_command(client, stand_in):
    result = client.capture()
    assert result.measured.mean_error < 6e-4 and np.abs(result.actuators.value).max() < 60.0
    assert points_from_cloud(result.cloud)[:, 2] == pytest.approx(0.0, abs=0.005)
    assert not stand_in.commands and stand_in.holder == ""


def test_a_capture_comes_back_in_the_robots_frame(held, stand_in, shape_of, wait_for):
    stand_in.scan_frame = "lifted_scanner"
    with BackgroundNode("scanner_place", "/lab") as other:
        StaticFrames(other).tell(
            "membrane/base_link", "lifted_scanner", RigidTransform(np.eye(3), np.array([0.0, 0.0, LIFT]))
        )

        def is_known():
            try:
                return held.capture() is not None
            except GoalFailedError as error:
                assert "no frame 'lifted_scanner'" in str(error)
                return False

        wait_for(is_known, "the node to hear of the scanner")
        result = held.capture(shape_of(HIDDEN))
    assert result.cloud.header.frame_id == "membrane/base_link"
    assert result.measured.mean_error == pytest.approx(0.9 * LIFT, abs=6e-4)


def test_markers_are_captured_where_motion_capture_is_asked_for(held, stand_in, shape_of):
    result = held.capture(via="mocap")
    assert result.markers.header.frame_id == "membrane/base_link" and result.cloud.width == 0
    assert len(result.markers.name) == 48 and "m1" not in result.markers.name and all(result.markers.visible)
    assert result.measured.mean_error < 6e-4
    stand_in.scan_offset = LIFT
    lifted = held.capture(shape_of(HIDDEN), via="mocap", captures=3)
    assert lifted.measured.mean_error == pytest.approx(0.9 * LIFT, abs=6e-4)
    stand_in.scan_offset = 0.5
    with pytest.raises(GoalFailedError, match=r"0\.4\d\d m from where the robot is predicted") as failure:
        held.capture(via="mocap")
    assert failure.value.code == CaptureCode.CAPTURE_INVALID


def test_a_bad_goal_names_its_reason(client, stand_in, shape_of):
    target = shape_of(HIDDEN)
    cases = [
        (Shape(np.full((50, 3), np.nan)), {}, CaptureCode.INVALID_TARGET, "NaN"),
        (Shape(target.points * 1000.0), {}, CaptureCode.INVALID_TARGET, "millimetres"),
        (Shape(target.points[:3]), {}, CaptureCode.INVALID_TARGET, "3 points"),
        (target, {"via": "radar"}, CaptureCode.INVALID_DEVICE, "not captured via 'radar'.*scanner or mocap"),
        (target, {"captures": 21}, CaptureCode.INVALID_CAPTURES, "captures is 21"),
    ]
    for shape, options, code, reason in cases:
        with pytest.raises(GoalFailedError, match=reason) as failure:
            client.capture(shape, **options)
        assert failure.value.code == code


@pytest.mark.parametrize(
    ("behaviour", "code", "reason"),
    [
        ({"scans": False}, CaptureCode.CAPTURE_TIMEOUT, "No cloud captured after"),
        ({"scan_offset": 0.04}, CaptureCode.CAPTURE_INVALID, "on average"),
        ({"scan_frame": "nowhere"}, CaptureCode.CAPTURE_INVALID, "no frame 'nowhere'"),
        ({"publishes_values": False}, CaptureCode.DRIVER_NOT_READY, "actuator_state"),
    ],
    ids=["no scans", "lifted", "unknown frame", "silent driver"],
)
def test_what_goes_wrong_has_its_code(held, stand_in, wait_for, behaviour, code, reason):
    for name, value in behaviour.items():
        setattr(stand_in, name, value)

    def failed():
        try:
            held.capture()
        except GoalFailedError as error:
            return reason in str(error) and error.code == code

    wait_for(failed, f"the capture to fail with {code}")


def test_a_robot_that_moves_is_not_captured(held, stand_in, shape_of):
    stand_in.part_a_tick = 0.001
    started = threading.Event()

    def move():
        with pytest.raises(GoalFailedError, match="did not settle"):
            held.reach(
                shape_of(HIDDEN[::-1]),
                Mode.PLAN_AND_MOVE,
                on_feedback=lambda feedback: feedback.stage == "settling" and started.set(),
            )

    mover = threading.Thread(target=move)
    mover.start()
    with ShapeClient(timeout=30.0) as second, pytest.raises(GoalFailedError, match="did not stand still") as failure:
        assert started.wait(30.0)
        second.capture()
    mover.join()
    assert failure.value.code == CaptureCode.SETTLE_TIMEOUT


def test_a_driver_at_fault_is_not_believed(client, stand_in, wait_for):
    stand_in.announce(DriverState.FAULT, "burst hose")

    def failed():
        try:
            client.capture()
        except GoalFailedError as error:
            return error.code == CaptureCode.DRIVER_FAULT and "burst hose" in str(error)

    wait_for(failed, "the capture to name the fault")


def test_a_capture_can_be_cancelled(held, stand_in):
    stand_in.scans = False
    capturing = threading.Event()
    canceller = threading.Thread(target=lambda: capturing.wait(30.0) and held.cancel())
    canceller.start()
    with pytest.raises(GoalFailedError) as failure:
        held.capture(on_feedback=lambda feedback: feedback.stage == "capturing" and capturing.set())
    canceller.join()
    assert failure.value.code == CaptureCode.CANCELLED
    assert not stand_in.is_silent()
