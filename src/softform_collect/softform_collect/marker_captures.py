"""Captures of markers of a robot that has settled, and the rest frame, by which a data set of them begins."""

import numpy as np

from softform_client.capture_watch import Capture, Moment
from softform_collect.goal import CollectSettings
from softform_collect.recorders import labelled, take_markers
from softform_collect.settled_robot import SettledRobot
from softform_core.arrays import Array
from softform_core.frames.marker_quality import rest_frame
from softform_core.robots import Robot
from softform_interfaces.msg import MarkerFrame
from softform_ros.goal_error import GoalCode, in_code

_HIDDEN_WAIT = 5.0
"""Time that a marker hidden at rest is awaited, s; without a name and a place it is never learned from."""


class MarkerCaptures:
    """Captures averaged markers of a robot that has settled."""

    def __init__(self, robot: Robot, settled: SettledRobot, settings: CollectSettings) -> None:
        self.settled, self._robot, self._settings = settled, robot, settings

    def rest_frame(self) -> tuple[list[str], Array]:
        """Return the names and positions, (M, 3) m, of the markers of the robot at rest.

        Raises:
            GoalError: If robot or markers cannot be used.
        """
        what = "the rest frame"
        begin: Moment = self.settled.go_to(self._robot.rest_actuation, what)
        moment = begin
        places: dict[str, Array] = {}
        while moment.stamp - begin.stamp < _HIDDEN_WAIT:
            taken = self.take(moment, what)
            with in_code(GoalCode.CAPTURE_FAILED):
                names, rest = rest_frame(labelled(taken, self._settings.frame), self._robot)
            places = dict(zip(names, rest, strict=True)) | places
            if len(places) == len(taken[-1].cloud.name):
                break
            moment = taken[-1]
        # Placing the markers takes seconds without a command: the robot at rest may as well be let go.
        self.settled.link.let_go()
        return list(places), np.stack(list(places.values()))

    def take(self, moment: Moment, what: str) -> list[Capture[MarkerFrame]]:
        """Return the marker frames captured after a moment, as many as one stored frame averages.

        Raises:
            GoalError: If not so many come in time, or collecting is stopped.
        """
        settled, settings = self.settled, self._settings
        taken = take_markers(
            settled.link.markers, settings.averaged_markers, moment, settings.capture_timeout, settled.is_stopped
        )
        if taken is None:
            raise settled.nothing_came("captured_markers", what)
        return taken
