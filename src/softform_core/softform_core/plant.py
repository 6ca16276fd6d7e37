"""The identified plant of a channel: how fast pumps, leaks and the open valve change a chamber's pressure.

The coefficients are identified from recordings of the real board (`./softform identify-plant`) and stored in
`config/plant.yaml`. Pressures in kPa gauge, times in seconds, as on the board.
"""

from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from softform_core.errors import SoftformError
from softform_core.paths import config_dir
from softform_core.yaml_files import read_yaml

Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]


class Pump(BaseModel):
    """One pump: pressure rate at full duty into an empty chamber, stall pressure, duty at which it starts to turn."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rate: Positive  # kPa/s
    stall: Positive  # kPa, magnitude
    dead_duty: Annotated[float, Field(ge=0.0, lt=1.0)]
    spin_up: Positive  # s, first-order lag


class Plant(BaseModel):
    """One channel: both pumps, the time constants of its leaks and of the open valve, and the sensor's noise."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    inflation: Pump
    deflation: Pump
    leak_time: Positive  # s, always there
    hold_time: Positive  # s, back through the standing pumps
    vent_time: Positive  # s
    sensor_noise: Annotated[float, Field(ge=0.0)]  # kPa, standard deviation

    def coefficients(self) -> NDArray[np.float64]:
        """(11,): rate, stall, dead duty and lag of the inflation and of the deflation pump; leak, hold, vent."""
        pumps = [[p.rate, p.stall, p.dead_duty, p.spin_up] for p in (self.inflation, self.deflation)]
        return np.array([*pumps[0], *pumps[1], self.leak_time, self.hold_time, self.vent_time])


def load_plant(path: Path | None = None) -> Plant:
    """Read the identified plant, by default `config/plant.yaml`.

    Raises:
        SoftformError: If the file is missing, is not YAML, or does not describe a plant.
    """
    path = path or config_dir() / "plant.yaml"
    if not path.is_file():
        raise SoftformError(
            f"There is no plant description {path}.",
            f"Identify one from a log: ./softform identify-plant LOG.csv --output {path}",
        )
    described = read_yaml(path)
    try:
        return Plant.model_validate(described["plant"])
    except (TypeError, KeyError) as error:
        raise SoftformError(f"{path} does not hold a `plant` section: {error}", "Correct the file.") from error
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise SoftformError(f"{path} does not describe a plant: {faults}.", "Correct the file.") from error
