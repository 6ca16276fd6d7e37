# SPDX-License-Identifier: Apache-2.0
"""Have two arms place a soft robot that the right gripper holds, and the robot do the rest of a target by itself.

Start the arms (`./softform launch shaping`) and the robot (`./softform launch softform namespace:=finger`) first, then
`./softform python examples/hand_over.py [ARMS ROBOT]`.
"""

import sys

import numpy as np
from scipy.spatial.transform import Rotation

from softform_client.client import GoalFailedError, Mode, ShapeClient
from softform_client.holding_arms import HoldingArms
from softform_client.object_client import ObjectClient
from softform_core.shapes.random import random_target
from softform_core.shapes.shape import Shape

GRIP = [0.01, 0.02, 0.05, 0.0, 0.0, 0.0, 1.0]  # of the robot's base in the gripper's frame: x, y, z (m), quaternion
BESIDE = Rotation.from_rotvec([0.05, -0.1, 0.05]).as_matrix(), np.array([0.01, 0.015, -0.01])


def main(arms_space: str = "softform", robot_space: str = "finger", target: Shape | None = None) -> float:
    """Return the mean distance of the measured robot from its target, mm; the target is m, in the arms' frame."""
    with (
        ObjectClient(arms_space, timeout=30.0) as shaping,
        HoldingArms(arms_space, "right", GRIP) as arms,
        ShapeClient(robot_space, timeout=30.0) as robot,
    ):
        here = np.array(shaping.shape(np.zeros(12)).gripper_poses)  # back to the grasp
        if target is None:  # one that the robot can take, but not where it is
            base = arms.held(2.0).gripper.after(arms.grip)
            target = random_target(robot.robot(), seed=3).transformed(*BESIDE)
            target = target.transformed(base.rotation, base.translation)
        poses = arms.carry(robot.reach(target, fix_pose=False, held_by=arms), here)
        print(f"the arms go {1e3 * np.linalg.norm(poses[6:9] - here[6:9]):.0f} mm with the robot")
        shaping.shape(poses)
        result = robot.reach(target, Mode.CLOSED_LOOP, held_by=arms)
    print(f"{1e3 * result.measured.mean_error:.2f} mm from the target where the arms hold the robot")
    return 1e3 * float(result.measured.mean_error)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:3])
    except GoalFailedError as failure:  # says what is wrong, and what to do
        sys.exit(f"[{failure.code}] {failure}")
