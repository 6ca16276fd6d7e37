"""Rotations between matrices and the quaternions of messages."""

import numpy as np
from geometry_msgs.msg import Quaternion
from tf_transformations import quaternion_from_matrix, quaternion_matrix

from softform_core.arrays import Array


def quaternion_of(rotation: Array) -> Quaternion:
    """Return the message of a rotation (3, 3)."""
    matrix = np.eye(4)
    matrix[:3, :3] = rotation
    x, y, z, w = (float(value) for value in quaternion_from_matrix(matrix))
    return Quaternion(x=x, y=y, z=z, w=w)


def rotation_of(message: Quaternion) -> Array:
    """Return the rotation (3, 3) of a quaternion of length one."""
    return np.asarray(quaternion_matrix([message.x, message.y, message.z, message.w])[:3, :3])
