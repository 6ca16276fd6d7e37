"""Request, settings and result of motion planning."""

import enum
from dataclasses import dataclass, field
from typing import Literal, get_args

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.planning.goals import GoalSolution, PointGoal
from softform_core.planning.obstacles import Obstacle
from softform_core.shapes.shape import Shape

Algorithm = Literal["rrt_connect", "rrt_star"]
"""`rrt_connect` ends with the first path, which shortcuts then smooth; `rrt_star` goes on improving it for its time."""

ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)


@dataclass(frozen=True)
class PlannerSettings:
    """How paths are planned.

    Attributes:
        algorithm: Name of the algorithm.
        seed: Seed of the samples, at least 1.
        max_seconds: Time for finding goals and path and for smoothing, together.
        improve_seconds: Part of it for `rrt_star` after its first path, s.
    """

    algorithm: Algorithm = "rrt_connect"
    seed: int = 1
    max_seconds: float = 30.0
    improve_seconds: float = 5.0


class Rejection(enum.Enum):
    """Reasons for which no motion was found."""

    OBSTACLE_ENCLOSES = enum.auto()
    START_IN_COLLISION = enum.auto()
    GOAL_IN_COLLISION = enum.auto()
    UNREACHABLE = enum.auto()
    NO_PATH = enum.auto()
    STOPPED = enum.auto()


class NoMotionError(SoftformError):
    """There is no motion."""

    def __init__(self, rejection: Rejection, message: str, next_step: str) -> None:
        super().__init__(message, next_step)
        self.rejection = rejection


@dataclass(frozen=True)
class MotionRequest:
    """A request for a motion.

    Attributes:
        start: (k,), where the robot is.
        goal: Target shape, m; or a place of a named point; or (k,).
        obstacle: Obstacle to keep clear of.
        clearance: m that stays between surface and obstacle beside the allowance.
    """

    start: Array
    goal: Shape | PointGoal | Array
    obstacle: Obstacle
    clearance: float


@dataclass(frozen=True)
class MotionSettings:
    """Settings of how a motion is planned.

    Attributes:
        planner: Algorithm that found the path.
        goal_starts: Inverse kinematics is solved from so many starts.
        goal_seconds: Time limit of each goal solve, s.
        waypoint_spacing: No point of the surface moves further between waypoints, m.
        most_error_mm: A target whose nearest shape misses it by more, in the mean, is out of reach.
    """

    planner: PlannerSettings = field(default_factory=PlannerSettings)
    goal_starts: int = 6
    goal_seconds: float = 2.0
    waypoint_spacing: float = 0.001
    most_error_mm: float = float("inf")


@dataclass(frozen=True)
class Progress:
    """Stage of planning (`goal`, `planning` or `smoothing`), seconds so far and number of measured surfaces."""

    stage: str
    seconds: float
    states_checked: int


@dataclass(frozen=True)
class MotionPlan:
    """A motion whose predicted surfaces keep their margin everywhere.

    Attributes:
        actuations: (n, k), the start first.
        times: (n,) s after the start.
        clearances: (n,) m between predicted surface and obstacle; at most 40 mm are reported.
        margins: (n,) m that were kept: the clearance asked for and the largest allowance around the closest place.
        goal: Shape at which the motion ends.
        corners: (m, k) between which the motion is straight.
        states_checked: Surfaces measured.
        seconds: Duration, s.
    """

    actuations: Array
    times: Array
    clearances: Array
    margins: Array
    goal: GoalSolution
    corners: Array
    states_checked: int
    seconds: float
