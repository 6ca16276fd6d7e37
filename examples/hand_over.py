# SPDX-License-Identifier: Apache-2.0
"""Have two arms place a soft robot that the right gripper holds, and the robot do the rest of a target by itself.

Start the arms (`./softform launch shaping`) and the robot (`./softform launch softform namespace:=finger`) first, then
`./softform python examples/hand_over.py [ARMS ROBOT]`.
"""

import sys

import numpy as np

from softform_client.client import GoalFailedError, Mode, ShapeClient
from softform_client.holding_arms import HoldingArms
from softform_client.object_client import ObjectClient
from softform_client.reach_messages import pose_from_message
from softform_core.geometry.rigid import RigidTransform
from softform_core.shapes.random import random_target
from softform_core.shapes.shape import Shape
from softform_shaping.objects import load_object
from softform_shaping.poses import motion_of, pose_of
from softform_shaping.scene import grip_centres

GRIP = RigidTransform.from_pose([0.01, 0.02, 0.05, 0.0, 0.0, 0.0, 1.0])  # of the robot's base in the gripper's frame
BESIDE = RigidTransform().moved(np.array([0.05, -0.1, 0.05]), np.array([0.01, 0.015, -0.01]), np.zeros(3))


def main(arms_space: str = "softform", robot_space: str = "finger", target: Shape | None = None) -> float:
    """Return the mean distance of the measured robot from its target, mm; the target is m, in the arms' frame."""
    with (
        ObjectClient(arms_space, timeout=30.0) as shaping,
        HoldingArms(arms_space, "right", GRIP) as arms,
        ShapeClient(robot_space, timeout=30.0) as robot,
    ):
        here = np.array(shaping.shape(np.zeros(12)).gripper_poses)  # back to the grasp
        base = arms.held(2.0).gripper.after(GRIP)
        if target is None:  # one that the robot can take, but not where it is
            place = base.after(BESIDE)
            target = random_target(robot.robot(), seed=3).transformed(place.rotation, place.translation)
        free = robot.reach(target, fix_pose=False, held_by=arms)
        wanted = base.after(pose_from_message(free.solve.target_pose).inverse())
        carry = wanted.after(base.inverse())  # both grippers, so that the object between them keeps its shape
        centres = grip_centres(load_object("sponge"))
        pairs = zip(here.reshape(2, 6), centres, strict=True)
        poses = [pose_of(carry.after(motion_of(pose, centre)), centre) for pose, centre in pairs]
        print(f"the arms go {1e3 * np.linalg.norm(poses[1][:3] - here[6:9]):.0f} mm with both grippers")
        shaping.shape(np.concatenate(poses))
        result = robot.reach(target, Mode.CLOSED_LOOP, held_by=arms)
    print(f"{1e3 * result.measured.mean_error:.2f} mm from the target where the arms hold the robot")
    return 1e3 * float(result.measured.mean_error)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:3])
    except GoalFailedError as failure:  # says what is wrong, and what to do
        sys.exit(f"[{failure.code}] {failure}")
