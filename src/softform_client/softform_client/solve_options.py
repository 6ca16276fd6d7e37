"""Options of a solve, the same for the goals of every action, and between their message and a goal."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from softform_client.actuator_values import given_values, values_to_message
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_interfaces.msg import SolveOptions
from softform_ros.goal_error import GoalCode

OPTIONS = frozenset(SolveOptions.get_fields_and_field_types())
"""Names of all of them."""

MAX_STARTS = 1000
"""Most starts of a search; more never found anything better, as the search ends by itself long before."""

_UNITS = {"tolerance": "m", "max_time": "s", "preference": "mm^2"}


@dataclass(frozen=True, kw_only=True)
class SolveGoal:
    """A goal's options of its solve; None or 0: the node's default. Each action rejects what it does not take.

    Attributes:
        seed: (k,) actuator values where the solver starts, and the robot in a closed loop.
        tolerance: m, mean error at which the solver may stop.
        max_time: s for each solve, or for planning.
        starts: Number of starts of a global search; 1: no search.
        preferred: (k,) actuator values; of all solutions the nearest is taken.
        preference: mm^2 of squared error worth the whole range of an actuation.
        model: Kind of model to plan with, such as `learned` or `fem`; empty: the one in use.
        without_sim_to_real: Plan with the simulated robot alone, to compare.
        accept_unreachable: Whether the nearest shape or place is wanted even if it misses the target widely.
    """

    seed: Array | None = None
    tolerance: float = 0.0
    max_time: float = 0.0
    starts: int = 0
    preferred: Array | None = None
    preference: float = 0.0
    model: str = ""
    without_sim_to_real: bool = False
    accept_unreachable: bool = False


def check_at_most(name: str, count: int, most: int) -> None:
    """Reject a number that a goal gives for the node's default.

    Raises:
        SoftformError: If it is larger than `most`.
    """
    if count > most:
        raise SoftformError(f"{name} is {count}.", f"Give at most {most}, or 0 for the default.")


def options_from_message(
    message: SolveOptions, robot: Robot, action: str, taken: Collection[str] = OPTIONS
) -> dict[str, Any]:
    """Check the options that an action takes, and return them by the names of `SolveGoal`.

    Raises:
        SoftformError: If one is given that it does not take, or is negative, not finite or too large.
        GoalError: `INVALID_SEED`, if the robot may not be given the values of `seed` or `preferred`.
    """
    default = SolveOptions()
    for name in sorted(OPTIONS.difference(taken)):
        if getattr(message, name) != getattr(default, name):
            raise SoftformError(f"{action} does not take the option {name}.", f"Give {', '.join(sorted(taken))} only.")
    for name, unit in _UNITS.items():
        value = getattr(message, name)
        if not (np.isfinite(value) and value >= 0.0):
            raise SoftformError(f"{name} is {value} {unit}.", "Give a positive number, or 0 for the default.")
    check_at_most("starts", message.starts, MAX_STARTS)
    given = {name: getattr(message, name) for name in OPTIONS}
    for name in ("seed", "preferred"):
        given[name] = given_values(given[name], robot, GoalCode.INVALID_SEED, f"{name.capitalize()} values")
    return given


def options_to_message(goal: SolveGoal) -> SolveOptions:
    """Pack the options of a goal."""
    return SolveOptions(
        seed=values_to_message(goal.seed),
        tolerance=float(goal.tolerance),
        max_time=float(goal.max_time),
        starts=goal.starts,
        preferred=values_to_message(goal.preferred),
        preference=float(goal.preference),
        model=goal.model,
        without_sim_to_real=goal.without_sim_to_real,
        accept_unreachable=goal.accept_unreachable,
    )
