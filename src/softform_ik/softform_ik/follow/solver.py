"""What following asks of the solver of a robot's paths."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from softform_client.follow_goal import FollowGoal, PressurePath

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SolvedWaypoint:
    """What brings the robot to a way-point.

    Attributes:
        actuation: (d,) Pa.
        error_mm: Predicted distance there: of the point, or the mean of the shape; NaN for pressures that were given.
    """

    actuation: Array
    error_mm: float


class PathSolver(Protocol):
    """Solves the paths of one robot, whose actuation has d values: its pressures, or fewer that they follow from."""

    def solve(self, goal: FollowGoal, here: Array | None, should_stop: Callable[[], bool]) -> Iterator[SolvedWaypoint]:
        """Solve the way-points, one after the other.

        Args:
            goal: Whose path.
            here: (k,) Pa of the chambers now, or None if they are not known.
            should_stop: Ends the way-point under way early; it is then not to be used.

        Raises:
            SoftformError: If one cannot be solved for.
        """

    def start(self, goal: FollowGoal, here: Array) -> Array:
        """Actuation (d,) Pa from which the path begins, when the chambers are at (k,) Pa."""

    def pressures(self, goal: FollowGoal, actuations: Array) -> Array:
        """Pressures (..., k) Pa of the chambers under actuations (..., d) Pa of a goal."""

    def uses_sim_to_real(self, goal: FollowGoal) -> bool:
        """Whether the plan of a goal sees the learned reality."""


def given_pressures(path: PressurePath) -> Iterator[SolvedWaypoint]:
    """Way-points that are pressures already."""
    return (SolvedWaypoint(pressures, float("nan")) for pressures in path.pressures)
