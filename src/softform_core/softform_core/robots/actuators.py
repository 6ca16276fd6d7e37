"""Actuators: what a robot is commanded in, with the range, slew rate and safe value of each."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots.description import Description, Finite, Positive

Quantity = Literal["pressure", "displacement"]

UNITS: dict[Quantity, str] = {"pressure": "Pa", "displacement": "m"}
"""SI unit of each quantity at every boundary of the system."""


class Actuators(Description):
    """The actuators of a robot. Values are one number for all actuators, or a list with one for each.

    Attributes:
        names: One for each input of the body, in its order; the body's own names by default.
        quantity: Commanded quantity: gauge pressure, or the displacement at a motor, such as the pull of a tendon.
        minimum: Lowest command.
        maximum: Highest command.
        slew_rate: Fastest change of a command, per second.
        safe: Command at which the robot is safe; a vented chamber has 0, a tendon its slack position.
    """

    names: Annotated[list[str], Field(min_length=1)] | None = None
    quantity: Quantity = "pressure"
    minimum: Finite | list[Finite]
    maximum: Finite | list[Finite]
    slew_rate: Positive | list[Positive]
    safe: Finite | list[Finite] = 0.0

    @property
    def unit(self) -> str:
        """SI unit of the commands."""
        return UNITS[self.quantity]

    @model_validator(mode="after")
    def _ordered(self) -> "Actuators":
        if not (np.asarray(self.minimum) < np.asarray(self.maximum)).all():
            raise ValueError(f"minimum {self.minimum} must lie below maximum {self.maximum}")
        if self.names is not None and len(set(self.names)) != len(self.names):
            raise ValueError("names must differ from each other")
        return self

    def wrong_counts(self, count: int) -> list[str]:
        """Names of the fields whose lists do not have `count` entries."""
        fields = ("names", "minimum", "maximum", "slew_rate", "safe")
        return [name for name in fields if isinstance(v := getattr(self, name), list) and len(v) != count]


def each(value: float | list[float], count: int) -> Array:
    """One number for each of `count` actuators, (count,)."""
    return np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), (count,)))


def check_within(
    robot: str, quantity: str, unit: str, names: list[str], values: Array, lowest: Array, highest: Array
) -> Array:
    """Return `values` as a float array, clipped by what rounding adds to the range.

    Args:
        robot: Name of the robot, for messages.
        quantity: Name of the values in messages.
        unit: Unit of the values in messages.
        names: Actuator or degree of freedom of each value.
        values: One for each name.
        lowest: Least allowed value of each.
        highest: Largest allowed value of each.

    Raises:
        SoftformError: On a wrong number of values, NaN or infinity, or a value outside the range.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.shape != (len(names),):
        raise SoftformError(
            f"Robot '{robot}' takes {len(names)} {quantity.lower()}s, got shape {values.shape}.",
            f"Give one {quantity.lower()} in {unit} for each of {', '.join(names)}.",
        )
    if not np.isfinite(values).all():
        bad = [names[i] for i in np.flatnonzero(~np.isfinite(values))]
        raise SoftformError(
            f"{quantity} of {', '.join(bad)} is not a finite number.", f"Give {quantity.lower()}s in {unit}."
        )
    tolerance = 1e-6 * (highest - lowest)
    outside = (values < lowest - tolerance) | (values > highest + tolerance)
    if outside.any():
        index = int(np.flatnonzero(outside)[0])
        raise SoftformError(
            f"{quantity} {values[index]:g} {unit} of {names[index]} is outside "
            f"{lowest[index]:g} … {highest[index]:g} {unit}.",
            "Stay within the range of the robot's description.",
        )
    return np.clip(values, lowest, highest)
