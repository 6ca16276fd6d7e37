"""Actuators: what a robot is commanded in, with quantity, range, slew rate and safe value of each."""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots.description import Description, Finite, Positive

Quantity = Literal["pressure", "displacement", "position", "rotation"]

UNITS: dict[Quantity, str] = {"pressure": "Pa", "displacement": "m", "position": "m", "rotation": "rad"}
"""SI unit of each quantity at every boundary of the system."""


class Actuators(Description):
    """The actuators of a robot. Values are one number for all actuators, or a list with one for each.

    Attributes:
        names: One for each input of the body, in its order; the body's own names by default.
        quantity: Commanded quantity: gauge pressure; the displacement at a motor, such as the pull of a tendon; a
            coordinate of a position, or a component of a rotation vector, of what holds the robot.
        minimum: Lowest command.
        maximum: Highest command.
        slew_rate: Fastest change of a command, per second.
        safe: Command at which the robot is safe; a vented chamber has 0, a tendon its slack position.
    """

    names: Annotated[list[str], Field(min_length=1)] | None = None
    quantity: Quantity | list[Quantity] = "pressure"
    minimum: Finite | list[Finite]
    maximum: Finite | list[Finite]
    slew_rate: Positive | list[Positive]
    safe: Finite | list[Finite] = 0.0

    @model_validator(mode="after")
    def _ordered(self) -> "Actuators":
        if not (np.asarray(self.minimum) < np.asarray(self.maximum)).all():
            raise ValueError(f"minimum {self.minimum} must lie below maximum {self.maximum}")
        if self.names is not None and len(set(self.names)) != len(self.names):
            raise ValueError("names must differ from each other")
        return self

    def wrong_counts(self, count: int) -> list[str]:
        """Names of the fields whose lists do not have `count` entries."""
        fields = ("names", "quantity", "minimum", "maximum", "slew_rate", "safe")
        return [name for name in fields if isinstance(v := getattr(self, name), list) and len(v) != count]


def each(value: float | list[float], count: int) -> Array:
    """One number for each of `count` actuators, (count,)."""
    return np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), (count,)))


def in_words(words: Sequence[str]) -> str:
    """Units or quantities of several values: the one that all have, or one for each, parted by commas."""
    return words[0] if len(set(words)) == 1 else ", ".join(words)


def check_within(
    robot: str,
    quantities: Sequence[str],
    units: Sequence[str],
    names: Sequence[str],
    values: Array,
    lowest: Array,
    highest: Array,
) -> Array:
    """Return `values` as a float array, clipped by what rounding adds to the range.

    Args:
        robot: Name of the robot, for messages.
        quantities: Quantity of each value.
        units: Unit of each value.
        names: Actuator or degree of freedom of each value.
        values: One for each name.
        lowest: Least allowed value of each.
        highest: Largest allowed value of each.

    Raises:
        SoftformError: On a wrong number of values, NaN or infinity, or a value outside the range.
    """
    values = np.asarray(values, dtype=np.float64)
    what = quantities[0] if len(set(quantities)) == 1 else "value"
    if values.shape != (len(names),):
        raise SoftformError(
            f"Robot '{robot}' takes {len(names)} {what}s, got shape {values.shape}.",
            f"Give one {what} in {in_words(units)} for each of {', '.join(names)}.",
        )
    if not np.isfinite(values).all():
        bad = [names[i] for i in np.flatnonzero(~np.isfinite(values)).tolist()]
        raise SoftformError(
            f"{what.capitalize()} of {', '.join(bad)} is not a finite number.", f"Give {what}s in {in_words(units)}."
        )
    tolerance = 1e-6 * (highest - lowest)
    outside = (values < lowest - tolerance) | (values > highest + tolerance)
    if outside.any():
        index = int(np.flatnonzero(outside)[0])
        unit = units[index]
        raise SoftformError(
            f"{quantities[index].capitalize()} {values[index]:g} {unit} of {names[index]} is outside "
            f"{lowest[index]:g} … {highest[index]:g} {unit}.",
            "Stay within the range of the robot's description.",
        )
    return np.clip(values, lowest, highest)
