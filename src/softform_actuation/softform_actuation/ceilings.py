"""What a description may not raise: the ceiling of a port, and the range that was driven there before."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from softform_actuation.device import ServedActuators
from softform_actuation.state_files import state_file
from softform_core.errors import SoftformError
from softform_core.files import write_atomically
from softform_core.yaml_files import read_yaml

OVERRIDE = "SOFTFORM_CEILINGS"
"""Environment variable by which tests name another file."""

MACHINE_FILE = Path("/etc/softform/ceilings.yaml")
"""Of whoever looks after the machine: name of a port, as `DeviceFamily.adapters` tells it, -> `Bounds`, or a list of
them, one for each unit."""

_log = logging.getLogger(__name__)


class Bounds(BaseModel, extra="forbid", allow_inf_nan=False):
    """Between which commands may lie, in an SI unit."""

    minimum: float
    maximum: float
    unit: str


_OfEachUnit = Annotated[list[Bounds], Field(min_length=1)]

USUAL = [
    Bounds(minimum=-100e3, maximum=200e3, unit="Pa"),
    Bounds(minimum=-0.5, maximum=0.5, unit="m"),
    Bounds(minimum=-3.2, maximum=3.2, unit="rad"),
]
"""For ports that the file does not name: more takes somebody who has thought about it."""


def check_ceiling(served: ServedActuators, names: Sequence[str]) -> None:
    """Look whether a device's range lies within the ceiling of its port, which is known by these names.

    Raises:
        SoftformError: If it does not, or the machine's file cannot be read.
    """
    file = Path(os.environ.get(OVERRIDE) or MACHINE_FILE)
    try:
        ceilings = TypeAdapter(dict[str, Bounds | _OfEachUnit]).validate_python(read_yaml(file) or {})
    except SoftformError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise SoftformError(f"The ceilings of {file} cannot be read: {error.message}", error.next_step) from error
        ceilings = {}
    except ValueError as error:  # a ValidationError is one
        raise SoftformError(f"The ceilings of {file} cannot be read: {error}.", "Correct the file.") from error
    own = {name: ceilings[name] for name in names if name in ceilings}
    for name, bounds in (own or {f"a port that {file} does not name": USUAL}).items():
        step = f"Correct the description; if what hangs there bears more, say so in {file}."
        _require_within(served, [bounds] if isinstance(bounds, Bounds) else bounds, f"the ceiling of {name}", step)


def check_range(served: ServedActuators, names: Sequence[str]) -> None:
    """Look whether a device's range has grown since its adapter was driven last; keep it if it has not.

    A pseudo-terminal, and a port that is not there, are nobody's.

    Raises:
        SoftformError: If it has grown, or the file of the range before cannot be read.
    """
    adapter = names[-1]
    is_there = not adapter.startswith("/") or os.path.exists(adapter)
    if not is_there or os.path.realpath(adapter).startswith("/dev/pts/") or not served.actuators:
        return
    path, kept = state_file(adapter, "range"), TypeAdapter(_OfEachUnit)
    confirm = f"If it is right for what hangs there, confirm it once: rm {path}"
    try:
        before = kept.validate_json(path.read_bytes())
        _require_within(served, before, f"the range that {adapter} was driven in before", confirm)
    except FileNotFoundError:
        before = None
    except (OSError, ValidationError) as error:
        raise SoftformError(f"The range before of {adapter} cannot be read: {error}.", confirm) from error
    now = []
    for unit in dict.fromkeys(served.units):
        of_unit = [index for index, other in enumerate(served.units) if other == unit]
        low, high = float(served.actuator_min[of_unit].min()), float(served.actuator_max[of_unit].max())
        now.append(Bounds(minimum=low, maximum=high, unit=unit))
    if now == before:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, kept.dump_json(now))
    except (OSError, SoftformError) as error:  # it must not keep the driver from making safe; the latch says it, too
        _log.warning("the range is not kept: %s", error)


def _require_within(served: ServedActuators, of_units: Sequence[Bounds], whose: str, step: str) -> None:
    for index, (name, unit) in enumerate(zip(served.actuators, served.units, strict=True)):
        low, high = served.actuator_min[index], served.actuator_max[index]
        bounds = next((one for one in of_units if one.unit == unit), of_units[0])
        if unit != bounds.unit or low < bounds.minimum or high > bounds.maximum:
            raise SoftformError(
                f"{name} of '{served.robot}' goes from {low:g} to {high:g} {unit}; "
                f"{whose} is {bounds.minimum:g} to {bounds.maximum:g} {bounds.unit}.",
                step,
            )
