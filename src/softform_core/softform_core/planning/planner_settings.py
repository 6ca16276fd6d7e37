"""Settings of path planning; loads nothing, so that command lines can name the algorithms."""

from dataclasses import dataclass
from typing import Literal, get_args

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
