"""The rigid pose that takes a scanner's frame into the robot's."""

from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform

_UNIT_TOLERANCE = 1e-3


def registration_from_pose(pose: Sequence[float]) -> RigidTransform:
    """What takes points of a scanner into the robot's frame, m: its x, y, z (m) and unit quaternion qx, qy, qz, qw.

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
    return RigidTransform(Rotation.from_quat(values[3:]).as_matrix(), values[:3])
