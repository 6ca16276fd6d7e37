"""Captures of markers that are no frames: of the robot at rest, and of its reference pose."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from softform_client.capture_watch import Capture, Moment
from softform_collect.goal import Code, CollectSettings
from softform_collect.recorders import averaged_markers, labelled, take_markers
from softform_collect.settled_robot import SettledRobot
from softform_core.arrays import Array
from softform_core.frames.marker_quality import rest_frame
from softform_core.robots import Robot
from softform_interfaces.msg import MarkerFrame
from softform_ros.goal_error import in_code

_HIDDEN_WAIT = 5.0
"""How long a marker that is hidden at rest is waited for, s: one without a name and a place is never learned from."""


@dataclass(frozen=True)
class MarkerCapture:
    """Averaged markers of a settled robot.

    Attributes:
        positions: (M, 3) m, NaN where a marker is missing.
        measured: Actuation, (m,).
        captured_at: Capture time, s since the epoch.
        fault: Fault of labels or positions; empty if there is none.
    """

    positions: Array
    measured: Array
    captured_at: float
    fault: str


class MarkerCaptures:
    """Captures averaged markers of a robot that has settled."""

    def __init__(self, robot: Robot, settled: SettledRobot, settings: CollectSettings) -> None:
        self._robot, self._settled, self._settings = robot, settled, settings

    def rest_frame(self) -> tuple[list[str], Array]:
        """Names and positions, (M, 3) m, of the markers of the robot at rest.

        Raises:
            GoalError: If robot or markers cannot be used.
        """
        what = "the rest frame"
        begin: Moment = self._settled.go_to(self._robot.rest_actuation, what)
        moment = begin
        places: dict[str, Array] = {}
        while moment.stamp - begin.stamp < _HIDDEN_WAIT:
            taken = self._take(moment, what)
            with in_code(Code.CAPTURE_FAILED):
                names, rest = rest_frame(labelled(taken, self._settings.frame), self._robot)
            places = dict(zip(names, rest, strict=True)) | places
            if len(places) == len(taken[-1].cloud.name):
                break
            moment = taken[-1]
        # Placing the markers takes seconds without a command: the robot at rest may as well be let go.
        self._settled.link.let_go()
        return list(places), np.stack(list(places.values()))

    def at(self, actuation: Array, names: list[str], what: str) -> Iterator[MarkerCapture]:
        """Capture markers of a pose (k,) that is always reached from rest, again and again as often as for a frame.

        Soft robots remember where they came from (paper 004, Sec. V-B): only poses with the same past are compared.

        Yields:
            The captures.

        Raises:
            GoalError: If the robot does not get there, or nothing is captured.
        """
        self._settled.go_to(self._robot.rest_actuation, what)
        moment: Moment = self._settled.go_to(actuation, what)
        for _ in range(self._settings.captures_a_frame):
            taken = self._take(moment, what)
            moment = taken[-1]
            measured = self._robot.actuation_of(self._settled.still_settled(actuation, moment.stamp, what).values)
            positions, fault = averaged_markers(taken, self._settings.frame, names, self._robot)
            yield MarkerCapture(positions, measured, moment.stamp, fault)

    def _take(self, moment: Moment, what: str) -> list[Capture[MarkerFrame]]:
        settled, settings = self._settled, self._settings
        taken = take_markers(
            settled.link.markers, settings.averaged_markers, moment, settings.capture_timeout, settled.is_stopped
        )
        if taken is None:
            raise settled.nothing_came("captured_markers", what)
        return taken
