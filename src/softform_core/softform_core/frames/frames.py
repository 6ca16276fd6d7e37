"""Captured frames: what sim-to-real learning knows of the real robot (paper 000, Secs. II-C and III)."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.memory import PrandtlIshlinskii
from softform_core.stores.past import check_past
from softform_core.surface.patch_set import on_patches
from softform_core.units import MM_PER_M

__all__ = ["Frames", "MarkerFrames"]

_LEAST_POINTS = 100
_LARGEST_COORDINATE_M = 10.0
"""Largest coordinate, m; a larger one means a cloud in millimetres, as no robot here is ten metres long."""


@dataclass(frozen=True)
class Frames:
    """Actuations with the clouds captured under them; robot frame.

    Attributes:
        actuation: (n, k), commanded.
        clouds: n captured surfaces S_j^p, (m_j, 3) m each.
        normals: n arrays (m_j, 3) of unit normals, oriented out of the surface.
        past: (n, h, k) commanded before each, the oldest first, NaN where not known; None if nothing is.
    """

    actuation: Array
    clouds: list[Array]
    normals: list[Array]
    past: Array | None = None

    def __post_init__(self) -> None:
        """Reject frames that cannot be trained on, with their number.

        Raises:
            SoftformError: If lengths differ, a cloud is too small, in millimetres or not finite, or lacks its normals.
        """
        if not len(self.actuation) == len(self.clouds) == len(self.normals) > 0:
            raise SoftformError(
                f"{len(self.actuation)} actuations, {len(self.clouds)} clouds and {len(self.normals)} sets of normals.",
                "Give as many of each, at least one.",
            )
        for number, (actuation, cloud, normals) in enumerate(
            zip(self.actuation, self.clouds, self.normals, strict=True)
        ):
            if fault := _fault(actuation, cloud, normals):
                raise SoftformError(f"Frame {number}: {fault}.", "Capture this frame again or leave it out.")
        check_past(self.past, self.actuation)

    def __len__(self) -> int:
        return len(self.actuation)

    def effective(self, memory: PrandtlIshlinskii | None) -> "Frames":
        """Return the frames with effective instead of commanded actuations, where the past and a memory are known."""
        return (
            self
            if memory is None
            else replace(self, actuation=_effective(self.past, self.actuation, memory), past=None)
        )

    def part(self, chosen: NDArray[np.int64]) -> "Frames":
        """Return the frames of these numbers."""
        clouds, normals = [self.clouds[j] for j in chosen], [self.normals[j] for j in chosen]
        return Frames(self.actuation[chosen], clouds, normals, None if self.past is None else self.past[chosen])


@dataclass(frozen=True)
class MarkerFrames:
    """Actuations with the positions of labelled markers under them (Sec. III-C); robot frame.

    Whether labels are right is judged against the simulated shapes, by `frames.marker_checks`.

    Attributes:
        actuation: (n, k), commanded.
        names: M names, the same in every frame.
        uv: (M, 2) surface parameters (u_i, v_i) of the markers, from `registration.markers.register_markers`.
        positions: (n, M, 3) m, NaN in all three coordinates where a marker is missing.
        past: (n, h, k) commanded before each, the oldest first, NaN where not known; None if nothing is.
    """

    actuation: Array
    names: list[str]
    uv: Array
    positions: Array
    past: Array | None = None

    def __post_init__(self) -> None:
        """Reject frames that cannot be trained on, with their number.

        Raises:
            SoftformError: If shapes do not fit together, names repeat, parameters leave the unit square, or a frame has
                no marker, a coordinate that is infinite or missing alone, or millimetres.
        """
        frames, markers = len(self.actuation), len(self.names)
        if self.positions.shape != (frames, markers, 3) or self.uv.shape != (markers, 2) or not frames or not markers:
            raise SoftformError(
                f"{frames} actuations and {markers} names with positions of shape {self.positions.shape} and "
                f"parameters of shape {self.uv.shape}.",
                "Give n actuations, M names, (n, M, 3) positions and (M, 2) parameters.",
            )
        if len(set(self.names)) != markers:
            raise SoftformError("Two markers have one name.", "Give every marker a name of its own.")
        if not on_patches(self.uv).all():
            raise SoftformError("Surface parameters of markers must lie in the unit square.", "Register them again.")
        for number, (actuation, positions) in enumerate(zip(self.actuation, self.positions, strict=True)):
            if fault := _marker_fault(actuation, positions, self.names):
                raise SoftformError(f"Frame {number}: {fault}.", "Capture this frame again or leave it out.")
        check_past(self.past, self.actuation)

    def __len__(self) -> int:
        return len(self.actuation)

    @property
    def visible(self) -> NDArray[np.bool_]:
        """Mask of the captured markers, (n, M): w_c of Eq. 13."""
        return np.asarray(np.isfinite(self.positions).all(axis=2))

    def effective(self, memory: PrandtlIshlinskii | None) -> "MarkerFrames":
        """Return the frames with effective instead of commanded actuations, where the past and a memory are known."""
        return (
            self
            if memory is None
            else replace(self, actuation=_effective(self.past, self.actuation, memory), past=None)
        )

    def part(self, chosen: NDArray[np.int64]) -> "MarkerFrames":
        """Return the frames of these numbers."""
        past = None if self.past is None else self.past[chosen]
        return MarkerFrames(self.actuation[chosen], self.names, self.uv, self.positions[chosen], past)


def _effective(past: Array | None, actuation: Array, memory: PrandtlIshlinskii | None) -> Array:
    return actuation if past is None or memory is None else memory.effective_after(past, actuation)


def _marker_fault(actuation: Array, positions: Array, names: list[str]) -> str | None:
    if not np.isfinite(actuation).all():
        return "its actuation is not finite"
    missing = np.isnan(positions).all(axis=1)
    if missing.all():
        return "no marker is visible"
    broken = ~missing & ~np.isfinite(positions).all(axis=1)
    if broken.any():
        which = ", ".join(names[index] for index in np.flatnonzero(broken))
        return f"coordinates of {which} are infinite or missing in part; a missing marker is NaN in all three"
    if np.abs(positions[~missing]).max() > _LARGEST_COORDINATE_M:
        largest = np.abs(positions[~missing]).max()
        return f"a coordinate of {largest:.0f} m: the markers seem to be in units of {1 / MM_PER_M} m"
    return None


def _fault(actuation: Array, cloud: Array, normals: Array) -> str | None:
    if not np.isfinite(actuation).all():
        return "its actuation is not finite"
    if cloud.ndim != 2 or cloud.shape[1] != 3 or cloud.shape != normals.shape:
        return f"points of shape {cloud.shape} with normals of shape {normals.shape}, not (m, 3) both"
    if len(cloud) < _LEAST_POINTS:
        return f"{len(cloud)} points are too few, {_LEAST_POINTS} are needed"
    if not (np.isfinite(cloud).all() and np.isfinite(normals).all()):
        return "it has points or normals that are not finite"
    if np.abs(cloud).max() > _LARGEST_COORDINATE_M:
        return f"a coordinate of {np.abs(cloud).max():.0f} m: the cloud seems to be in units of {1 / MM_PER_M} m"
    if np.abs(np.linalg.norm(normals, axis=1) - 1.0).max() > 1e-2:
        return "its normals are not unit vectors"
    return None
