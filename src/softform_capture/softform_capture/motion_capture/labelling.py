"""Names for markers without labels: the base by the distances between its markers, others by where each was last."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from softform_capture.motion_capture.captured_frame import CapturedFrame
from softform_capture.motion_capture.marker_plausibility import is_measured
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform, kabsch
from softform_core.registration.marker_motion import neighbours_motion
from softform_core.yaml_files import read_yaml

_FEWEST_BASE = 3
_SLACK = 3.0
"""Largest change of a distance between two markers, in limits of the alignment: each may be off by one."""
_FAR = 1e6  # m^2, cost of what must not be assigned
_MOST_POINTS = 200
"""Most points of a cloud of markers; the search for the base takes a tenth of a second then."""

Indices = NDArray[np.int64]


def read_rest_markers(path: str | Path) -> dict[str, list[float]]:
    """Read names of markers and their places at rest, m, robot frame, from a YAML file `name: [x, y, z]`.

    Raises:
        SoftformError: If the file cannot be read or says something else.
    """
    try:
        content = read_yaml(Path(path).expanduser())
        places = {str(name): [float(value) for value in place] for name, place in content.items()}
    except (SoftformError, AttributeError, TypeError, ValueError) as error:
        reason = str(getattr(error, "message", error)).rstrip(".")
        raise SoftformError(
            f"The rest markers {path} cannot be read: {reason}.", "Write one line for each marker: name: [x, y, z]."
        ) from error
    if not all(len(place) == 3 and np.isfinite(place).all() for place in places.values()) or not places:
        raise SoftformError(f"The rest markers {path} are not places.", "Give x, y, z in metres for each name.")
    return places


def find_base(points: Array, places: Array, limit: float) -> tuple[Indices, RigidTransform] | None:
    """Find a rigid set of markers (B, 3) m among points (U, 3) m by their distances, with an RMS error up to `limit`.

    Returns:
        Index of the point of each place, -1 where there is none, and the motion that brings the points to the places;
        None if fewer than three are found, or different points fit as well.
    """
    apart, wanted = cdist(points, points), cdist(places, places)
    found: dict[tuple[int, ...], RigidTransform] = {}
    for a, b, c in combinations(range(len(places)), _FEWEST_BASE):
        first, second, third = (np.abs(apart - wanted[pair]) < _SLACK * limit for pair in ((a, b), (b, c), (a, c)))
        for i, j in np.argwhere(first):
            for k in np.flatnonzero(second[j] & third[i]):
                index, motion = _completed(points, places, ((int(i), int(j), int(k)), (a, b, c)), limit)
                if index is not None:
                    found[tuple(index)] = motion
    most = max((np.sum(np.array(index) >= 0) for index in found), default=0)
    fullest = [index for index in found if np.sum(np.array(index) >= 0) == most]
    return (np.array(fullest[0]), found[fullest[0]]) if len(fullest) == 1 else None


def _completed(
    points: Array, places: Array, seed: tuple[Sequence[int], Sequence[int]], limit: float
) -> tuple[Indices | None, RigidTransform]:
    """Return the set that three pairs begin: the point of each place, or None if they do not fit, and the motion."""
    motion = kabsch(points[list(seed[0])], places[list(seed[1])])
    distance = cdist(places, motion.apply(points))
    index = np.where(distance.min(axis=1) < _SLACK * limit, distance.argmin(axis=1), -1)
    found = index >= 0
    if found.sum() < _FEWEST_BASE or len(set(index[found])) < found.sum():
        return None, motion
    motion = kabsch(points[index[found]], places[found])
    error = np.sqrt(np.square(motion.apply(points[index[found]]) - places[found]).sum(axis=1).mean())
    return (index if error <= limit else None), motion


class Labeller:
    """Follows markers without labels from frame to frame.

    Args:
        base_markers: Name -> place on the robot's base, m.
        rest_markers: Name -> place on the resting robot, m, robot frame; empty for m01, m02, ... in the first frame's
            order: rows of rising x, within them rising y.
        limit: Largest error of the base markers, m.
        reach: m, that a marker may be from where it is expected; less than half the least distance of two markers.
    """

    def __init__(
        self,
        base_markers: Mapping[str, Sequence[float]],
        rest_markers: Mapping[str, Sequence[float]],
        limit: float,
        reach: float,
    ) -> None:
        """Wait for the first frame in which the base is seen."""
        self._base_names, self._base = list(base_markers), np.array(list(base_markers.values()), dtype=np.float64)
        self._names = list(rest_markers)
        self._place = np.array(list(rest_markers.values()), dtype=np.float64).reshape(-1, 3)  # robot frame
        self._limit, self._reach = limit, reach
        self._motion: RigidTransform | None = None

    def label(self, frame: CapturedFrame) -> CapturedFrame:
        """Return the frame with names for its unlabelled points, NaN for the markers that none of them can be.

        Base markers that the system labels itself are taken as it says.

        Raises:
            SoftformError: If the base was not found in any frame so far, or there are too many points.
        """
        points = found = frame.unlabelled[is_measured(frame.unlabelled)]
        if len(points) > _MOST_POINTS:
            raise SoftformError(
                f"A frame has {len(points)} points.", f"Send the markers only, {_MOST_POINTS} at most, not a surface."
            )
        labelled = dict(zip(frame.names, frame.positions, strict=True))
        base = np.array([labelled.pop(name, np.full(3, np.nan)) for name in self._base_names])
        seen = is_measured(base)
        if seen.sum() >= _FEWEST_BASE:
            self._motion = kabsch(base[seen], self._base[seen])
        else:
            index = self._find_base(points)
            base[index >= 0] = points[index[index >= 0]]
            points = np.delete(points, index[index >= 0], axis=0)
        if self._motion is None:
            raise SoftformError(
                f"The base markers are not among the {len(found)} points.",
                "Clear the view of them, and check base_markers in the robot's description.",
            )
        surface = self._motion.apply_inverse(self._assigned(self._motion.apply(points)))
        others = [name for name in labelled if name not in self._names]
        positions = [base, surface, np.array([labelled[name] for name in others]).reshape(-1, 3)]
        return CapturedFrame(
            frame.number, frame.captured_at, [*self._base_names, *self._names, *others], np.concatenate(positions)
        )

    def _find_base(self, points: Array) -> Indices:
        """Return points of the base markers, -1 where missing: near where they were, else by their distances."""
        if self._motion is not None and len(points):
            distance = cdist(self._base, self._motion.apply(points))
            index = np.where(distance.min(axis=1) < self._limit, distance.argmin(axis=1), -1)
            if (index >= 0).sum() >= _FEWEST_BASE:
                return index
        found = find_base(points, self._base, self._limit)
        if found is None or (
            self._motion is not None and self._fits(found[1], points) < self._fits(self._motion, points)
        ):
            return np.full(len(self._base), -1)
        self._motion = found[1]
        return found[0]

    def _fits(self, motion: RigidTransform, points: Array) -> int:
        """Count the markers that have a point where one is expected; a base guessed from others' points moves them.

        The surface is fixed to the base: where that has really moved, its new motion fits the surface at least as well.
        """
        if not len(self._place):
            return 0
        return int((cdist(self._place, motion.apply(points)).min(axis=1) <= self._reach).sum())

    def _assigned(self, points: Array) -> Array:
        """Return positions of the named markers, (M, 3) m, robot frame; the first frame may name them."""
        if not self._names:
            self._place = _in_rows(points, self._reach)
            self._names = [f"m{number:02d}" for number in range(1, len(points) + 1)]
        positions = np.full_like(self._place, np.nan)
        if len(points) and len(self._place):
            distance = cdist(self._place, points)
            rows, columns = linear_sum_assignment(np.where(distance <= self._reach, np.square(distance), _FAR))
            near = distance[rows, columns] <= self._reach
            positions[rows[near]] = points[columns[near]]
        carried = self._place + neighbours_motion(positions - self._place, self._place)
        self._place = np.where(np.isfinite(positions), positions, carried)
        return positions


def _in_rows(points: Array, reach: float) -> Array:
    """Return points in rows of rising x, within each by rising y; a row spans steps of x up to `reach`."""
    by_x = points[np.argsort(points[:, 0], kind="stable")]
    row = np.concatenate([[0], np.cumsum(np.diff(by_x[:, 0]) > reach)]) if len(by_x) else np.empty(0)
    return by_x[np.lexsort((by_x[:, 1], row))]
