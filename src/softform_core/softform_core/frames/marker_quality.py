"""Check that captured markers are those of the rest frame, and are where they can be."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.robot_pipeline import simulated_shapes
from softform_core.frames.frames import MarkerFrames
from softform_core.frames.marker_checks import marker_faults
from softform_core.frames.quality import MIN_COVERAGE, MarkerQuality
from softform_core.registration.markers import register_markers
from softform_core.robots import Robot
from softform_core.units import MM_PER_M

MAX_JITTER = 0.01
"""Largest motion of a settled robot's marker, over the robot's size; beyond it, it is another marker."""

MAX_REST_SHIFT = 0.02
"""Largest distance of a resting robot's markers from their places, over its size; beyond it they were moved."""

LEAST_SEEN = 0.5
"""Least share of averaged frames in which a marker must be seen; else it is missing in the stored frame."""

_NAMED = 5


@dataclass(frozen=True)
class LabelledMarkers:
    """One marker frame as it came.

    Attributes:
        names: m names.
        positions: (m, 3) m in the robot's frame, NaN where a marker is missing.
    """

    names: list[str]
    positions: Array


def rest_frame(taken: Sequence[LabelledMarkers], robot: Robot) -> tuple[list[str], Array]:
    """Return names and rest positions, (M, 3) m, of markers that some (at least one) frames of the robot at rest show.

    Raises:
        SoftformError: If the labels or positions cannot be used, or no marker is seen.
    """
    names = list(dict.fromkeys(name for frame in taken for name in frame.names))
    positions, fault = average_markers(taken, names, robot)
    if fault:
        raise SoftformError(f"The rest frame cannot be used: {fault}", "Correct the labels in the capture system.")
    seen = np.isfinite(positions).all(axis=1)
    if not seen.any():
        raise SoftformError(
            "No marker is seen on the resting robot.", "Check the cameras, and that the base markers are visible."
        )
    return [names[index] for index in np.flatnonzero(seen)], positions[seen]


def average_markers(taken: Sequence[LabelledMarkers], names: list[str], robot: Robot) -> tuple[Array, str]:
    """Return the mean position of every marker over some marker frames of the settled robot.

    Args:
        taken: The marker frames, at least one.
        names: The M markers that there must be.
        robot: Robot that carries the markers.

    Returns:
        (M, 3) m, NaN where a marker is missing, and what is wrong with the labels or positions; empty if nothing is.
    """
    place = {name: index for index, name in enumerate(names)}
    stacked = np.full((len(taken), len(names), 3), np.nan)
    fault = ""
    for frame, markers in zip(stacked, taken, strict=True):
        fault = fault or _label_fault(markers, place)
        for name, position in zip(markers.names, markers.positions, strict=True):
            if name in place and np.isfinite(position).all():
                frame[place[name]] = position
    seen = np.isfinite(stacked).all(axis=2)
    count = seen.sum(axis=0)
    positions = np.full((len(names), 3), np.nan)
    often = count > LEAST_SEEN * len(taken)
    positions[often] = np.nansum(stacked[:, often], axis=0) / count[often, None]
    jitter = np.where(seen, np.linalg.norm(stacked - positions, axis=2), 0.0).max(axis=0, initial=0.0)
    jitter[~often] = 0.0
    # In millimetres everything jitters more; that the unit is wrong is for `assess` to say.
    size = max(float(robot.extent.max()), float(np.nanmax(np.abs(stacked), initial=0.0)))
    jumping = np.flatnonzero(jitter > MAX_JITTER * size)
    if not fault and len(jumping):
        fault = f"{_listed([names[i] for i in jumping])} moves by {jitter.max():.3f} m while the robot is settled."
    return positions, fault


def check_same_rest(names: list[str], rest: Array, now_names: list[str], now_rest: Array, robot: Robot) -> None:
    """Reject continuing a data set whose markers have been moved on the robot, renamed, or aligned anew.

    Args:
        names: M names of the data set.
        rest: (M, 3) m, its rest positions.
        now_names: m names seen at rest now.
        now_rest: (m, 3) m.
        robot: Robot that carries the markers.

    Raises:
        SoftformError: If they are not the same within `MAX_REST_SHIFT`.
    """
    place = {name: index for index, name in enumerate(names)}
    both = [name for name in now_names if name in place]
    shift = np.array([np.linalg.norm(now_rest[now_names.index(name)] - rest[place[name]]) for name in both])
    moved = [name for name, distance in zip(both, shift, strict=True) if distance > MAX_REST_SHIFT * robot.extent.max()]
    if moved or len(both) < MIN_COVERAGE * len(names):
        what = f"{_listed(moved)} rested elsewhere" if moved else f"only {len(both)} of {len(names)} names are the same"
        raise SoftformError(
            f"These are not the resting markers that the data set was begun with: {what}.",
            "Put names and markers back, or collect into another --output.",
        )


class MarkerJudge:
    """Compares frames of M markers (at rest at (M, 3) m) with the simulated shapes and with the frames kept before.

    Raises:
        SoftformError: If the markers do not lie on the resting robot, or it has no model of its forward kinematics.
    """

    def __init__(self, robot: Robot, names: list[str], rest: Array) -> None:
        self._names, self._uv = list(names), register_markers(rest, robot)
        self._simulated = simulated_shapes(robot, self._uv)

    def assess(self, actuation: Array, positions: Array, kept_actuation: Array, kept_positions: Array) -> MarkerQuality:
        """Judge one frame, (k,) and (M, 3) m, NaN for missing markers, beside those kept, (n, k) and (n, M, 3) m."""
        coverage = float(np.isfinite(positions).all(axis=1).mean())
        if coverage == 0.0:
            return MarkerQuality(0.0, "no marker is visible.")
        if coverage < MIN_COVERAGE:
            return MarkerQuality(coverage, f"{coverage:.0%} of the markers are seen, less than {MIN_COVERAGE:.0%}.")
        actuations = np.concatenate([kept_actuation, actuation[None]])
        try:
            frames = MarkerFrames(actuations, self._names, self._uv, np.concatenate([kept_positions, positions[None]]))
        except SoftformError as error:
            return MarkerQuality(coverage, error.message)
        expected = self._simulated.points(actuations) / MM_PER_M
        faults = [fault.reason for fault in marker_faults(frames, expected) if fault.frame == len(kept_actuation)]
        return MarkerQuality(coverage, f"{faults[0]}." if faults else "")


def _label_fault(markers: LabelledMarkers, place: dict[str, int]) -> str:
    strange = [name for name in markers.names if name not in place]
    gone = [name for name in place if name not in markers.names]
    # A new name alone is a marker that was not seen at rest: it has no place on the surface and is passed over.
    if strange and gone:
        return f"markers named {_listed(strange)} were not there at rest, and {_listed(gone)} gone: were they renamed?"
    return ""


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
