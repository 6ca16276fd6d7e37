"""Realities: how the robot on the virtual rig differs from the simulator's, read from `config/realities/*.yaml`.

Anybody can write another one; docs/steps/write-a-reality.md explains every field. Nothing above the board and the
scanner knows any of it.
"""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import ConfigDict, Field, SerializeAsAny, ValidationError, model_validator

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.paths import described_names, drawn_seed, reality_file
from softform_core.robots import Robot
from softform_core.robots.description import Description, NotNegative, Place, Pose, Positive
from softform_core.yaml_files import read_yaml
from softform_rig.emulation import Emulation, ReadingMemory, RemembersReadings, emulations
from softform_rig.material_memory import Creep, HysteresisLaw, MaterialMemory

HELP = "See docs/steps/write-a-reality.md."

_HALF = 0.7071067811865476
"""Sine and cosine of half a right angle."""

Fraction = Annotated[float, Field(ge=0.0, le=1.0)]


RAYS_AROUND = 160
"""Of a tube's scanner, a side: an arm is seen as a narrow strip."""
_USUAL_SHEET = 0.32
"""Size of a sheet, m, that the scanner's usual fields are meant for."""
_VIEW_FROM, _HOLE = 2.1, 0.08
"""Of a tube's scanner, if a reality says nothing: how far it stands off and a hole's radius, of the size."""


class ScannerDescription(Description):
    """What the scanner sees: viewpoints (m, robot frame), resolution, noise, outliers and holes.

    A reality that names no viewpoints has these of a sheet, or of a tube three around it, as far off as it is large.

    Every scan is registered anew: `registration_shift` (m) and `registration_turn` (rad) are standard deviations of
    each coordinate of what is left of its motion about `look_at`.
    """

    viewpoints: Annotated[list[Place], Field(min_length=1, max_length=6)] = [(0.0, -0.22, 0.52), (0.16, -0.16, 0.50)]
    look_at: Place = (0.0, 0.0, 0.02)
    rays: Annotated[int, Field(ge=8, le=400)] = 110
    noise: NotNegative = 0.0002
    outlier_fraction: Fraction = 0.005
    outlier_range: NotNegative = 0.02
    grazing_angle: Annotated[float, Field(gt=0.0, le=90.0)] = 75.0
    holes: Annotated[float, Field(ge=0.0, le=50.0)] = 4.0
    hole_radius: Positive = 0.04
    registration_shift: NotNegative = 0.0
    registration_turn: NotNegative = 0.0


class MotionCaptureDescription(Description):
    """What the motion-capture system sees of its markers.

    Attributes:
        pose: Pose of its frame in the robot's: x, y, z (m), qx, qy, qz, qw. By default y points up, as in many systems.
        noise: standard deviation of every coordinate, m.
        placement_error: standard deviation of where a marker was meant to be glued and where it is, m.
        missing: share of the markers that a frame lacks, on average.
        occlusion_radius: half of them go missing together with their neighbours within so many metres.
        occlusion_time: how long a marker stays hidden, on average, s.
    """

    pose: Pose = (0.4, -0.3, -0.75, _HALF, 0.0, 0.0, _HALF)
    noise: NotNegative = 0.0001
    placement_error: NotNegative = 0.0003
    missing: Annotated[float, Field(ge=0.0, le=0.6)] = 0.02
    occlusion_radius: Positive = 0.06
    occlusion_time: Positive = 0.5


