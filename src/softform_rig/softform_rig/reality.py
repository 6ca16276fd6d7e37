"""Realities: how the robot on the virtual rig differs from the simulator's, read from `config/realities/*.yaml`.

Anybody can write another one; docs/steps/write-a-reality.md explains every field. Nothing above the board and the
scanner is told any of it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeVar

import numpy as np
import yaml
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from softform_core.errors import SoftformError
from softform_core.paths import config_dir, reality_file
from softform_core.pneumatic_robot import PneumaticRobot
from softform_core.robots import Material, Robot
from softform_core.simulation import Membrane, build_membrane
from softform_core.units import PA_PER_KPA
from softform_rig.emulated_board import CHANNELS, Sensors

_WAVES = 200
"""Plane waves whose sum makes a thickness field close to Gaussian."""

_HALF = 0.7071067811865476
"""Sine and cosine of half a right angle."""

Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Vector = tuple[Finite, Finite, Finite]


class _Description(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ThicknessField(_Description):
    """Thickness of the real sheet over the nominal one: a mean factor and a smooth random field."""

    scale: Positive = 1.0
    variation: Annotated[float, Field(ge=0.0, le=0.3)] = 0.0
    correlation_length: Positive = 0.1
    seed: Annotated[int, Field(ge=0)] = 0


class RealMembrane(_Description):
    """The real membrane. What is left out is as the robot's description says."""

    cells: Annotated[int, Field(ge=6, le=120)] | None = None
    element: Literal["quadrilateral", "triangle"] = "quadrilateral"
    material: Material | None = None
    thickness: ThicknessField = ThicknessField()
    prestretch: Annotated[float, Field(ge=1.0, le=2.0)] | None = None
    wall_stiffness_scale: NotNegative | list[NotNegative] = 1.0
    column_wall_shift: list[Finite] | None = None
    row_wall_shift: list[Finite] | None = None
    clamp_stiffness: Positive | None = None
    gravity: Vector = (0.0, 0.0, 0.0)


class PressureSensors(_Description):
    """Reading = gain · true pressure + offset; one number, or one for each chamber. The board regulates the reading."""

    gain: Positive | list[Positive] = 1.0
    offset: Finite | list[Finite] = 0.0


class ScannerDescription(_Description):
    """What the scanner sees: viewpoints (m, robot frame), resolution, noise, outliers and holes."""

    viewpoints: Annotated[list[Vector], Field(min_length=1, max_length=6)] = [(0.0, -0.22, 0.52), (0.16, -0.16, 0.50)]
    look_at: Vector = (0.0, 0.0, 0.02)
    rays: Annotated[int, Field(ge=8, le=400)] = 110
    noise: NotNegative = 0.0002
    outlier_fraction: Fraction = 0.005
    outlier_range: NotNegative = 0.02
    grazing_angle: Annotated[float, Field(gt=0.0, le=90.0)] = 75.0
    holes: Annotated[float, Field(ge=0.0, le=50.0)] = 4.0
    hole_radius: Positive = 0.04


class MotionCaptureDescription(_Description):
    """What the motion-capture system sees of its markers.

    Attributes:
        pose: of its frame in the robot's: x, y, z (m), qx, qy, qz, qw. By default y points up, as many systems have it.
        noise: standard deviation of every coordinate, m.
        placement_error: standard deviation of where a marker was meant to be glued and where it is, m.
        missing: share of the markers that a frame lacks, on average.
        occlusion_radius: half of them go missing together with their neighbours within so many metres.
        occlusion_time: how long a marker stays hidden, on average, s.
    """

    pose: tuple[Finite, Finite, Finite, Finite, Finite, Finite, Finite] = (0.4, -0.3, -0.75, _HALF, 0.0, 0.0, _HALF)
    noise: NotNegative = 0.0001
    placement_error: NotNegative = 0.0003
    missing: Annotated[float, Field(ge=0.0, le=0.6)] = 0.02
    occlusion_radius: Positive = 0.06
    occlusion_time: Positive = 0.5


class BodilessReality(_Description):
    """What every reality has, whatever the robot's body; `body` and `help` are for messages."""

    body: ClassVar[str] = "robot"
    help: ClassVar[str] = "See docs/steps/write-a-reality.md."

    name: str
    title: str
    pressure_sensors: PressureSensors = PressureSensors()
    hysteresis: NotNegative = 0.0
    motion_capture: MotionCaptureDescription = MotionCaptureDescription()

    @model_validator(mode="after")
    def _named(self) -> "BodilessReality":
        if not self.name.strip():
            raise ValueError("name must not be empty")
        return self


class Reality(BodilessReality):
    """One reality of one robot with a membrane."""

    body: ClassVar[str] = "membrane"

    membrane: RealMembrane = RealMembrane()
    scanner: ScannerDescription = ScannerDescription()


def membrane_realities() -> list[str]:
    """Names of the realities in `config/realities` that are of membranes; those of rods say so by their field `rod`."""
    files = sorted((config_dir() / "realities").glob("*.yaml"))
    return [path.stem for path in files if "rod" not in (yaml.safe_load(path.read_text(encoding="utf-8")) or {})]


R = TypeVar("R", bound=BodilessReality)


