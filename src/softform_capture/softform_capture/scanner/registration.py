"""The rigid pose that takes a scanner's frame into the robot's."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from softform_core.errors import SoftformError
from softform_core.shapes.target import TargetShape

_UNIT_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Registration:
    """Pose of the scanner in the robot's frame: p_robot = R p_scanner + t, with R (3, 3) and t (3,) m."""

    rotation: NDArray[np.float64]
    translation: NDArray[np.float64]

    @classmethod
    def from_pose(cls, pose: Sequence[float]) -> "Registration":
        """Registration from x, y, z (m) and a unit quaternion qx, qy, qz, qw.

        Raises:
            SoftformError: If these are not seven finite numbers, or the quaternion is not of length one.
        """
        values = np.asarray(pose, dtype=np.float64)
        if values.shape != (7,) or not np.isfinite(values).all():
            raise SoftformError(
                f"The registration {list(pose)} is not seven finite numbers.",
                "Give the scanner's pose in the robot's frame: x, y, z (m), qx, qy, qz, qw.",
            )
        length = float(np.linalg.norm(values[3:]))
        if abs(length - 1.0) > _UNIT_TOLERANCE:
            raise SoftformError(
                f"The quaternion of the registration has length {length:.4g}.",
                "Give a unit quaternion in the order qx, qy, qz, qw; no rotation is 0, 0, 0, 1.",
            )
        return cls(Rotation.from_quat(values[3:]).as_matrix(), values[:3])

    def to_robot(self, shape: TargetShape) -> TargetShape:
        """A shape of the scanner's frame in the robot's; both in metres."""
        return shape.transformed(self.rotation, self.translation)
