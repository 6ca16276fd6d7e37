"""Quaternions (x, y, z, w) and homogeneous matrices (4, 4), as ROS's package of this name has them."""

import numpy as np
import transforms3d
from numpy.typing import ArrayLike, NDArray


def quaternion_from_matrix(matrix: ArrayLike) -> NDArray[np.float64]:
    """The quaternion (4,) of the rotation in a matrix (4, 4)."""
    w, x, y, z = transforms3d.quaternions.mat2quat(np.asarray(matrix)[:3, :3])
    return np.array([x, y, z, w])


def quaternion_matrix(quaternion: ArrayLike) -> NDArray[np.float64]:
    """The matrix (4, 4) that turns as a quaternion (4,) does, and moves by nothing."""
    x, y, z, w = np.asarray(quaternion, dtype=np.float64)
    matrix = np.eye(4)
    matrix[:3, :3] = transforms3d.quaternions.quat2mat([w, x, y, z])
    return matrix
