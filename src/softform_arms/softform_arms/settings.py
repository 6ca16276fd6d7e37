"""What a description says of the arms on one controller."""

from typing import Annotated

import numpy as np
from pydantic import Field, ValidationError

from softform_actuation.device import ServedActuators
from softform_core.errors import SoftformError
from softform_core.robots.actuators import each
from softform_core.robots.description import Description, Finite, Positive

__all__ = ["ArmSettings", "arm_settings"]


class ArmSettings(Description):
    """Settings of arms; a list has one value for each joint.

    Attributes:
        velocity: Limit that the controller keeps by itself, rad/s.
        acceleration: The same, rad/s^2.
        start: Where the joints hold the object as it is grasped, rad.
        watchdog: Time without a point of the trajectory after which the controller brakes by itself, s.
    """

    velocity: Positive | list[Positive]
    acceleration: Positive | list[Positive]
    start: list[Finite]
    watchdog: Annotated[float, Field(ge=0.1, le=1.0)] = 0.5


def arm_settings(served: ServedActuators) -> ArmSettings:
    """Check and return the settings of a device.

    Raises:
        SoftformError: If a field is wrong, or does not fit the actuators.
    """
    where = f"settings of device '{served.device}' of robot '{served.robot}'"
    try:
        found = ArmSettings.model_validate(dict(served.settings))
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise SoftformError(f"The {where} are wrong: {faults}.", "See docs/nodes/arms.md.") from error
    count = len(served.actuators)
    for name in ("velocity", "acceleration", "start"):
        if isinstance(value := getattr(found, name), list) and len(value) != count:
            raise SoftformError(
                f"In the {where}, {name} has {len(value)} values.", f"Give {count}, one for each joint."
            )
    if others := set(served.quantities) - {"rotation"}:
        raise SoftformError(
            f"Joints are commanded in rad; '{served.device}' is given a {others.pop()}.", "Give quantity: rotation."
        )
    if sorted(served.channels) != list(range(count)):
        raise SoftformError(
            f"The channels of '{served.device}' are not its joints.", f"Number them from 0 to {count - 1}, each once."
        )
    if (served.slew_rate > each(found.velocity, count)).any():
        raise SoftformError(
            f"In the {where}, velocity is below the slew_rate of a joint, which it could not follow.",
            "Lower slew_rate, or raise velocity if the arm may.",
        )
    start = np.array(found.start)
    if ((start < served.actuator_min) | (start > served.actuator_max)).any():
        raise SoftformError(f"In the {where}, start lies outside the range of a joint.", "Correct one of them.")
    return found
