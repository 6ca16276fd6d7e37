"""The actuation map: from m degrees of freedom, which models and solvers know, to k actuators, which devices drive."""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from softform_core.arrays import Array
from softform_core.robots.actuators import each
from softform_core.robots.description import Description, Finite


class ActuationMap(Description):
    """A map from an actuation (m,) to commands of the actuators (k,); by default each actuator is a degree of freedom.

    A degree of freedom has the unit of the actuators that it moves, which is one.
    """

    def names_of(self, actuators: list[str]) -> list[str]:
        """Names of the m degrees of freedom."""
        return actuators

    def units_of(self, units: Sequence[str]) -> list[str]:
        """Unit of each degree of freedom, (m,), from those of the actuators (k,)."""
        return list(units)

    def range_of(self, minimum: Array, maximum: Array) -> tuple[Array, Array]:
        """Lowest and highest value of each degree of freedom, (m,) each, from those of the actuators (k,)."""
        return minimum, maximum

    def slew_of(self, slew_rate: Array) -> Array:
        """Fastest change of each degree of freedom, (m,), at which no actuator exceeds its own, (k,)."""
        return slew_rate

    def actuators_of(self, actuation: Array) -> Array:
        """Commands (…, k) of an actuation (…, m)."""
        return actuation

    def actuation_of(self, values: Array) -> Array:
        """Actuation (…, m) that explains measured values of the actuators (…, k) best."""
        return values

    def wrong(self, minimum: Array, maximum: Array, units: Sequence[str]) -> str | None:
        """What does not fit actuators of these ranges and units, (k,) each; None if all does."""
        return None


class Identity(ActuationMap):
    """Each actuator is a degree of freedom: what a robot without a described map has."""

    kind: Literal["identity"] = "identity"


class Antagonistic(ActuationMap):
    """Actuators in pairs of which one works at a time: +a drives the first and -a the second (paper 001, Sec. III-A2).

    The pairs follow the order of the actuators. Their minimum is 0.
    """

    kind: Literal["antagonistic"]

    def names_of(self, actuators: list[str]) -> list[str]:
        """Names of the first of each pair, less their sign: s1+ and s1- make s1."""
        return [name.rstrip("+") for name in actuators[::2]]

    def units_of(self, units: Sequence[str]) -> list[str]:
        """Unit of the first of each pair."""
        return list(units[::2])

    def range_of(self, minimum: Array, maximum: Array) -> tuple[Array, Array]:
        """From the second's maximum, with a minus, to the first's."""
        return -maximum[1::2], maximum[::2]

    def slew_of(self, slew_rate: Array) -> Array:
        """Slew rate of the slower actuator of each pair."""
        return np.minimum(slew_rate[::2], slew_rate[1::2])

    def actuators_of(self, actuation: Array) -> Array:
        """The positive part drives the first of a pair, the negative part the second."""
        sides = np.stack([np.maximum(actuation, 0.0), np.maximum(-actuation, 0.0)], axis=-1)
        return sides.reshape(*actuation.shape[:-1], -1)

    def actuation_of(self, values: Array) -> Array:
        """The difference of each pair."""
        return values[..., ::2] - values[..., 1::2]

    def wrong(self, minimum: Array, maximum: Array, units: Sequence[str]) -> str | None:
        """An odd number of actuators, a pair of two units, or one whose minimum is not 0."""
        if len(minimum) % 2:
            return "antagonistic actuators come in pairs: an even number of them is needed"
        if units[::2] != units[1::2]:
            return "antagonistic actuators of a pair have one quantity"
        return None if not minimum.any() else "antagonistic actuators have the minimum 0"


