"""The limit at which a plan does not fit its target, and the error with which a goal then ends."""

import numpy as np
from numpy.typing import NDArray

from softform_core.inverse.out_of_reach import OutOfReachError, check_reach
from softform_ros.goal_error import GoalError
from softform_ros.parameters import Parameter

REACH_PARAMETER = Parameter(
    "max_relative_error",
    0.4,
    "a target that is missed by more than this share of the robot's largest deformation is out of reach",
    0.01,
    10.0,
)
"""On the membrane (37 mm) 0.4 is 15 mm in the mean. Nearest shapes of targets that are only too high, too wavy or noisy
stay below, of those that are upside down, turned by 45 degrees or a robot's length away above: see
`test_inverse_out_of_reach.py`."""

TIP_REACH_PARAMETER = Parameter(
    "max_relative_tip_error",
    0.05,
    "a waypoint that a tip misses by more than this share of the largest distance between two of its places is out of "
    "reach",
    0.001,
    10.0,
)
"""A tip reaches a place or not: there is no mean over many points that a poor fit could raise. See
`test_ik_follow_tip.py`."""

OVERRIDE = "A goal with accept_unreachable takes the nearest shape nevertheless."


def check_reachable(
    mean_error_mm: float,
    miss_mm: NDArray[np.float64],
    most_mm: float,
    code: int,
    what: str = "target",
    cut_short: bool = False,
) -> None:
    """Let no goal go on whose plan does not fit; arguments as of `check_reach`.

    Raises:
        GoalError: With the code given, its action's `UNREACHABLE`.
    """
    try:
        check_reach(mean_error_mm, miss_mm, most_mm, what, cut_short)
    except OutOfReachError as error:
        raise GoalError(code, error.message, f"Nothing was moved. {error.next_step} {OVERRIDE}") from error