def read_reality(name_or_path: str | Path, robot: PneumaticRobot, kind: type[R]) -> tuple[R, Path]:
    """Read a reality by its name in `config/realities` or by path, and check that its sensors fit the robot.

    Returns:
        The reality, and where it lies.

    Raises:
        SoftformError: If the file is missing, is not YAML, or a field is wrong; the message names the field.
    """
    path = reality_file(name_or_path)
    try:
        reality = kind.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SoftformError(f"{path} is not valid YAML: {error}", "Mend the file.") from error
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'reality'}: {e['msg']}" for e in error.errors())
        raise SoftformError(f"{path} does not describe a reality of a {kind.body}: {faults}.", kind.help) from error
    sensors, chambers = reality.pressure_sensors, len(robot.chambers)
    fields = {"pressure_sensors.gain": (sensors.gain, chambers), "pressure_sensors.offset": (sensors.offset, chambers)}
    check_counts(reality, path, robot, fields)
    return reality, path


def check_counts(
    reality: BodilessReality, path: Path, robot: PneumaticRobot, fields: Mapping[str, tuple[object, int]]
) -> None:
    """Refuse a list that does not have one number for each chamber, or wall, of the robot.

    Args:
        reality: Of this description.
        path: Where it lies.
        robot: Whose it is to be.
        fields: Value of each field, and how many numbers it must have if it is a list.

    Raises:
        SoftformError: Naming the first field that does not fit.
    """
    for name, (value, count) in fields.items():
        if isinstance(value, list) and len(value) != count:
            raise SoftformError(
                f"{path}: {name} has {len(value)} numbers, robot '{robot.name}' needs {count}.", reality.help
            )


def load_reality(name_or_path: str | Path, robot: Robot) -> Reality:
    """Read a membrane's reality by its name in `config/realities` or by path, and check that it fits the robot.

    Raises:
        SoftformError: If the file is missing, is not YAML, or a field is wrong; the message names the field.
    """
    reality, path = read_reality(name_or_path, robot, Reality)
    membrane, real = robot.membrane, reality.membrane
    fields = {
        "membrane.wall_stiffness_scale": (real.wall_stiffness_scale, robot.degrees_of_freedom),
        "membrane.column_wall_shift": (real.column_wall_shift, membrane.columns - 1),
        "membrane.row_wall_shift": (real.row_wall_shift, membrane.rows - 1),
    }
    check_counts(reality, path, robot, fields)
    build_real_membrane(robot, reality)
    return reality


def build_real_membrane(robot: Robot, reality: Reality) -> Membrane:
    """The live membrane of a reality.

    Raises:
        SoftformError: If the simulation refuses a value.
    """
    nominal, real = robot.membrane, reality.membrane
    return build_membrane(
        nominal,
        cells=real.cells,
        element=real.element,
        material=real.material,
        thickness=lambda x, y: nominal.thickness * thickness_factor(real.thickness, x, y),
        prestretch=real.prestretch,
        wall_stiffness=nominal.wall_stiffness * np.asarray(real.wall_stiffness_scale, dtype=np.float64),
        column_walls=_walls(nominal.width, nominal.columns, real.column_wall_shift),
        row_walls=_walls(nominal.length, nominal.rows, real.row_wall_shift),
        clamp_stiffness=real.clamp_stiffness,
        gravity=real.gravity,
    )


def thickness_factor(field: ThicknessField, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Thickness over the nominal one at x, y (any equal shape, m): the same field on every mesh.

    A sum of random plane waves has a Gaussian covariance with the field's correlation length; it is kept within 2.5
    standard deviations.
    """
    generator = np.random.default_rng(field.seed)
    wave = generator.standard_normal((_WAVES, 2)) / field.correlation_length
    phase = generator.uniform(0.0, 2.0 * np.pi, _WAVES)
    position = np.stack([np.ravel(x), np.ravel(y)], axis=1)
    value = np.sqrt(2.0 / _WAVES) * np.cos(position @ wave.T + phase).sum(axis=1)
    return (field.scale * (1.0 + field.variation * np.clip(value, -2.5, 2.5))).reshape(np.shape(x))


def _walls(side: float, chambers: int, shift: list[float] | None) -> list[float] | None:
    if shift is None:
        return None
    return (np.linspace(-side / 2.0, side / 2.0, chambers + 1)[1:-1] + np.asarray(shift)).tolist()


def board_sensors(robot: PneumaticRobot, reality: BodilessReality, noise: float, seed: int) -> Sensors:
    """Sensors of the board's ten channels; channels without a chamber are ideal. `noise` in kPa."""
    gain, offset = np.ones(CHANNELS), np.zeros(CHANNELS)
    gain[robot.board.channels] = reality.pressure_sensors.gain
    offset[robot.board.channels] = np.asarray(reality.pressure_sensors.offset) / PA_PER_KPA
    return Sensors(gain, offset, noise, seed)


def true_pressures(reality: BodilessReality, commanded: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pressures (…, k) Pa in the chambers once the board has regulated its readings to `commanded` (…, k) Pa."""
    sensors = reality.pressure_sensors
    return np.maximum(0.0, (commanded - np.asarray(sensors.offset)) / np.asarray(sensors.gain))
