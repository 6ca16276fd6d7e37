"""An emulated motion-capture system: labelled markers in its own frame, with noise and occlusions.

Occlusions come and go at random (a Poisson process, each of random length): some hide one marker, some a marker with
its neighbours, as an arm or a hose between camera and robot does. A marker hidden by any is missing.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_rig.fault_kinds import Fault
from softform_rig.fault_schedule import FaultSchedule
from softform_rig.markers import GluedMarkers
from softform_rig.reality import MotionCaptureDescription


class MotionCapture:
    """Cameras around one robot.

    Attributes:
        names: Names of all markers: those on the body, then those on the robot's frame.

    Args:
        description: Frame, noise and occlusions.
        worn: The markers on the body.
        base_markers: Markers on the rigid base: name -> position in the robot's frame, m.
        rest: Points (P, 3) m of the body at rest, by which markers are neighbours.
        seed: Seed of noise and occlusions.
    """

    def __init__(
        self,
        description: MotionCaptureDescription,
        worn: GluedMarkers,
        base_markers: Mapping[str, Sequence[float]],
        rest: Array,
        seed: int = 0,
    ) -> None:
        self.description = description
        self._pose = RigidTransform.from_pose(description.pose)
        self._worn = worn
        self._base = np.array(list(base_markers.values()), dtype=np.float64).reshape(-1, 3)
        self.names = [*worn.names, *base_markers]
        distance = cdist(*2 * [self.positions(rest)])
        self._near = distance <= description.occlusion_radius
        self._random = np.random.default_rng(seed + 1)
        self._occlusions: list[tuple[NDArray[np.bool_], float]] = []  # what each hides, and until when, s
        self._time = -np.inf

    def capture(self, shape: Array, time: float) -> Array:
        """One frame of points (P, 3) m of the body at `time`, s: markers (M, 3) m, NaN where one is missing."""
        seen = self._pose.apply_inverse(self.positions(shape))
        seen = seen + self.description.noise * self._random.standard_normal(seen.shape)
        seen[self._hidden(time)] = np.nan
        return seen

    def positions(self, shape: Array) -> Array:
        """True places (len(names), 3) m of all markers on a shape, robot frame."""
        return np.concatenate([self._worn.positions(shape), self._base])

    def _hidden(self, time: float) -> NDArray[np.bool_]:
        """Markers that are hidden now, (M,)."""
        lasting, elapsed = self.description.occlusion_time, max(0.0, time - self._time)
        self._time = time
        kept = [(hides, until) for hides, until in self._occlusions if until > time]
        # Of a stationary queue: the share of today's occlusions that began since the frame before.
        begun = 1.0 - np.exp(-elapsed / lasting)
        for hides in (np.eye(len(self.names), dtype=bool), self._near):
            for _ in range(self._random.poisson(begun * self._occlusions_at_once(hides))):
                victim = self._random.integers(len(self.names))
                kept.append((hides[victim], time + self._random.exponential(lasting)))
        self._occlusions = kept
        return np.any([hides for hides, _ in kept], axis=0) if kept else np.zeros(len(self.names), bool)

    def _occlusions_at_once(self, hides: NDArray[np.bool_]) -> float:
        """Mean number of occlusions of one kind, so that both kinds together leave the share of markers visible."""
        return float(-0.5 * np.log1p(-self.description.missing) / hides.mean())


def check_marker_names(fault: Fault, names: list[str]) -> None:
    """Reject a fault that names a marker which is not there.

    Raises:
        SoftformError: Naming it.
    """
    for value in fault.values:
        if fault.kind.device == "motion capture" and isinstance(value, str) and value and value not in names:
            raise SoftformError(f"There is no marker '{value}'.", f"There are: {', '.join(names)}.")


def faulty_markers(positions: Array, names: list[str], schedule: FaultSchedule) -> Array | None:
    """A frame (M, 3) m as the faults that are on have it, or None if none comes; the schedule hears which show."""
    for fault in schedule.on("mocap_silent"):
        schedule.shows(fault)
        return None
    found = positions.copy()
    for fault in schedule.on("mocap_swap"):
        first = _index(fault.values[0], names, 0)
        second = _index(fault.values[1], names, first + 1)
        found[[first, second]] = found[[second, first]]
        schedule.shows(fault)
    for fault in schedule.on("mocap_teleport"):
        found[_index(fault.values[1], names, 0), 0] += fault.number()
        schedule.shows(fault)
    for fault in schedule.on("mocap_occlude"):
        found[: round(fault.number() * len(names))] = np.nan
        schedule.shows(fault)
    return found


def _index(name: object, names: list[str], default: int) -> int:
    """Where a marker stands, or a marker of the rig's choice where none is named or there is none of that name."""
    return names.index(name) if isinstance(name, str) and name in names else default % len(names)
