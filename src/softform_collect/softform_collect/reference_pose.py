"""Looks every now and then whether the robot still takes the shape that it took at first."""

from collections.abc import Callable
from datetime import datetime

import numpy as np

from softform_client.capture_watch import Moment
from softform_collect.goal import AGAIN, CollectSettings
from softform_collect.marker_captures import MarkerCaptures
from softform_collect.recorders import MarkerRecorder, averaged_markers
from softform_core.arrays import Array
from softform_core.frames.quality import MIN_COVERAGE
from softform_core.frames.references import marker_drift, reference_actuation
from softform_core.units import MM_PER_M
from softform_ros.goal_error import GoalCode, GoalError

_WHAT = "the reference pose"


class ReferencePose:
    """Captures the reference pose and compares its markers with its first capture of any session.

    Args:
        recorder: Recorder of the frames; its store keeps the captures, and it judges the first one.
        captures: Captures them.
        settings: Limits of the drift.
        tell: Takes one sentence on each capture.
    """

    def __init__(
        self, recorder: MarkerRecorder, captures: MarkerCaptures, settings: CollectSettings, tell: Callable[[str], None]
    ) -> None:
        self._recorder, self._store, self._robot, self._captures = recorder, recorder.store, recorder.robot, captures
        self._settings, self._tell = settings, tell
        self._actuation = reference_actuation(recorder.robot)

    def check(self) -> None:
        """Capture, keep and compare; a capture that is unfit is taken again, as those of frames are.

        The pose is always reached from rest. Soft robots remember where they came from (paper 004, Sec. V-B): only
        poses with the same past are compared.

        Raises:
            GoalError: If the robot does not get there, nothing is captured, the markers have moved further than the
                limit, or too few are seen to tell.
        """
        store, settled, actuation = self._store, self._captures.settled, self._actuation
        settled.go_to(self._robot.rest_actuation, _WHAT)
        moment: Moment = settled.go_to(actuation, _WHAT)
        for _ in range(self._settings.captures_a_frame):
            taken = self._captures.take(moment, _WHAT)
            moment = taken[-1]
            measured = self._robot.actuation_of(settled.still_settled(actuation, moment.stamp, _WHAT).values)
            positions, fault = averaged_markers(taken, self._settings.frame, store.names, self._robot)
            drift = self._drift(positions)
            problem = self._unfit(positions, fault, drift) or self._drifted(drift)
            if problem is None:
                break
        if problem is None or problem.code is GoalCode.ROBOT_DRIFTED:
            store.references.add(actuation, positions, measured, moment.stamp, self._done())
        if problem is not None:
            raise problem
        warning = "WARNING: " if np.nanmax(drift) > self._settings.drift_warning * self._size() else ""
        self._tell(f"{warning}{self._in_words(drift)}")

    def _unfit(self, positions: Array, fault: str, drift: Array) -> GoalError | None:
        seen = np.isfinite(positions).all(axis=1).mean()
        if not fault and seen < MIN_COVERAGE:
            fault = f"only {seen:.0%} of the markers are seen."
        if not fault and not len(self._store.references):
            fault = self._recorder.quality(self._actuation, positions).fault
        if not fault and not np.isfinite(drift).any():
            fault = "no marker of its first capture is seen."
        if not fault:
            return None
        return GoalError(GoalCode.CAPTURE_FAILED, f"{_WHAT.capitalize()} cannot be used: {fault}", f"Look why. {AGAIN}")

    def _drifted(self, drift: Array) -> GoalError | None:
        limit = self._settings.drift_limit * self._size()
        if np.nanmax(drift) <= limit:
            return None
        return GoalError(
            GoalCode.ROBOT_DRIFTED,
            f"The robot has drifted: {self._in_words(drift)}; {MM_PER_M * limit:.1f} mm is the limit.",
            "See whether markers, cameras or the robot were moved. Put them back and run the same command again, "
            "or collect into another --output.",
        )

    def _drift(self, positions: Array) -> Array:
        """Return each marker's distance from where it was first, (M, 3) m to (M,) m; NaN where missing now or then."""
        references = self._store.references
        return marker_drift(references.positions[0] if len(references) else positions, positions)

    def _in_words(self, drift: Array) -> str:
        references, worst = self._store.references, int(np.nanargmax(drift))
        since = f"{datetime.fromtimestamp(references.captured_at[0]):%Y-%m-%d %H:%M}"
        return (
            f"after {self._done()} frames markers of {_WHAT} are {MM_PER_M * np.nanmean(drift):.1f} mm from where they "
            f"were at {since}, {self._store.names[worst]} {MM_PER_M * drift[worst]:.1f} mm"
        )

    def _done(self) -> int:
        return len(self._store) - len(self._store.pending)

    def _size(self) -> float:
        return float(self._robot.extent.max())
