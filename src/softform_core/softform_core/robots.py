"""Robots as typed descriptions, read from `config/robots/*.yaml`."""

import hashlib
import json
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import yaml
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from softform_core.errors import SoftformError
from softform_core.paths import robot_file

Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Place = tuple[Finite, Finite, Finite]


class _Description(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Material(_Description):
    """An incompressible hyperelastic law and its coefficients (Pa; see `simulation.materials`)."""

    law: Literal["neo_hookean", "yeoh", "gent"]
    coefficients: list[float]


class MembraneDescription(_Description):
    """A rectangular membrane over a grid of chambers (paper 000, Sec. V-A1); SI units.

    `prestretch` is the stretch at which the sheet is mounted: 1 is slack, 1.03 is 3 % taut in both directions.
    """

    width: Positive
    length: Positive
    thickness: Positive
    prestretch: Annotated[float, Field(ge=1.0, le=2.0)] = 1.0
    rows: Annotated[int, Field(ge=1)]
    columns: Annotated[int, Field(ge=1)]
    cells: Annotated[int, Field(ge=2, le=400)]
    density: Positive
    material: Material
    wall_stiffness: NotNegative


class Actuation(_Description):
    """Working range of every chamber, Pa gauge, and the fastest change of a command, Pa/s."""

    pressure_min: float
    pressure_max: float
    slew_rate: Positive

    @model_validator(mode="after")
    def _ordered(self) -> "Actuation":
        if not self.pressure_min < self.pressure_max:
            raise ValueError(f"pressure_min {self.pressure_min} must lie below pressure_max {self.pressure_max}")
        return self


class SurfaceDescription(_Description):
    """B-spline surface of Eq. 1: control points along u and v, and polynomial degree (order minus one)."""

    rows: Annotated[int, Field(ge=4)]
    columns: Annotated[int, Field(ge=4)]
    degree: Annotated[int, Field(ge=1, le=5)]


class Board(_Description):
    """Which channel of the pneumatic board feeds each chamber."""

    channels: list[Annotated[int, Field(ge=0, le=9)]]


class Robot(_Description):
    """One soft robot: body, actuation, surface and board.

    `base_markers` are motion-capture markers on its rigid frame, name -> position in the robot's frame, m: by them the
    captured markers come into that frame.
    """

    name: str
    title: str
    source: str
    membrane: MembraneDescription
    actuation: Actuation
    surface: SurfaceDescription
    board: Board
    base_markers: dict[str, Place] = {}

    @model_validator(mode="after")
    def _one_channel_each(self) -> "Robot":
        if len(self.board.channels) != self.degrees_of_freedom or len(set(self.board.channels)) != len(
            self.board.channels
        ):
            raise ValueError(f"board.channels must name {self.degrees_of_freedom} different channels")
        return self

    @property
    def degrees_of_freedom(self) -> int:
        """Number k of independent pressures."""
        return self.membrane.rows * self.membrane.columns

    @property
    def chambers(self) -> list[str]:
        """Names of the chambers, row by row: c1 … ck."""
        return [f"c{index + 1}" for index in range(self.degrees_of_freedom)]

    @property
    def pressure_min(self) -> NDArray[np.float64]:
        """Lowest pressure of each chamber, (k,) Pa gauge."""
        return np.full(self.degrees_of_freedom, self.actuation.pressure_min)

    @property
    def pressure_max(self) -> NDArray[np.float64]:
        """Highest pressure of each chamber, (k,) Pa gauge."""
        return np.full(self.degrees_of_freedom, self.actuation.pressure_max)

    @property
    def slew_rate(self) -> float:
        """Fastest change of a pressure command, Pa/s."""
        return self.actuation.slew_rate

    @property
    def extent(self) -> NDArray[np.float64]:
        """Size of the resting body, (2,) m."""
        return np.array([self.membrane.width, self.membrane.length])

    def fingerprint(self) -> str:
        """Digest of all that decides simulated shapes; a store or model made for another body does not match."""
        decisive = self.model_dump(include={"name", "membrane", "surface"})
        decisive["actuation"] = self.model_dump()["actuation"] | {"slew_rate": None}
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:16]

    def check_pressures(self, pressures: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `pressures` as a (k,) float array if this robot may be given them.

        Args:
            pressures: (k,) Pa gauge.

        Raises:
            SoftformError: On a wrong number of chambers, NaN or infinity, or a value outside the working range.
        """
        values = np.asarray(pressures, dtype=np.float64)
        if values.shape != (self.degrees_of_freedom,):
            raise SoftformError(
                f"Robot '{self.name}' takes {self.degrees_of_freedom} pressures, got shape {values.shape}.",
                f"Give one pressure in Pa for each of {', '.join(self.chambers)}.",
            )
        if not np.isfinite(values).all():
            bad = [self.chambers[i] for i in np.flatnonzero(~np.isfinite(values))]
            raise SoftformError(f"Pressure of {', '.join(bad)} is not a finite number.", "Give pressures in Pa.")
        tolerance = 1e-6 * (self.pressure_max - self.pressure_min)
        outside = (values < self.pressure_min - tolerance) | (values > self.pressure_max + tolerance)
        if outside.any():
            index = int(np.flatnonzero(outside)[0])
            raise SoftformError(
                f"Pressure {values[index]:g} Pa of {self.chambers[index]} is outside "
                f"{self.pressure_min[index]:g} … {self.pressure_max[index]:g} Pa.",
                "Stay within the working range of config/robots.",
            )
        return np.clip(values, self.pressure_min, self.pressure_max)


def load_robot(name_or_path: str | Path) -> Robot:
    """Read a robot by its name in `config/robots` or by the path of a description.

    Raises:
        SoftformError: If the description is missing, is not YAML, or does not describe a robot.
    """
    path = robot_file(name_or_path)
    try:
        return Robot.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except yaml.YAMLError as error:
        raise SoftformError(f"{path} is not valid YAML: {error}", "Mend the file.") from error
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'robot'}: {e['msg']}" for e in error.errors())
        raise SoftformError(f"{path} does not describe a robot: {faults}.", "See docs/robots.") from error
