"""Values that a reality gives for each of several things: one number, a list, or a spread that fits any number."""

from collections.abc import Callable
from typing import Annotated, TypeAlias

import numpy as np
from pydantic import Field, model_validator

from softform_core.arrays import Array
from softform_core.robots.description import Description, Finite, NotNegative


class Spread(Description):
    """Values for any number of things: either drawn or dealt out.

    Attributes:
        mean: Mean of the normal distribution.
        deviation: Standard deviation.
        seed: Seed of the draws.
        in_turn: Values dealt out from the first thing on, beginning again at their end.
    """

    mean: Finite | None = None
    deviation: NotNegative = 0.0
    seed: Annotated[int, Field(ge=0)] = 0
    in_turn: Annotated[list[Finite], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> "Spread":
        if (self.mean is None) == (self.in_turn is None):
            raise ValueError("give either mean (with deviation and seed) or in_turn")
        return self


Values: TypeAlias = Finite | list[Finite] | Spread
"""One number for all, a list with one for each, or a spread."""


def spread_values(given: Values, count: int, field: str, accepts: Callable[[Array], Array] = np.isfinite) -> Array:
    """The value of each of `count` things, (count,), by the number, list or spread that a field of a reality gives.

    Raises:
        ValueError: If a list has another number of entries, or a value is impossible.
    """
    if isinstance(given, Spread):
        if given.in_turn is not None:
            values = np.resize(np.array(given.in_turn), count)
        else:
            assert given.mean is not None
            values = given.mean + given.deviation * np.random.default_rng(given.seed).standard_normal(count)
    elif isinstance(given, list):
        if len(given) != count:
            raise ValueError(f"{field} has {len(given)} numbers, this robot needs {count} (or one number, or a spread)")
        values = np.array(given)
    else:
        values = np.full(count, given)
    impossible = np.flatnonzero(~np.asarray(accepts(values), dtype=bool))
    if impossible.size:
        raise ValueError(f"{field} has the value {values[impossible[0]]:g}, which is not possible")
    return np.asarray(values, dtype=np.float64)


def positive(values: Array) -> Array:
    """Which values lie above zero."""
    return np.asarray(values > 0.0)


def not_negative(values: Array) -> Array:
    """Which values are not below zero."""
    return np.asarray(values >= 0.0)
