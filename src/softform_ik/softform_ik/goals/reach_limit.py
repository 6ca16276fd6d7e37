"""Limits of a goal's solve, and the error with which a goal ends whose plan does not fit its target."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_core.inverse.out_of_reach import OutOfReachError, check_reach
from softform_ros.goal_error import GoalCode, GoalError
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


@dataclass(frozen=True)
class ReachSettings:
    """Limits of a solve and of the closed loop when the goal does not say; the node has a parameter for each.

    Attributes:
        tolerance: Mean error at which a solve may stop, m.
        max_time: Time limit of a solve, s.
        max_iterations: Most iterations of a solve.
        starts: Number of starts of a global search; 1: no search.
        preference: Squared error worth an actuator's whole range from the preferred values, mm^2.
        max_rounds: Closed loop: corrections after the open-loop round at most.
        gain: Closed loop: share of each measured residual that is added, 0 … 1.
        least_improvement: Closed loop: share by which the corrected prediction must promise to lower the mean error.
        most_error_mm: A target that is missed by more, in the mean, is out of reach.
    """

    tolerance: float = 1e-4
    max_time: float = 5.0
    max_iterations: int = 200
    starts: int = 1
    preference: float = 0.01
    max_rounds: int = 5
    gain: float = 1.0
    least_improvement: float = 0.005
    most_error_mm: float = float("inf")


def check_reachable(
    mean_error_mm: float,
    miss_mm: NDArray[np.float64],
    most_mm: float,
    what: str = "target",
    cut_short: bool = False,
) -> None:
    """Let no goal go on whose plan does not fit; arguments as of `check_reach`.

    Raises:
        GoalError: `UNREACHABLE`.
    """
    try:
        check_reach(mean_error_mm, miss_mm, most_mm, what, cut_short)
    except OutOfReachError as error:
        next_step = f"Nothing was moved. {error.next_step} {OVERRIDE}"
        raise GoalError(GoalCode.UNREACHABLE, error.message, next_step) from error
