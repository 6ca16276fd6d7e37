"""Rigid motions: composition, small motions, and the best motion between paired points (Kabsch)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.transform import Rotation

from softform_core.arrays import Array
from softform_core.errors import SoftformError

_UNIT_TOLERANCE = 1e-3

_HATS = np.cross(np.eye(3)[:, None], np.eye(3)).swapaxes(1, 2).reshape(3, 9)
"""`hat` of each unit vector."""


@dataclass(frozen=True)
class RigidTransform:
    """x -> R x + t.

    Attributes:
        rotation: (3, 3) proper rotation R.
        translation: (3,) t, in the unit of the points it is applied to.
    """

    rotation: Array = field(default_factory=lambda: np.eye(3))
    translation: Array = field(default_factory=lambda: np.zeros(3))

    @classmethod
    def from_pose(cls, pose: Sequence[float]) -> "RigidTransform":
        """Where a device's frame stands in the robot's, p_robot = R p_device + t, from x, y, z (m), qx, qy, qz, qw.

        Raises:
            SoftformError: If these are not seven finite numbers, or the quaternion is not of length one.
        """
        values = np.asarray(pose, dtype=np.float64)
        if values.shape != (7,) or not np.isfinite(values).all():
            raise SoftformError(
                f"The registration {list(pose)} is no pose: it is not seven finite numbers.",
                "Give the device's pose in the robot's frame: x, y, z (m), qx, qy, qz, qw.",
            )
        length = float(np.linalg.norm(values[3:]))
        if abs(length - 1.0) > _UNIT_TOLERANCE:
            raise SoftformError(
                f"The registration {list(pose)} is no pose: its quaternion has length {length:.4g}.",
                "Give a unit quaternion in the order qx, qy, qz, qw; no rotation is 0, 0, 0, 1.",
            )
        return cls(Rotation.from_quat(values[3:]).as_matrix(), values[:3])

    def apply(self, points: Array) -> Array:
        """Move points, (..., 3) -> (..., 3)."""
        return points @ self.rotation.T + self.translation

    def apply_inverse(self, points: Array) -> Array:
        """Move points back, (..., 3) -> (..., 3)."""
        return (points - self.translation) @ self.rotation

    def rotate(self, vectors: Array) -> Array:
        """Rotate directions, (..., 3) -> (..., 3)."""
        return vectors @ self.rotation.T

    def moved(self, rotation_vector: Array, translation: Array, pivot: Array) -> "RigidTransform":
        """This motion followed by a rotation (axis times angle, rad) about `pivot` and a translation, (3,) each."""
        turn = Rotation.from_rotvec(rotation_vector).as_matrix()
        return RigidTransform(turn @ self.rotation, turn @ (self.translation - pivot) + pivot + translation)

    def after(self, first: "RigidTransform") -> "RigidTransform":
        """The motion that does `first`, then this one."""
        return RigidTransform(self.rotation @ first.rotation, self.apply(first.translation))

    def inverse(self) -> "RigidTransform":
        """The motion back."""
        return RigidTransform(self.rotation.T, -self.translation @ self.rotation)

    def quaternion(self) -> Array:
        """The rotation as (x, y, z, w), (4,)."""
        return np.asarray(Rotation.from_matrix(self.rotation).as_quat())

    def scaled(self, factor: float) -> "RigidTransform":
        """The same motion for points in another unit of length."""
        return RigidTransform(self.rotation, self.translation * factor)


def hat(v: Array) -> Array:
    """Matrices (…, 3, 3) of the cross product with v (…, 3)."""
    found: Array = (v @ _HATS).reshape(*v.shape, 3)
    return found


def centroid(points: Array) -> Array:
    """Mean of points (N, 3), N > 0, as a product: numpy adds rows of three a hundred times as slowly."""
    return np.full(len(points), 1.0 / len(points)) @ points


def kabsch(source: Array, destination: Array) -> RigidTransform:
    """Rigid motion of paired points, (N, 3) each, with the least squared error (Kabsch 1976, no mirroring).

    Raises:
        SoftformError: On fewer than three pairs.
    """
    if source.shape != destination.shape or source.ndim != 2 or len(source) < 3:
        raise SoftformError(
            f"A rigid motion needs at least three pairs of points, got {source.shape} and {destination.shape}.",
            "Give two (N, 3) arrays.",
        )
    source_mean, destination_mean = centroid(source), centroid(destination)
    covariance = (source - source_mean).T @ (destination - destination_mean)
    u, _, vt = np.linalg.svd(covariance)
    mirror = np.sign(np.linalg.det(vt.T @ u.T)) or 1.0
    rotation = vt.T @ np.diag([1.0, 1.0, mirror]) @ u.T
    return RigidTransform(rotation, destination_mean - rotation @ source_mean)
