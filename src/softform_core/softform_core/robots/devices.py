"""Devices: which device and channel serves each actuator, and how far measured values may lie from commanded ones."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from softform_core.arrays import Array
from softform_core.robots.actuators import UNITS, Quantity
from softform_core.robots.description import Description, NotNegative, Positive

DEAD_MAN = "dead_man"
"""Kind of the devices that serve no actuator, but cut the supply of what does."""

Tolerance = Literal["settle", "arrive", "follow", "beyond_range", "vent_threshold"]

_SHARES: dict[Tolerance, tuple[float, float]] = {
    "settle": (0.02, 0.1),
    "arrive": (0.05, 0.25),
    "follow": (0.2, 0.5),
    "beyond_range": (0.2, 0.5),
    "vent_threshold": (0.04, 0.25),
}
"""Of the narrowest range among the actuators of one quantity: each tolerance by default, and at most, so that something
is watched."""

_PRESSURE_ONLY: Tolerance = "vent_threshold"


class Tolerances(Description):
    """How a driver judges one actuator; in its unit.

    Attributes:
        settle: An actuator whose mean is this near to its command counts as settled.
        arrive: Settled actuators must be this near to the command for a motion to count as done.
        follow: An actuator further from its setpoint than this does not follow it.
        beyond_range: A measured value further outside the range than this is a fault.
        vent_threshold: A pneumatic board vents a channel this far above its target; None of another quantity.
    """

    settle: Positive
    arrive: Positive
    follow: Positive
    beyond_range: NotNegative
    vent_threshold: Positive | None = None

    @classmethod
    def within(cls, given: Mapping[Tolerance, float], span: float, quantity: Quantity) -> "Tolerances":
        """Those that are given, the others in proportion to `span`, the narrowest range among actuators of a quantity.

        Raises:
            ValueError: If one is negative or no number, or too large for that range.
        """
        shares = {name: share for name, share in _SHARES.items() if name != _PRESSURE_ONLY or quantity == "pressure"}
        given, unit = {name: value for name, value in given.items() if name in shares}, UNITS[quantity]
        for name, value in given.items():
            if not value >= 0.0:
                raise ValueError(f"tolerances.{name}: Input should be greater than or equal to 0, is {value:g} {unit}")
            if value > (largest := shares[name][1] * span):
                raise ValueError(
                    f"tolerances.{name} {value:g} {unit} must not exceed {largest:g} {unit}, {shares[name][1]:.0%} of "
                    f"the narrowest range of an actuator"
                )
        return cls(**{name: share * span for name, (share, _) in shares.items()} | dict(given))

    @model_validator(mode="after")
    def _reachable(self) -> "Tolerances":
        if self.settle > self.arrive:
            raise ValueError(
                f"settle {self.settle:g} must not exceed arrive {self.arrive:g}: settled actuators would never arrive"
            )
        return self


class ActuatorTolerances(NamedTuple):
    """`Tolerances` of k actuators, (k,) each, in the unit of each; `vent_threshold` is NaN where there is none."""

    settle: Array
    arrive: Array
    follow: Array
    beyond_range: Array
    vent_threshold: Array

    def of(self, indices: NDArray[np.int64]) -> "ActuatorTolerances":
        """Those of some of the actuators."""
        return ActuatorTolerances(*(values[indices] for values in self))


def tolerances_of_each(
    given: Mapping[Tolerance, float | list[float]], spans: Array, quantities: Sequence[Quantity]
) -> list[Tolerances]:
    """The tolerances of each actuator.

    Args:
        given: Those that are not the usual ones: one value for all actuators, or a list with one for each.
        spans: (k,) range of each actuator.
        quantities: Quantity of each.

    Raises:
        ValueError: If one is too large, is of no actuator, or a list has another number of entries.
    """
    for name, value in given.items():
        if isinstance(value, list) and len(value) != len(spans):
            raise ValueError(f"tolerances.{name} must have {len(spans)} entries, one for each actuator")
    if _PRESSURE_ONLY in given and "pressure" not in quantities:
        raise ValueError(f"tolerances.{_PRESSURE_ONLY} is one of pressures, and no actuator is commanded in Pa")
    found = []
    for index, quantity in enumerate(quantities):
        narrowest = min(span for span, other in zip(spans, quantities, strict=True) if other == quantity)
        own = {name: value[index] if isinstance(value, list) else value for name, value in given.items()}
        found.append(Tolerances.within(own, float(narrowest), quantity))
    return found


class Device(Description):
    """One board or bus.

    Attributes:
        name: Name of the device.
        kind: Family of devices that it is one of (docs/extending.md, A device).
        actuators: Names of those that it serves; all of them by default, none of a dead-man.
        channels: Channel of each of them, such as the id of a motor.
        settings: Settings of its family, such as the radius of a drum.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
    kind: str = "pneumatic_board"
    actuators: list[str] | None = None
    channels: list[Annotated[int, Field(ge=0)]]
    settings: dict[str, Any] = {}

    @model_validator(mode="after")
    def _different(self) -> "Device":
        if len(set(self.channels)) != len(self.channels):
            raise ValueError("channels must name different channels")
        if not self.channels and self.actuators != []:
            raise ValueError(
                "channels must name one for each actuator; of a device that serves none, give actuators: []"
            )
        return self


def has_dead_man(devices: Iterable[Device]) -> bool:
    """Whether one of the devices cuts the supply should driver and guardian both die or freeze (docs/dead-man.md)."""
    return any(device.kind == DEAD_MAN for device in devices)
