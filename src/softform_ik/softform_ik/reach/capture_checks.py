"""Checks of a captured cloud: it must show this robot, about where it was predicted to be."""

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.frames.agreement import check_agreement
from softform_core.frames.quality import assess_cloud
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_ros.goal_error import GoalCode, in_code

_NEXT_STEP = "Check scanner, unit and registration."


@in_code(GoalCode.CAPTURE_INVALID)
def check_capture(points: Array, predicted: Array, robot: Robot) -> Array:
    """Return the points of a capture that may be believed, (M, 3) m, finite.

    Args:
        points: (N, 3) m in the robot's frame; NaN rows are points without a return.
        predicted: (P, 3) mm over `Patch.samples(P)`, where the surface was expected.
        robot: The captured robot.

    Raises:
        GoalError: CAPTURE_INVALID, if the cloud is empty, in another unit, noise, mirrored or turned, of another
            robot, or shows too little.
    """
    finite = points[np.isfinite(points).all(axis=1)]
    if len(finite) == 0:
        raise SoftformError("The captured cloud has no points.", _NEXT_STEP)
    fault = assess_cloud(finite, robot, predicted / MM_PER_M).fault
    if fault:
        raise SoftformError(f"The captured cloud cannot be true: {fault}", _NEXT_STEP)
    check_agreement(finite * MM_PER_M, predicted, robot.patches)
    return finite
