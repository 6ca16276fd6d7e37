"""Devices: which device and channel serves each actuator, and how far measured values may lie from commanded ones."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

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
"""Of the narrowest range among the actuators: each tolerance by default, and at most, so that something is watched."""


class Tolerances(Description):
    """How a driver judges the actuators of this robot; in their unit.

    Attributes:
        settle: An actuator whose mean is this near to its command counts as settled.
        arrive: Settled actuators must be this near to the command for a motion to count as done.
        follow: An actuator further from its setpoint than this does not follow it.
        beyond_range: A measured value further outside the range than this is a fault.
        vent_threshold: A pneumatic board vents a channel this far above its target.
    """

    settle: Positive
    arrive: Positive
    follow: Positive
    beyond_range: NotNegative
    vent_threshold: Positive

    @classmethod
    def within(cls, given: Mapping[Tolerance, float], span: float, unit: str) -> "Tolerances":
        """Those that are given, the others in proportion to `span`, the narrowest range among the actuators, in `unit`.

        Raises:
            ValueError: If one is too large for that range.
        """
        for name, value in given.items():
            if value > (largest := _SHARES[name][1] * span):
                raise ValueError(
                    f"tolerances.{name} {value:g} {unit} must not exceed {largest:g} {unit}, {_SHARES[name][1]:.0%} of "
                    f"the narrowest range of an actuator"
                )
        return cls(**{name: share * span for name, (share, _) in _SHARES.items()} | dict(given))

    @model_validator(mode="after")
    def _reachable(self) -> "Tolerances":
        if self.settle > self.arrive:
            raise ValueError(
                f"settle {self.settle:g} must not exceed arrive {self.arrive:g}: settled actuators would never arrive"
            )
        return self


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
