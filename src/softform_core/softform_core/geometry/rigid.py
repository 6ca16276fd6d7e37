"""Rigid motions: composition, small motions, and the best motion between paired points (Kabsch)."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from softform_core.arrays import Array
from softform_core.errors import SoftformError

_UNIT_TOLERANCE = 1e-3
_MATRIX_TOLERANCE = 5e-3
"""Tolerance of R R^T against the identity: programs write matrices with three digits."""
_LEAST_WIDTH = 0.1
"""Least second extent of places over the first, at which they are not in line."""
_FARTHEST = 50.0
"""Largest distance of a device from its robot, m; beyond it, it was placed in millimetres."""

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
    def from_pose(cls, pose: ArrayLike) -> "RigidTransform":
        """Make the transform of a device's frame in the robot's, p_robot = R p_device + t.

        Args:
            pose: x, y, z (m), qx, qy, qz, qw; or the 4 x 4 matrix of R and t (m), row by row.

        Raises:
            SoftformError: If these are not seven or sixteen finite numbers, the quaternion is not of length one, the
                matrix is no rigid motion, or t is so long that it is in millimetres.
        """
        remedy = "Give x, y, z (m), qx, qy, qz, qw of the device in the robot's frame, or a 4 x 4 matrix, row by row."
        try:
            values = np.asarray(pose, dtype=np.float64).ravel()
        except (TypeError, ValueError) as error:
            raise SoftformError(f"The registration {pose!r} is no pose: {error}.", remedy) from error
        shown = ", ".join(f"{value:g}" for value in values[:16])
        if len(values) not in (7, 16) or not np.isfinite(values).all():
            raise SoftformError(
                f"The registration [{shown}] is no pose: it is not seven or sixteen finite numbers but {len(values)}.",
                remedy,
            )
        shift, turn = values[:3], values[3:]
        if len(values) == 16:
            matrix = values.reshape(4, 4)
            shift, turn = matrix[:3, 3], matrix[:3, :3]
            if np.abs(matrix[3] - [0.0, 0.0, 0.0, 1.0]).max() > _UNIT_TOLERANCE:
                raise SoftformError(
                    f"The matrix [{shown}] is no pose: its last row is not 0, 0, 0, 1.",
                    "Write it row by row, with the shift in the last column.",
                )
            if np.abs(turn @ turn.T - np.eye(3)).max() > _MATRIX_TOLERANCE or np.linalg.det(turn) < 0.0:
                raise SoftformError(
                    f"The matrix [{shown}] is no pose: it stretches or mirrors.",
                    "Register without scaling; give lengths in metres in the last column only.",
                )
        elif abs((length := float(np.linalg.norm(turn))) - 1.0) > _UNIT_TOLERANCE:
            raise SoftformError(
                f"The registration [{shown}] is no pose: its quaternion has length {length:.4g}.",
                "Give a unit quaternion in the order qx, qy, qz, qw; no rotation is 0, 0, 0, 1.",
            )
        if np.linalg.norm(shift) > _FARTHEST:
            raise SoftformError(
                f"The registration [{shown}] puts the device {np.linalg.norm(shift):.4g} m away.",
                "Give metres, not millimetres.",
            )
        return cls((Rotation.from_matrix if len(values) == 16 else Rotation.from_quat)(turn).as_matrix(), shift)

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
        """Return this motion followed by a rotation (axis times angle, rad) about `pivot` and a shift, (3,) each."""
        turn = Rotation.from_rotvec(rotation_vector).as_matrix()
        return RigidTransform(turn @ self.rotation, turn @ (self.translation - pivot) + pivot + translation)

    def after(self, first: "RigidTransform") -> "RigidTransform":
        """Return the motion that does `first`, then this one."""
        return RigidTransform(self.rotation @ first.rotation, self.apply(first.translation))

    def inverse(self) -> "RigidTransform":
        """Return the motion back."""
        return RigidTransform(self.rotation.T, -self.translation @ self.rotation)

    def quaternion(self) -> Array:
        """Return the rotation as (x, y, z, w), (4,)."""
        return np.asarray(Rotation.from_matrix(self.rotation).as_quat())

    @property
    def pose(self) -> tuple[float, float, float, float, float, float, float]:
        """The pose that `from_pose` takes: x, y, z, qx, qy, qz, qw."""
        (x, y, z), (qx, qy, qz, qw) = self.translation.tolist(), self.quaternion().tolist()
        return x, y, z, qx, qy, qz, qw

    def scaled(self, factor: float) -> "RigidTransform":
        """Return the same motion for points in another unit of length."""
        return RigidTransform(self.rotation, self.translation * factor)


def hat(v: Array) -> Array:
    """Return matrices (…, 3, 3) of the cross product with v (…, 3)."""
    found: Array = (v @ _HATS).reshape(*v.shape, 3)
    return found


def centroid(points: Array) -> Array:
    """Return the mean of points (N, 3), N > 0, as a product: numpy adds rows of three a hundred times as slowly."""
    return np.full(len(points), 1.0 / len(points)) @ points


def are_in_line(places: Array) -> bool:
    """Return whether places (N, 3), N > 0, lie so nearly in line that they leave a turn about it open."""
    extents = np.linalg.svd(places - places.mean(axis=0), compute_uv=False)
    return bool(extents[1] <= _LEAST_WIDTH * extents[0]) if len(extents) > 1 else True


def kabsch(source: Array, destination: Array) -> RigidTransform:
    """Return the least-squares rigid motion of paired points, (N, 3) each (Kabsch 1976, no mirroring).

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
