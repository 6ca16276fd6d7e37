"""The arms of a description, around the object that it names."""

import numpy as np

from softform_core.errors import SoftformError
from softform_core.robots import Robot, load_robot
from softform_core.robots.actuators import each
from softform_shaping.arms import ArmLimits, TwoArms, two_small_arms
from softform_shaping.arms_body import JOINTS, TwoArmsBody
from softform_shaping.objects import ShapedObject
from softform_shaping.scene import grip_centres

__all__ = ["arms_of", "object_of"]

_SAME = 1e-3
"""rad by which a described start may differ from where an arm grasps the object."""


def object_of(name_or_path: str) -> tuple[Robot, str]:
    """The described arms, and the name of the object that they hold.

    Raises:
        SoftformError: If the description is wrong, or one of something else.
    """
    robot = load_robot(name_or_path)
    if not isinstance(robot.body, TwoArmsBody):
        raise SoftformError(
            f"Robot '{robot.name}' is no two arms, but a {robot.body.kind}.", "Take config/arms/two_arms.yaml."
        )
    return robot, robot.body.object


def arms_of(robot: Robot, described: ShapedObject) -> TwoArms:
    """Kinematics of described arms around an object, within the limits of the description.

    Raises:
        SoftformError: If an arm cannot reach its grasp, or the described start is not there.
    """
    settings, count = robot.devices[0].settings, 2 * JOINTS
    limits = [
        ArmLimits(*(values[part] for values in (robot.actuator_min, robot.actuator_max, robot.slew_rate, fastest)))
        for fastest in [each(settings["acceleration"], count)]
        for part in (slice(JOINTS), slice(JOINTS, None))
    ]
    arms = two_small_arms(grip_centres(described), limits)
    if np.abs(np.reshape(settings["start"], (2, JOINTS)) - arms.joints).max() > _SAME:
        found = ", ".join(f"{value:.6f}" for value in arms.joints.ravel())
        raise SoftformError(
            f"The arms of '{robot.name}' do not start where they grasp the object.", f"Give start: [{found}]."
        )
    return arms
