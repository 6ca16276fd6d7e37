"""Captures by markers: what is hidden for a moment is looked for again."""

import numpy as np
import pytest

from softform_client.driver_watch import MeasuredValues
from softform_core.robots import TIP_MARKER, load_robot
from softform_ik.capture.devices import MotionCapture
from softform_interfaces.msg import MarkerFrame
from softform_ros.conversions import marker_message, stamp_from_seconds
from softform_ros.goal_error import GoalError

ROBOT = load_robot("three_chamber")
PLACE = np.array([[0.0, 0.0, 0.12]])


class Cameras:
    """Show the tip from the given look on."""

    def __init__(self, first: int) -> None:
        self.first, self.looks = first, 0

    def look_on_markers(self, still, markers, captures, stop) -> list[MarkerFrame]:
        self.looks += 1
        seen = PLACE if self.looks >= self.first else np.full((1, 3), np.nan)
        return [marker_message([TIP_MARKER], seen, ROBOT.base_frame, stamp_from_seconds(1.0), 0)] * captures


@pytest.fixture
def still() -> MeasuredValues:
    return MeasuredValues(np.zeros(3), True, 0.0, 0.0)


def captured(cameras: Cameras, still: MeasuredValues):
    return MotionCapture(ROBOT, cameras, None).see(still, PLACE[0] + 1e-3, 10, lambda: False)


@pytest.mark.parametrize("first", [1, 2, 5])
def test_a_tip_that_is_hidden_for_a_moment_is_looked_for_again(still, first):
    cameras = Cameras(first)
    seen = captured(cameras, still)
    assert cameras.looks == first and list(seen.names) == [TIP_MARKER] and seen.points == pytest.approx(PLACE)


def test_a_tip_that_stays_hidden_is_told(still):
    with pytest.raises(GoalError, match=r"No marker is visible\. Clear the cameras' view"):
        captured(Cameras(6), still)
