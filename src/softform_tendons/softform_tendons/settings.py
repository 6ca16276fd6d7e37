"""What a robot's description says of its tendon motors."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, ValidationError

from softform_actuation.device import ServedActuators
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots.actuators import each
from softform_core.robots.description import Description, Finite, Positive
from softform_tendons.registers import MODELS, TICKS_A_TURN

SLACKENED_WITHIN = 0.5
"""s in which all tendons are slack after `make_safe`: a range and a speed that take longer are rejected."""

FIRM = 1.5
"""Second current of a calibration, by its first one."""


class TendonSettings(Description):
    """Settings of a bus of tendon motors; a list has one value for each motor.

    Attributes:
        drum_radius: m; negative where larger positions pay the tendon out.
        home: Position at which the tendon is taut at rest, ticks, until the motors are calibrated.
        current_limit: Current limit of each motor, A.
        calibration_current: Current at which a tendon counts as taut during calibration, A.
        safe_action: Whether the tendons are slackened or held to make the robot safe.
        hold_limit: How long they are held without being driven, until they are slackened, s.
        slacken_speed: m/s.
        hottest: Temperature beyond which the robot is made safe, degrees Celsius.
        taut_from: Pull beyond which a tendon must carry a load, m; none if left out.
        taut_current: Current of the motor at that load, A.
    """

    drum_radius: Finite | list[Finite]
    home: int | list[int] = 2048
    current_limit: Positive
    calibration_current: Positive = 0.03
    safe_action: Literal["slacken", "hold"] = "slacken"
    hold_limit: Annotated[float, Field(gt=0.0, le=3600.0)] = 60.0
    slacken_speed: Positive = 0.05
    hottest: Annotated[int, Field(ge=30, le=100)] = 65
    taut_from: Positive | None = None
    taut_current: Positive = 0.02


def tendon_settings(served: ServedActuators) -> TendonSettings:
    """Check and return the settings of a device.

    Raises:
        SoftformError: If a field is wrong, or does not fit the actuators.
    """
    where = f"settings of device '{served.device}' of robot '{served.robot}'"
    try:
        found = TendonSettings.model_validate(dict(served.settings))
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise SoftformError(f"The {where} are wrong: {faults}.", "See docs/nodes/dynamixel.md.") from error
    count = len(served.actuators)
    for name in ("drum_radius", "home"):
        if isinstance(value := getattr(found, name), list) and len(value) != count:
            raise SoftformError(f"In the {where}, {name} has {len(value)} values.", f"Give one, or {count}.")
    radius = np.abs(each(found.drum_radius, count))
    span = served.actuator_max - np.minimum(served.actuator_min, served.safe)
    if others := set(served.quantities) - {"displacement"}:
        raise SoftformError(
            f"Tendon motors are commanded in m of pull; '{served.device}' is given a {others.pop()}.",
            "Give quantity: displacement.",
        )
    if (span >= 2.0 * np.pi * radius).any():
        raise SoftformError(
            f"In the {where}, the range of {span.max():g} m is more than one turn of the drum.",
            "Give the drum a larger radius: after a loss of power a motor knows its place within one turn only.",
        )
    highest = max(model.highest_current for model in MODELS.values())
    if found.current_limit > highest:
        raise SoftformError(
            f"In the {where}, current_limit is {found.current_limit:g} A.",
            f"No motor that is known may be given more than {highest:g} A: lower current_limit.",
        )
    if (firm := FIRM * found.calibration_current) > found.current_limit:
        raise SoftformError(
            f"In the {where}, calibration_current asks for {firm:g} A, beyond current_limit.",
            f"Give at most {found.current_limit / FIRM:g} A.",
        )
    longest = float((served.actuator_max - served.safe).max()) / found.slacken_speed
    if longest > SLACKENED_WITHIN:  # at the latest after hold_limit it is slackened
        raise SoftformError(
            f"In the {where}, slackening takes {longest:.2f} s.",
            f"It must be done within {SLACKENED_WITHIN:g} s: raise slacken_speed, or lower the range.",
        )
    return found


class Drums:
    """From pulls to positions of the motors and back.

    Attributes:
        homes: (k,) ticks at which the tendons are taut at rest.
    """

    def __init__(self, radius: Array, homes: Array) -> None:
        self._ticks_a_metre = TICKS_A_TURN / (2.0 * np.pi * radius)
        self.homes = homes

    def ticks(self, pulls: Array) -> list[int]:
        """Positions of pulls (k,) m."""
        return [int(tick) for tick in np.round(self.homes + pulls * self._ticks_a_metre)]

    def pulls(self, ticks: Array) -> Array:
        """Pulls (k,) m of positions (k,)."""
        return np.asarray((ticks - self.homes) / self._ticks_a_metre)

    def speed(self, pull_speed: Array) -> Array:
        """Turns per second of a change of the pulls, (k,) m/s."""
        return np.abs(pull_speed * self._ticks_a_metre) / TICKS_A_TURN

    def find_turn(self, ticks: Array, lowest: Array, highest: Array) -> None:
        """Move the homes by whole turns so that the positions lie nearest to the range, (k,) m each.

        A motor that lost its power has forgotten how many turns it had made.
        """
        middle = self.pulls(ticks) - 0.5 * (lowest + highest)
        self.homes = self.homes + TICKS_A_TURN * np.round(middle * self._ticks_a_metre / TICKS_A_TURN)
