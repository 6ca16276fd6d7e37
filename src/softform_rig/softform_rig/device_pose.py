"""Where the frame of an emulated device stands: scanner and motion capture report in their own."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from softform_core.arrays import Array
from softform_core.errors import SoftformError


@dataclass(frozen=True)
class DevicePose:
    """Where a device's frame stands in the robot's: p_robot = R p_device + t."""

    rotation: Array
    translation: Array

    @classmethod
    def from_list(cls, registration: Sequence[float]) -> "DevicePose":
        """Pose from [x, y, z, qx, qy, qz, qw], m and unit quaternion.

        Raises:
            SoftformError: If it is not seven finite numbers with a quaternion of length one.
        """
        values = np.asarray(registration, dtype=np.float64)
        if values.shape != (7,) or not np.isfinite(values).all() or abs(np.linalg.norm(values[3:]) - 1.0) > 1e-3:
            raise SoftformError(
                f"The registration {list(registration)} is no pose.",
                "Give x, y, z (m) and a unit quaternion qx, qy, qz, qw.",
            )
        return cls(Rotation.from_quat(values[3:]).as_matrix(), values[:3])

    def into_device(self, points: Array) -> Array:
        """Points (N, 3) of the robot's frame in the device's."""
        return (points - self.translation) @ self.rotation

    def into_robot(self, points: Array) -> Array:
        """Points (N, 3) of the device's frame in the robot's."""
        return points @ self.rotation.T + self.translation
