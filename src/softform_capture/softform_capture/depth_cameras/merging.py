"""Clouds of two or more depth cameras that look at one robot, brought together (paper 004, Sec. V-A)."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.spatial import cKDTree

from softform_capture.depth_cameras.calibration import CameraCalibration
from softform_capture.scanner.captured_cloud import CloudOptions, inside_workspace
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.shapes.shape import estimate_normals
from softform_core.units import MM_PER_M

NEAREST, FARTHEST = 0.03, 20.0
"""Range in which depth cameras measure, m. A cloud whose points lie elsewhere is not in metres."""

_COMPARED = 3000
"""Points of a cloud that are compared with another cloud."""
_REACH = 0.05
"""Distance to the other cloud beyond which a point is not seen by both cameras, m."""
_FEWEST = 200
"""Fewest points of the robot that a camera must show, and that two must have in common, to be compared."""
_SAME_PLACE = 0.005
"""Distance in the plane of the robot's base within which points show the same place, m."""


@dataclass(frozen=True)
class CameraCloud:
    """Cloud of one camera.

    Attributes:
        points: (N, 3) m in the camera's frame; not finite where nothing was measured.
        frame_id: Frame of the points.
        captured_at: Capture time, s since the epoch.
    """

    points: Array
    frame_id: str
    captured_at: float


@dataclass(frozen=True)
class MergedCloud:
    """Clouds of all cameras, merged.

    Attributes:
        points: (N, 3) m in the robot's frame, within its workspace.
        captured_at: Time of the first camera's capture, s since the epoch: what it shows may not be newer.
        disagreement: Median distance of two cameras' surfaces where both see the robot, largest of all pairs, m; NaN if
            no two see the same part.
    """

    points: Array
    captured_at: float
    disagreement: float


@dataclass(frozen=True)
class CloudMerger:
    """Brings clouds into the robot's frame by the cameras' calibration, segments the robot, and concatenates.

    Capture times of merged clouds differ by `largest_gap` s at most, surfaces of two cameras by `largest_disagreement`
    m: beyond it one has been moved.
    """

    calibration: CameraCalibration
    robot: Robot
    options: CloudOptions
    largest_gap: float
    largest_disagreement: float

    def merge(self, clouds: Mapping[str, CameraCloud]) -> MergedCloud:
        """Merge one cloud of each camera.

        Raises:
            SoftformError: If a cloud is in another frame or not in metres, if the clouds were not captured together, if
                a camera does not see the robot, or if the cameras disagree about where it is.
        """
        times = {name: cloud.captured_at for name, cloud in clouds.items()}
        first, last = min(times, key=times.__getitem__), max(times, key=times.__getitem__)
        if times[last] - times[first] > self.largest_gap:
            raise SoftformError(
                f"The cloud of camera {first} is {times[last] - times[first]:.2f} s older than that of {last}.",
                "Synchronise the cameras' clocks, or let both send at the same rate.",
            )
        placed = {name: self._placed(name, cloud) for name, cloud in clouds.items()}
        on_robot = {name: self._on_robot(name, points) for name, points in placed.items()}
        disagreements = {
            (a, b): disagreement(first_part, second_part)
            for (a, first_part), (b, second_part) in combinations(on_robot.items(), 2)
        }
        for (a, b), distance in disagreements.items():
            if distance > self.largest_disagreement:
                apart = f"{distance * MM_PER_M:.1f}" if np.isfinite(distance) else f"more than {_REACH * MM_PER_M:.0f}"
                raise SoftformError(
                    f"Cameras {a} and {b} see the robot {apart} mm apart.",
                    "One was moved since it was calibrated: ./softform calibrate-cameras.",
                )
        known = [distance for distance in disagreements.values() if np.isfinite(distance)]
        kept = on_robot if self.options.crop else placed
        return MergedCloud(np.concatenate(list(kept.values())), times[first], max(known, default=float("nan")))

    def _placed(self, name: str, cloud: CameraCloud) -> Array:
        """Transform a camera's measured points into the robot's frame."""
        camera = self.calibration.cameras[name]
        if cloud.frame_id != camera.frame_id:
            raise SoftformError(
                f"Camera {name} was calibrated in frame '{camera.frame_id}' but sends clouds in '{cloud.frame_id}'.",
                "Set its driver as it was then, or calibrate again.",
            )
        measured = cloud.points[np.isfinite(cloud.points).all(axis=1)]
        # Drivers write (0, 0, 0) where nothing was measured, if they do not write NaN.
        measured = measured[measured.any(axis=1)]
        if len(measured):
            distance = float(np.median(np.linalg.norm(measured, axis=1)))
            if not NEAREST <= distance <= FARTHEST:
                raise SoftformError(
                    f"The points of camera {name} are {distance:.4g} m away from it.",
                    "Clouds must be in metres: check its driver.",
                )
        return camera.registration().apply(measured)

    def _on_robot(self, name: str, placed: Array) -> Array:
        """Return the points that can be the robot; raises if a covered camera leaves half a robot, which is no scan."""
        part = placed[inside_workspace(placed, self.robot, self.options.workspace, self.options.crop_margin)]
        if len(part) < _FEWEST:
            raise SoftformError(
                f"Only {len(part)} of the {len(placed)} points of camera {name} lie on robot '{self.robot.name}'; "
                f"{_FEWEST} are needed.",
                "Is it covered, or turned away? If it was moved: ./softform calibrate-cameras.",
            )
        return part


def disagreement(first: Array, second: Array) -> float:
    """Return the median distance of a cloud's points from the other's surface, where both are.

    Args:
        first: (N, 3) m.
        second: (M, 3) m.

    Returns:
        m, along the other's normals; infinite if they show the same places of the robot but nowhere near each other;
        NaN if they have too little in common.
    """
    a, b = (part[:: max(1, len(part) // _COMPARED)] for part in (first, second))
    distance, nearest = cKDTree(b).query(a, distance_upper_bound=_REACH)
    common = np.isfinite(distance)
    if common.sum() < _FEWEST:
        beside = cKDTree(b[:, :2]).query(a[:, :2], distance_upper_bound=_SAME_PLACE)[0]
        return float("inf" if np.isfinite(beside).sum() >= _FEWEST else "nan")
    normals = estimate_normals(b)[nearest[common]]
    return float(np.median(np.abs(np.einsum("ni,ni->n", a[common] - b[nearest[common]], normals))))
