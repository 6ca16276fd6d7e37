"""Values by which realities of bodies differ: given for each of several things, spread over them, or drawn."""

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
from pydantic import Field, model_validator

from softform_core.arrays import Array
from softform_core.robots.description import Description, Finite, Material, NotNegative, Place
from softform_core.simulation.materials import shear_modulus


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


def one_or_each(values: Array) -> float | list[float]:
    """One number where all values (k,) are the same, else each: so a reality of equal actuators fits any number."""
    return values.tolist() if np.ptp(values) else float(values[0])


def log_uniform(draw: np.random.Generator, low: float, high: float) -> float:
    """A number whose logarithm is uniform between those of `low` and `high`."""
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def some_of(fields: Mapping[str, Any], chances: Mapping[str, float], draw: np.random.Generator) -> dict[str, Any]:
    """The fields that a reality has, each with its chance; all are drawn before: a chance changes no other field."""
    return {name: value for name, value in fields.items() if draw.random() < chances[name]}


class Stiffening(NamedTuple):
    """Ranges of what is drawn of laws that stiffen: Gent's limit of I1 - 3, Yeoh's c2 and c3 over the shear modulus."""

    limit: tuple[float, float]
    second: tuple[float, float]
    third: tuple[float, float]


SHEETS = Stiffening((6.0, 14.0), (0.0, 0.01), (0.005, 0.02))
SOLIDS = Stiffening((8.0, 20.0), (0.01, 0.03), (0.02, 0.05))


def another_silicone(
    material: Material, stiffness: tuple[float, float], stiffening: Stiffening, draw: np.random.Generator
) -> Material:
    """A material by Gent's law or Yeoh's, whose shear modulus is within `stiffness` of the described one."""
    modulus = shear_modulus(material) * log_uniform(draw, *stiffness)
    gent = [modulus, draw.uniform(*stiffening.limit)]
    yeoh = [0.5 * modulus, draw.uniform(*stiffening.second) * modulus, draw.uniform(*stiffening.third) * modulus]
    if draw.random() < 0.5:
        return Material(law="gent", coefficients=gent)
    return Material(law="yeoh", coefficients=yeoh)


def tilted(gravity: Place, tilt: np.ndarray) -> Place:
    """Gravity (m/s^2) as a robot feels it that is tilted by two small angles (2,) rad."""
    x, y, z = np.asarray(gravity) + np.linalg.norm(gravity) * np.array([*tilt, 0.0])
    return float(x), float(y), float(z)
