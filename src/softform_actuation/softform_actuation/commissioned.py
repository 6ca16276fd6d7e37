"""What `softform commission` found on a board or bus, kept beside its latch, where its driver looks at each start."""

from collections.abc import Sequence

from pydantic import BaseModel, ValidationError

from softform_actuation.state_files import state_file
from softform_core.errors import SoftformError
from softform_core.files import write_atomically
from softform_core.robots import Robot

_ADVICE = "Run ./softform commission once it is at rest."


class Commissioned(BaseModel, extra="forbid", allow_inf_nan=False):
    """A commissioning of a robot.

    Attributes:
        date: Its end, ISO 8601, UTC.
        robot: Name of the robot.
        command_fingerprint: Of the description, the devices and the interfaces that it is of.
        by: Who told which actuator moved: `person` or `scanner`.
        share: Share of the range that each step went to.
        confirmed: Whether all actuators were asked in one go, each moved alone, and nothing else was wrong.
        seen: Actuators that moved, by the one that was asked.
        offsets: What the driver found at rest of its sensors; empty if it was not asked, or there are none.
        leaks: Actuators whose air leaks though the pump holds it, and how, as the driver says.
        rest_mm: Median distance of the scan at rest to the predicted rest, mm; None without a scan.
        shape_mm: Mean distance of the test shape's displacement to the predicted one, mm; None if it was not scanned.
        wrong: What was wrong, in sentences.
    """

    date: str
    robot: str
    command_fingerprint: str
    by: str
    share: float
    confirmed: bool
    seen: dict[str, list[str]]
    offsets: str = ""
    leaks: dict[str, str] = {}
    rest_mm: float | None = None
    shape_mm: float | None = None
    wrong: list[str] = []


def keep(record: Commissioned, adapters: Sequence[str]) -> list[str]:
    """Keep a record of what is on these adapters; returns the paths.

    Raises:
        SoftformError: If a file cannot be written.
    """
    paths = [state_file(adapter, "commissioned") for adapter in adapters]
    for path in paths:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SoftformError(f"{path.parent} cannot be made: {error}.", "Make it, writable for you.") from error
        write_atomically(path, record.model_dump_json(indent=2).encode())
    return [str(path) for path in paths]


def doubt_about(robot: Robot, adapters: Sequence[str]) -> str:
    """Return why it is not confirmed that a robot on these adapters moves as its description says; empty if it is."""
    for adapter in adapters:
        path = state_file(adapter, "commissioned")
        try:
            record = Commissioned.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return f"Not commissioned: nobody has confirmed which actuator each channel moves. {_ADVICE}"
        except (OSError, ValidationError) as error:
            return f"Not commissioned: {path} cannot be read ({type(error).__name__}). {_ADVICE}"
        if record.command_fingerprint != robot.command_fingerprint():
            return f"Not commissioned: what was confirmed on {record.date[:10]} is of another description. {_ADVICE}"
        if not record.confirmed:
            found = " ".join(record.wrong) or "not every actuator was asked in one go."
            return f"Not commissioned: on {record.date[:10]} {found} {_ADVICE}"
    return ""
