"""What is said about a streamed target that cannot be followed: remedies that a stream can take, units that fit."""

import time

import numpy as np
import pytest
from geometry_msgs.msg import Point, PointStamped
from std_msgs.msg import Header

from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_ik.stream.intake import ServoIntake
from softform_interfaces.msg import TargetPoints
from softform_ros.conversions import cloud_from_points, stamp_from_seconds

AXIS = np.linspace(-0.16, 0.16, 5)
POINTS = np.stack([*(one.ravel() for one in np.meshgrid(AXIS, AXIS)), np.full(25, 0.01)], axis=1)


@pytest.fixture(scope="module")
def sheet():
    return ServoIntake(load_robot("membrane"), 0.5)


def said(intake, message):
    with pytest.raises(SoftformError) as caught:
        intake.target(message)
    return str(caught.value)


@pytest.mark.parametrize(
    ("stamp", "complaint"),
    [
        (
            lambda now: now - 3.0,
            "The target is stale: it was stamped 3.0 s ago.* Stamp each target with the time of now",
        ),
        (lambda now: now + 9.0, "The target is stamped 9.0 s in the future. Synchronise the clocks."),
        (lambda now: 0.0, "The target has no stamp. Stamp it with the time of now"),
    ],
)
def test_no_zero_stamp_is_advised_to_a_stream(sheet, stamp, complaint):
    told = said(sheet, cloud_from_points(POINTS, "membrane/base_link", stamp_from_seconds(stamp(time.time()))))
    assert all(part in told for part in complaint.split(".*")) and "zero stamp" not in told


@pytest.mark.parametrize(
    ("factor", "complaint"),
    [
        (1000.0, "in millimetres. State the unit, or divide the points by 1000."),
        (100.0, "in centimetres. State the unit, or divide the points by 100."),
        (50.0, "in centimetres"),
        (0.01, "converted from centimetres twice. State the unit m, or multiply the points by 100."),
        (0.001, "converted from millimetres twice"),
    ],
)
def test_the_unit_that_fits_is_named(sheet, factor, complaint):
    now = stamp_from_seconds(time.time())
    assert complaint in said(sheet, cloud_from_points(factor * POINTS, "membrane/base_link", now))


def test_the_place_of_a_tip_in_another_unit_is_rejected():
    def place(z):
        header = Header(frame_id="three_chamber/base_link", stamp=stamp_from_seconds(time.time()))
        return PointStamped(header=header, point=Point(z=z))

    intake = ServoIntake(load_robot("three_chamber"), 0.5)
    intake.target(place(0.04))
    assert "Give metres, not millimetres or centimetres, in the robot's frame." in said(intake, place(4.0))
    assert "Give metres, not millimetres, in" in said(intake, place(200.0))


@pytest.mark.parametrize("accept", [False, True])
def test_a_tip_is_wanted_by_points_as_by_its_place(accept):
    robot = load_robot("three_chamber")
    header = Header(frame_id=robot.base_frame, stamp=stamp_from_seconds(time.time()))
    intake, place = ServoIntake(robot, 0.5), Point(x=0.01, z=0.1)
    points = TargetPoints(header=header, output=["tip"], u=[0.0], v=[0.0], position=[place], accept_unreachable=accept)
    of_points, of_place = intake.target(points), intake.target(PointStamped(header=header, point=place))
    assert (of_points.features.positions == of_place.features.positions).all()
    assert (of_points.features.uv == of_place.features.uv).all()
    assert of_points.accept_unreachable is accept and not of_place.accept_unreachable
    assert set(intake.topics) == {"target_tip", "target_points"}
