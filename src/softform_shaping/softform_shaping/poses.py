"""Poses of the two grippers, (12,): of each x, y, z in m, then the rotation vector rho in rad, relative to its grasp.

The paper's r (Eqs. 4-5) has them in the robot's frame; a difference of two is the same in both.
"""

from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from softform_core.arrays import Array
from softform_core.bodies.rotations import turns_by
from softform_core.geometry.rigid import RigidTransform

__all__ = ["GRIPPERS", "limited", "motion_of", "moved", "moves_of", "pose_of", "pose_variation", "turn_jacobian"]

GRIPPERS = 2


def pose_variation(new: Array, old: Array) -> Array:
    """Eq. 7, as angle-axis: what brings poses `old` (12,) to `new`, dr = [x - x', rho of q q'^-1] of each gripper."""
    found = np.subtract(new, old)
    for turn in _turns():
        found[turn] = (Rotation.from_rotvec(new[turn]) * Rotation.from_rotvec(old[turn]).inv()).as_rotvec()
    return found


def moved(poses: Array, variation: Array) -> Array:
    """Poses (12,) after a variation (12,), the inverse of `pose_variation`."""
    found = np.add(poses, variation)
    for turn in _turns():
        found[turn] = (Rotation.from_rotvec(variation[turn]) * Rotation.from_rotvec(poses[turn])).as_rotvec()
    return found


def turn_jacobian(poses: Array) -> Array:
    """Derivative (12, 12) of poses, as they are stored, by a small variation: V(rho)^-1 of each rotation."""
    found = np.eye(len(poses))
    for turn in _turns():
        found[turn, turn] = np.linalg.inv(turns_by(poses[turn]).mean)
    return found


def motion_of(pose: Array, centre: Array) -> RigidTransform:
    """How a gripper moves from its grasp to a pose (6,): it turns about its centre (3,) m there, and is shifted."""
    return RigidTransform().moved(pose[3:], pose[:3], centre)


def pose_of(motion: RigidTransform, centre: Array) -> Array:
    """Pose (6,) of a gripper that moved so from its grasp, the inverse of `motion_of`."""
    return np.append(motion.apply(centre) - centre, Rotation.from_matrix(motion.rotation).as_rotvec())


def limited(variation: Array, shift: float, turn: float) -> Array:
    """A variation (12,) scaled down as a whole until no gripper moves beyond `shift` m or turns beyond `turn` rad."""
    return np.asarray(variation / max(1.0, moves_of(variation, shift, turn)))


def moves_of(variation: Array, shift: float, turn: float) -> float:
    """How many moves a variation (12,) takes, in which no gripper moves beyond `shift` m or turns beyond `turn` rad."""
    sizes = np.linalg.norm(variation.reshape(GRIPPERS, 2, 3), axis=2) / np.array([shift, turn])
    return float(sizes.max())


def _turns() -> Sequence[slice]:
    return [slice(6 * gripper + 3, 6 * gripper + 6) for gripper in range(GRIPPERS)]
