"""Where the frame of an emulated device stands: scanner and motion capture report in their own."""

from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform


class DevicePose(RigidTransform):
    """Where a device's frame stands in the robot's: p_robot = R p_device + t."""

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
