"""Messages whose definition has changed since earlier versions recorded them, and what they are in today's."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

EARLIER_ACTUATION = "softform_interfaces/msg/ChamberPressures"
"""Commands and states of actuators, while all were chambers."""

_PACKAGE = "softform_interfaces/msg/"
_EARLIER_PATCH = "sheet"
"""Patch of a `Surface` from before a robot's patches had names: all robots with a surface were membranes."""

Types = Mapping[str, Callable[..., Any]]
"""Classes of today's messages, by full name."""


@dataclass(frozen=True)
class Conversion:
    """How the messages of one recorded topic become today's.

    Attributes:
        topic: Name of the topic today.
        message_type: Type of its messages today.
        convert: From a recorded message to today's, given the classes of today's messages.
    """

    topic: str
    message_type: str
    convert: Callable[[Any, Types], Any]


def conversion_of(topic: str, message_type: str) -> Conversion | None:
    """The conversion of a topic recorded with an earlier definition of its type; None if there is none."""
    if message_type == EARLIER_ACTUATION:
        beginning, _, last = topic.rpartition("/")
        if last == "pressure_command":
            return Conversion(f"{beginning}/actuator_command", f"{_PACKAGE}ActuatorCommand", _actuator_command)
        today = f"{beginning}/actuator_state" if last == "pressure_state" else topic
        return Conversion(today, f"{_PACKAGE}ActuatorState", _actuator_state)
    convert = _CHANGED.get(message_type)
    return None if convert is None else Conversion(topic, message_type, convert)


def _actuator_command(earlier: Any, types: Types) -> Any:
    # Commanders had neither a name nor a lease: no driver accepts such a command.
    return _actuators(earlier, types[f"{_PACKAGE}ActuatorCommand"], source="", lease=0, key=0, fingerprint="")


def _actuator_state(earlier: Any, types: Types) -> Any:
    # VENTED, REGULATING, SETTLED, FAULT have the numbers of SAFE, MOVING, SETTLED, FAULT.
    return _actuators(earlier, types[f"{_PACKAGE}ActuatorState"], status=earlier.status)


def _actuators(earlier: Any, message: Callable[..., Any], **more: Any) -> Any:
    units = ["Pa"] * len(earlier.name)
    return message(header=earlier.header, name=earlier.name, unit=units, value=earlier.pressure, **more)


def _surface(earlier: Any, types: Types) -> Any:
    patch = types[f"{_PACKAGE}SurfacePatch"](
        name=getattr(earlier, "patch", _EARLIER_PATCH),
        rows=earlier.rows,
        cols=earlier.cols,
        degree=earlier.degree,
        periodic=getattr(earlier, "periodic", False),
        control_points=earlier.control_points,
    )
    return types[f"{_PACKAGE}Surface"](
        header=earlier.header,
        stale=getattr(earlier, "stale", False),
        patches=[patch],
        kernel_width=earlier.kernel_width,
        kernel_centers=earlier.kernel_centers,
        warp_coefficients=earlier.warp_coefficients,
    )


def _driver_state(earlier: Any, types: Types) -> Any:
    return types[f"{_PACKAGE}DriverState"](
        header=earlier.header,
        state=earlier.state,
        reason=earlier.reason,
        holder=getattr(earlier, "holder", ""),
        lease=getattr(earlier, "lease", 0),
        held_for=getattr(earlier, "held_for", 0.0),
        epoch=getattr(earlier, "epoch", 0),
        fingerprint="",
        **{name: [] for name in ("faults", "warnings", "actuator")},
        **{name: np.zeros(0, dtype=bool) for name in ("asked", "acknowledged", "at_rest")},
        rest_value=np.zeros(0),
    )


_CHANGED: dict[str, Callable[[Any, Types], Any]] = {
    f"{_PACKAGE}Surface": _surface,
    f"{_PACKAGE}DriverState": _driver_state,
}
