"""Looks every now and then whether the robot still takes the shape that it took at first."""

from collections.abc import Callable
from datetime import datetime

import numpy as np

from softform_bringup.collecting.goal import AGAIN, Code, CollectError, CollectSettings
from softform_bringup.collecting.marker_captures import MarkerCaptures
from softform_core.frames.marker_store import MarkerStore
from softform_core.frames.quality import MIN_COVERAGE
from softform_core.frames.references import marker_drift, reference_actuation
from softform_core.robots import Robot
from softform_core.units import MM_PER_M

_WHAT = "the reference pose"


class ReferencePose:
    """Captures the reference pose and compares its markers with its first capture, of whatever session.

    Args:
        store: Where captures are kept.
        robot: Whose markers.
        captures: Captures them.
        settings: How far they may be off.
        tell: Takes one sentence on each capture.
    """

    def __init__(
        self,
        store: MarkerStore,
        robot: Robot,
        captures: MarkerCaptures,
        settings: CollectSettings,
        tell: Callable[[str], None],
    ) -> None:
        """Nothing moves yet."""
        self._store, self._robot, self._captures = store, robot, captures
        self._settings, self._tell = settings, tell

    def check(self) -> None:
        """Capture, keep and compare.

        Raises:
            CollectError: If the markers have moved further than the limit, or too few are seen to tell.
        """
        store, actuation = self._store, reference_actuation(self._robot)
        positions, measured, captured_at = self._captures.at(actuation, store.names, _WHAT)
        seen = np.isfinite(positions).all(axis=1).mean()
        if seen < MIN_COVERAGE:
            raise CollectError(
                Code.CAPTURE_FAILED, f"Only {seen:.0%} of the markers are seen in {_WHAT}.", f"Look why. {AGAIN}"
            )
        done = len(store) - len(store.pending)
        store.references.add(actuation, positions, measured, captured_at, done)
        first, since = store.references.positions[0], store.references.captured_at[0]
        drift = marker_drift(first, positions)
        if not np.isfinite(drift).any():
            raise CollectError(
                Code.CAPTURE_FAILED, f"No marker of the first capture is seen in {_WHAT}.", f"Look why. {AGAIN}"
            )
        worst, size = int(np.nanargmax(drift)), float(self._robot.extent.max())
        told = (
            f"after {done} frames markers of {_WHAT} are {MM_PER_M * np.nanmean(drift):.1f} mm from where they were "
            f"at {datetime.fromtimestamp(since):%Y-%m-%d %H:%M}, {store.names[worst]} {MM_PER_M * drift[worst]:.1f} mm"
        )
        if drift[worst] > self._settings.drift_limit * size:
            raise CollectError(
                Code.ROBOT_DRIFTED,
                f"The robot has drifted: {told}; {MM_PER_M * self._settings.drift_limit * size:.1f} mm is the limit.",
                "See whether markers, cameras or the robot were moved. Put them back and run the same command again, "
                "or collect into another --output.",
            )
        warning = "WARNING: " if drift[worst] > self._settings.drift_warning * size else ""
        self._tell(f"{warning}{told}")