class Reality(Description):
    """One reality of robots of one kind of body.

    Errors of its devices are further fields, each as the emulation of a family names and describes it: see `errors_of`.

    Attributes:
        name: Name of the reality and of its file.
        title: One line.
        body: Differences of the body from the simulator's; fields of the body's `reality_type`.
        hysteresis: The material does not follow an actuator within so much of a reversal, one for all or one for each,
            in its unit; or another law, see `material_memory`.
        creep: Parts of the material that follow slowly, each with its time.
        scanner: The emulated scanner.
        motion_capture: The emulated motion capture.
    """

    model_config = ConfigDict(extra="allow")

    name: Annotated[str, Field(min_length=1)]
    title: str
    body: SerializeAsAny[Description]
    hysteresis: HysteresisLaw = 0.0
    creep: Annotated[list[Creep], Field(max_length=6)] = []
    scanner: ScannerDescription = ScannerDescription()
    motion_capture: MotionCaptureDescription = MotionCaptureDescription()

    @model_validator(mode="before")
    @classmethod
    def _with_errors_of_devices(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        types = {one.field: one.errors for one in emulations().values() if one.field}
        if unknown := given.keys() - cls.model_fields.keys() - types.keys():
            raise ValueError(f"{min(map(str, unknown))}: Extra inputs are not permitted")
        return given | {name: _checked(name, types[name], given[name]) for name in given.keys() & types.keys()}

    def errors_of(self, emulation: Emulation) -> Any:
        """What the devices of a family differ by, an `Emulation.errors`; they are ideal if nothing is said."""
        return (self.__pydantic_extra__ or {}).get(emulation.field) or emulation.errors()


def _checked(field: str, kind: type[Description], given: Any) -> Description:
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise ValueError(_in_words(error, field)) from error


def _in_words(error: ValidationError, *before: str) -> str:
    """What is wrong with which fields, named behind those that lead to them."""
    faults = ((".".join(map(str, (*before, *one["loc"]))) or "reality", one["msg"]) for one in error.errors())
    return "; ".join(f"{place}: {message}" for place, message in faults)


def known_realities(kind: str) -> list[str]:
    """Names of the realities in `config/realities` for a kind of body."""
    return described_names(f"realities/{kind}")


def load_reality(name_or_path: str | Path, robot: Robot) -> Reality:
    """Read a reality by its name among those for the robot's kind of body, or by path; check that it fits the robot.

    `drawn:SEED` is the reality that `draw_reality` draws.

    Raises:
        SoftformError: If the file is missing, is not YAML, or a field is wrong; the message names the field.
    """
    if (seed := drawn_seed(name_or_path)) is not None:
        from softform_rig.draw_reality import draw_reality  # which needs Reality

        return draw_reality(robot, seed)
    kind = robot.body.kind
    path = reality_file(name_or_path, kind)
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise SoftformError(f"{path} does not describe a reality: it has no fields.", HELP)
    fields = dict(content.get("body") or {"kind": kind})
    if fields.pop("kind", None) != kind:
        raise SoftformError(
            f"{path} is not a reality of robot '{robot.name}', whose body is a {kind}: its body.kind is another.", HELP
        )
    try:
        scanner = content.get("scanner") or {}
        if isinstance(scanner, dict) and "viewpoints" not in scanner:
            scanner = _scanner_around(robot) | scanner
        reality = Reality.model_validate(
            content | {"body": _checked("body", robot.body.reality_type(), fields), "scanner": scanner}
        )
        for emulation in emulations().values():
            emulation.check(reality.errors_of(emulation), len(robot.actuators))
        memory_of(reality, robot)
        robot.body.real_simulator(reality.body)
    except ValidationError as error:
        raise SoftformError(f"{path} does not describe a reality of a {kind}: {_in_words(error)}.", HELP) from error
    except ValueError as error:
        raise SoftformError(f"{path} does not fit robot '{robot.name}': {error}.", HELP) from error
    return reality


def _scanner_around(robot: Robot) -> dict[str, object]:
    """Fields of a scanner that sees a tube from three sides, or a sheet from above, each from as far as it is large."""
    body = robot.body
    if not body.goes_around:
        usual, scale = ScannerDescription(), body.size / _USUAL_SHEET
        return {
            "viewpoints": (scale * np.array(usual.viewpoints)).tolist(),
            "look_at": (scale * np.array(usual.look_at)).tolist(),
            "hole_radius": scale * usual.hole_radius,
        }
    middle, angles = np.mean(body.box, axis=0), 2.0 * np.pi / 3.0 * np.arange(3)
    around = middle + _VIEW_FROM * body.size * np.column_stack([np.cos(angles), np.sin(angles), 0.0 * angles])
    return {
        "viewpoints": around.tolist(),
        "look_at": middle.tolist(),
        "rays": RAYS_AROUND,
        "hole_radius": _HOLE * body.size,
    }


def memory_of(reality: Reality, robot: Robot) -> MaterialMemory:
    """Memory of the reality's material, at rest.

    Raises:
        ValueError: If it has numbers of another number of actuators.
    """
    return MaterialMemory(reality.hysteresis, reality.creep, len(robot.actuators))


def true_values(reality: Reality, robot: Robot, commanded: Array) -> Array:
    """Values (…, k) of the actuators once their devices have regulated their readings to `commanded` (…, k).

    Devices that the rig does not emulate are ideal.
    """
    values = np.array(commanded, dtype=np.float64)
    known = emulations()
    for device in robot.devices:
        if (emulation := known.get(device.kind)) is not None:
            served = robot.served_by(device)
            errors = reality.errors_of(emulation)
            values[..., served] = emulation.true_values(robot, device, errors, values[..., served])
    return values


class SettledDevices:
    """The devices of a robot as they regulate their readings to one command after the other, from rest."""

    def __init__(self, reality: Reality, robot: Robot) -> None:
        self._reality, self._robot, known = reality, robot, emulations()
        self._readings: list[tuple[Any, ReadingMemory]] = []
        for device in robot.devices:
            emulation = known.get(device.kind)
            if emulation is not None and isinstance(emulation, RemembersReadings):
                memory = emulation.reading_memory(robot, device, reality.errors_of(emulation))
                self._readings.append((robot.served_by(device), memory))

    def settle(self, commanded: Array, seconds: float) -> Array:
        """True values (k,) of the actuators, at `commanded` (k,) for so long."""
        asked = np.array(commanded, dtype=np.float64)
        for served, memory in self._readings:
            asked[served] = memory.asked(asked[served], seconds)
        return true_values(self._reality, self._robot, asked)
