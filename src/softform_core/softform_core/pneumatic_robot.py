"""What every pneumatic soft robot has, whatever its body: chambers, a working range, a board, markers on its base."""

import hashlib
import json
from abc import abstractmethod
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from softform_core.errors import SoftformError

Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Place = tuple[Finite, Finite, Finite]


class Description(BaseModel):
    """A part of a description: unknown fields are refused, nothing changes afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Material(Description):
    """An incompressible hyperelastic law and its coefficients (Pa; see `simulation.materials`)."""

    law: Literal["neo_hookean", "yeoh", "gent"]
    coefficients: list[float]


class Actuation(Description):
    """Working range of every chamber, Pa gauge, and the fastest change of a command, Pa/s."""

    pressure_min: float
    pressure_max: float
    slew_rate: Positive

    @model_validator(mode="after")
    def _ordered(self) -> "Actuation":
        if not self.pressure_min < self.pressure_max:
            raise ValueError(f"pressure_min {self.pressure_min} must lie below pressure_max {self.pressure_max}")
        return self


class Board(Description):
    """Which channel of the pneumatic board feeds each chamber."""

    channels: list[Annotated[int, Field(ge=0, le=9)]]


class PneumaticRobot(Description):
    """One pneumatic robot without its body, which subclasses describe.

    `base_markers` are motion-capture markers on its rigid frame, name -> position in the robot's frame, m: by them the
    captured markers come into that frame.
    """

    name: str
    title: str
    source: str
    actuation: Actuation
    board: Board
    base_markers: dict[str, Place] = {}

    @model_validator(mode="after")
    def _one_channel_each(self) -> "PneumaticRobot":
        channels, chambers = self.board.channels, len(self.chambers)
        if len(channels) != chambers or len(set(channels)) != chambers:
            raise ValueError(f"board.channels must name {chambers} different channels")
        return self

    @property
    @abstractmethod
    def chambers(self) -> list[str]:
        """Names of the chambers, each fed by a channel of the board."""

    @property
    def degrees_of_freedom(self) -> int:
        """Number of independent actuations; the number of chambers, if each is inflated by itself."""
        return len(self.chambers)

    @property
    def pressure_min(self) -> NDArray[np.float64]:
        """Lowest pressure of each chamber, (k,) Pa gauge."""
        return np.full(len(self.chambers), self.actuation.pressure_min)

    @property
    def pressure_max(self) -> NDArray[np.float64]:
        """Highest pressure of each chamber, (k,) Pa gauge."""
        return np.full(len(self.chambers), self.actuation.pressure_max)

    @property
    def slew_rate(self) -> float:
        """Fastest change of a pressure command, Pa/s."""
        return self.actuation.slew_rate

    @abstractmethod
    def fingerprint(self) -> str:
        """Digest of all that decides simulated shapes; a store or model made for another body does not match."""

    def check_pressures(self, pressures: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `pressures` as a (k,) float array if this robot may be given them.

        Args:
            pressures: (k,) Pa gauge.

        Raises:
            SoftformError: On a wrong number of chambers, NaN or infinity, or a value outside the working range.
        """
        return check_within(self.name, "Pressure", self.chambers, pressures, self.pressure_min, self.pressure_max)

    def _digest(self, body: set[str]) -> str:
        decisive = self.model_dump(include={"name", *body})
        decisive["actuation"] = self.model_dump()["actuation"] | {"slew_rate": None}
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:16]


def check_within(
    robot: str,
    quantity: str,
    names: list[str],
    values: NDArray[np.float64],
    lowest: NDArray[np.float64],
    highest: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return `values` as a float array, rounding beyond the range taken off.

    Args:
        robot: Name of the robot, for messages.
        quantity: What the values are, for messages.
        names: What each belongs to.
        values: One for each name, Pa.
        lowest: Least allowed of each, Pa.
        highest: Largest allowed of each, Pa.

    Raises:
        SoftformError: On a wrong number of values, NaN or infinity, or a value outside the range.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.shape != (len(names),):
        raise SoftformError(
            f"Robot '{robot}' takes {len(names)} {quantity.lower()}s, got shape {values.shape}.",
            f"Give one {quantity.lower()} in Pa for each of {', '.join(names)}.",
        )
    if not np.isfinite(values).all():
        bad = [names[i] for i in np.flatnonzero(~np.isfinite(values))]
        raise SoftformError(
            f"{quantity} of {', '.join(bad)} is not a finite number.", f"Give {quantity.lower()}s in Pa."
        )
    tolerance = 1e-6 * (highest - lowest)
    outside = (values < lowest - tolerance) | (values > highest + tolerance)
    if outside.any():
        index = int(np.flatnonzero(outside)[0])
        raise SoftformError(
            f"{quantity} {values[index]:g} Pa of {names[index]} is outside {lowest[index]:g} … {highest[index]:g} Pa.",
            "Stay within the working range of config/robots.",
        )
    return np.clip(values, lowest, highest)
