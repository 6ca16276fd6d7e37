# SPDX-License-Identifier: Apache-2.0
"""Have two arms place a soft robot that the right gripper holds, and the robot do the rest of a target by itself.

Start arms and robot first (`./softform launch shaping`, `./softform launch softform namespace:=finger`), then
`./softform python examples/hand_over.py [ARMS ROBOT]`.
"""

import sys
from math import dist

import numpy as np
from scipy.spatial.transform import Rotation

from softform_client.client import GoalFailedError, Mode, ShapeClient
from softform_client.holding_arms import HoldingArms
from softform_client.object_client import ObjectClient
from softform_core.shapes.random import random_target

GRIP = [0.01, 0.02, 0.05, 0.0, 0.0, 0.0, 1.0]  # of the robot's base in the gripper's frame: x, y, z (m), quaternion
BESIDE = Rotation.from_rotvec([0.05, -0.1, 0.05]).as_matrix(), np.array([0.01, 0.015, -0.01])  # of the target


def main(arms: str = "softform", robot: str = "finger") -> float:
    """Return the mean distance of the measured robot from a target that it does not reach alone, mm."""
    with ObjectClient(arms) as shaping, HoldingArms(arms, "right", GRIP) as holding, ShapeClient(robot) as held:
        here = shaping.shape([0.0] * 12).gripper_poses  # back to the grasp
        base = holding.base()
        target = random_target(held.robot(), seed=3).transformed(*BESIDE).transformed(base.rotation, base.translation)
        there = holding.carry(held.reach(target, fix_pose=False, held_by=holding), here)
        shaping.shape(there)
        error = 1e3 * float(held.reach(target, Mode.CLOSED_LOOP, held_by=holding).measured.mean_error)
    print(f"{error:.2f} mm are left, after the arms went {1e3 * dist(there[6:9], here[6:9]):.0f} mm with the robot")
    return error


if __name__ == "__main__":
    try:
        main(*sys.argv[1:3])
    except GoalFailedError as failure:  # says what is wrong, and what to do
        sys.exit(f"[{failure.code}] {failure}")