class Linear(ActuationMap):
    """Commands are `matrix` times the actuation plus `offsets`, so that 6 degrees of freedom may drive 9 chambers.

    Attributes:
        names: Names of the m degrees of freedom.
        matrix: k rows, one for each actuator, of m numbers.
        offsets: One for each actuator, or one number for all.
        minimum: Lowest value of each degree of freedom, or one number for all.
        maximum: Highest value of each degree of freedom, or one number for all.
    """

    kind: Literal["linear"]
    names: Annotated[list[str], Field(min_length=1)]
    matrix: Annotated[list[list[Finite]], Field(min_length=1)]
    offsets: Finite | list[Finite] = 0.0
    minimum: Finite | list[Finite]
    maximum: Finite | list[Finite]

    @model_validator(mode="after")
    def _consistent(self) -> "Linear":
        count = len(self.names)
        if len(set(self.names)) != count:
            raise ValueError("names must differ from each other")
        if any(len(row) != count for row in self.matrix):
            raise ValueError(f"each row of matrix must have {count} numbers, one for each of names")
        for name in ("minimum", "maximum"):
            if isinstance(value := getattr(self, name), list) and len(value) != count:
                raise ValueError(f"{name} must have {count} numbers, one for each of names")
        if not (np.asarray(self.minimum) < np.asarray(self.maximum)).all():
            raise ValueError(f"minimum {self.minimum} must lie below maximum {self.maximum}")
        if np.linalg.matrix_rank(np.array(self.matrix)) < count:
            raise ValueError("matrix must have full column rank: some degrees of freedom move the same actuators alike")
        return self

    def names_of(self, actuators: list[str]) -> list[str]:
        """As described."""
        return self.names

    def units_of(self, units: Sequence[str]) -> list[str]:
        """Unit of the first actuator that each degree of freedom moves; all that it moves have it."""
        return [units[index] for index in (np.array(self.matrix) != 0.0).argmax(axis=0).tolist()]

    def range_of(self, minimum: Array, maximum: Array) -> tuple[Array, Array]:
        """As described."""
        count = len(self.names)
        return each(self.minimum, count), each(self.maximum, count)

    def slew_of(self, slew_rate: Array) -> Array:
        """Each actuator's slew rate is shared by the degrees of freedom that move it."""
        gains = np.abs(np.array(self.matrix))
        sums = gains.sum(axis=1)
        shared = np.divide(slew_rate, sums, out=np.full(len(sums), np.inf), where=sums > 0.0)
        return np.array([shared[gains[:, j] > 0.0].min() for j in range(gains.shape[1])])

    def actuators_of(self, actuation: Array) -> Array:
        """The matrix times the actuation plus the offsets."""
        return actuation @ np.array(self.matrix).T + np.asarray(self.offsets, dtype=np.float64)

    def actuation_of(self, values: Array) -> Array:
        """Least squares."""
        return (values - np.asarray(self.offsets, dtype=np.float64)) @ np.linalg.pinv(np.array(self.matrix)).T

    def wrong(self, minimum: Array, maximum: Array, units: Sequence[str]) -> str | None:
        """Rows or offsets of another number, several units in a column, or commands that leave an actuator's range."""
        count = len(minimum)
        if len(self.matrix) != count:
            return f"matrix has {len(self.matrix)} rows, the robot has {count} actuators"
        if isinstance(self.offsets, list) and len(self.offsets) != count:
            return f"offsets has {len(self.offsets)} numbers, the robot has {count} actuators"
        for name, column in zip(self.names, np.array(self.matrix).T, strict=True):
            if len(moved := {units[index] for index in np.flatnonzero(column).tolist()}) > 1:
                return f"'{name}' moves actuators in {' and '.join(sorted(moved))}; those of one have one unit"
        gains, (low, high) = np.array(self.matrix), self.range_of(minimum, maximum)
        offsets = np.asarray(self.offsets, dtype=np.float64)
        lowest = np.where(gains > 0.0, gains * low, gains * high).sum(axis=1) + offsets
        highest = np.where(gains > 0.0, gains * high, gains * low).sum(axis=1) + offsets
        tolerance = 1e-6 * (maximum - minimum)
        for index in np.flatnonzero((lowest < minimum - tolerance) | (highest > maximum + tolerance)):
            return (
                f"its range drives actuator {index + 1} between {lowest[index]:g} and {highest[index]:g}, "
                f"which works between {minimum[index]:g} and {maximum[index]:g}"
            )
        return None


AnyMap = Annotated[Identity | Antagonistic | Linear, Field(discriminator="kind")]
