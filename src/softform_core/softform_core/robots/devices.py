"""Devices: which device and channel serves each actuator, and how far measured values may lie from commanded ones."""

from typing import Annotated, Any

from pydantic import Field, model_validator

from softform_core.robots.description import Description, NotNegative, Positive


class Tolerances(Description):
    """How a driver judges the actuators of this robot; in their unit.

    Attributes:
        settle: An actuator whose mean is this near to its command counts as settled.
        arrive: Settled actuators must be this near to the command for a motion to count as done.
        follow: An actuator further from its setpoint than this does not follow it.
        beyond_range: A measured value further outside the range than this is a fault.
        vent_threshold: A pneumatic board vents a channel this far above its target.
    """

    settle: Positive = 100.0
    arrive: Positive = 250.0
    follow: Positive = 1000.0
    beyond_range: NotNegative = 1000.0
    vent_threshold: Positive = 200.0

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
        actuators: Names of those that it serves; all of them by default.
        channels: Channel of each of them, such as the id of a motor.
        settings: Settings of its family, such as the radius of a drum.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
    kind: str = "pneumatic_board"
    actuators: list[str] | None = None
    channels: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
    settings: dict[str, Any] = {}

    @model_validator(mode="after")
    def _different(self) -> "Device":
        if len(set(self.channels)) != len(self.channels):
            raise ValueError("channels must name different channels")
        return self
