"""An emulated motion-capture system: labelled markers in its own frame, with noise and occlusions.

Occlusions come and go at random (a Poisson process, each of random length): some hide one marker, some a marker with
its neighbours, as an arm or a hose between camera and robot does. A marker hidden by any is missing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from softform_core.robots import Robot
from softform_rig.device_pose import DevicePose
from softform_rig.markers import GluedMarkers, glue_markers, marker_layout
from softform_rig.reality import MotionCaptureDescription

Array = NDArray[np.float64]

MARKERS = 34
"""As many as the paper used (Sec. V-D)."""


@dataclass(frozen=True)
class _Occlusion:
    hides: NDArray[np.bool_]
    until: float


class MotionCapture:
    """Cameras around one robot.

    Attributes:
        names: Of all markers: those on the sheet, then those on the robot's frame.

    Args:
        description: Frame, noise and occlusions.
        robot: Whose frame carries the base markers.
        rest_vertices: (V, 3) m of the real sheet, flat; the markers are glued on it.
        faces: (F, 3).
        markers: Number of markers on the sheet.
        seed: Of placement, noise and occlusions.
    """

    def __init__(
        self,
        description: MotionCaptureDescription,
        robot: Robot,
        rest_vertices: Array,
        faces: NDArray[np.integer],
        markers: int = MARKERS,
        seed: int = 0,
    ) -> None:
        """Glue the markers."""
        self.description = description
        self._pose = DevicePose.from_list(description.pose)
        places = marker_layout(robot, markers)
        self._glued: GluedMarkers = glue_markers(rest_vertices, faces, places, description.placement_error, seed)
        self._base = np.array(list(robot.base_markers.values()), dtype=np.float64).reshape(-1, 3)
        self.names = [*self._glued.names, *robot.base_markers]
        distance = cdist(*2 * [self._true(rest_vertices)])
        self._near = distance <= description.occlusion_radius
        self._random = np.random.default_rng(seed + 1)
        self._occlusions: list[_Occlusion] = []
        self._time = -np.inf

    def capture(self, vertices: Array, time: float) -> Array:
        """One frame.

        Args:
            vertices: (V, 3) m, robot frame.
            time: s.

        Returns:
            (len(names), 3) m in the system's own frame, NaN where a marker is missing.
        """
        seen = self._pose.into_device(self._true(vertices))
        seen = seen + self.description.noise * self._random.standard_normal(seen.shape)
        seen[self._hidden(time)] = np.nan
        return seen

    def _true(self, vertices: Array) -> Array:
        return np.concatenate([self._glued.positions(vertices), self._base])

    def _hidden(self, time: float) -> NDArray[np.bool_]:
        """Markers that are hidden now, (M,)."""
        lasting, elapsed = self.description.occlusion_time, max(0.0, time - self._time)
        self._time = time
        kept = [occlusion for occlusion in self._occlusions if occlusion.until > time]
        # Of a stationary queue: the share of today's occlusions that began since the frame before.
        begun = 1.0 - np.exp(-elapsed / lasting)
        for hides in (np.eye(len(self.names), dtype=bool), self._near):
            for _ in range(self._random.poisson(begun * self._occlusions_at_once(hides))):
                victim = self._random.integers(len(self.names))
                kept.append(_Occlusion(hides[victim], time + self._random.exponential(lasting)))
        self._occlusions = kept
        return np.any([occlusion.hides for occlusion in kept], axis=0) if kept else np.zeros(len(self.names), bool)

    def _occlusions_at_once(self, hides: NDArray[np.bool_]) -> float:
        """Mean number of occlusions of one kind, so that both kinds together leave the share of markers visible."""
        return float(-0.5 * np.log1p(-self.description.missing) / hides.mean())
