"""Robots as typed descriptions, read from `config/robots/*.yaml`."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import yaml
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from softform_core.errors import SoftformError
from softform_core.paths import robot_file
from softform_core.pneumatic_robot import Description, Material, NotNegative, PneumaticRobot, Positive
from softform_core.tip_robot import TipRobot

__all__ = [
    "Material",
    "MembraneDescription",
    "PneumaticRobot",
    "Robot",
    "SurfaceDescription",
    "TipRobot",
    "load_any_robot",
    "load_robot",
    "load_tip_robot",
]


class MembraneDescription(Description):
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


class SurfaceDescription(Description):
    """B-spline surface of Eq. 1: control points along u and v, and polynomial degree (order minus one)."""

    rows: Annotated[int, Field(ge=4)]
    columns: Annotated[int, Field(ge=4)]
    degree: Annotated[int, Field(ge=1, le=5)]


class Robot(PneumaticRobot):
    """A soft robot with a surface: a membrane, and the B-spline that describes its shapes."""

    membrane: MembraneDescription
    surface: SurfaceDescription

    @property
    def chambers(self) -> list[str]:
        """Names of the chambers, row by row: c1 … ck."""
        return [f"c{index + 1}" for index in range(self.membrane.rows * self.membrane.columns)]

    @property
    def extent(self) -> NDArray[np.float64]:
        """Size of the resting body, (2,) m."""
        return np.array([self.membrane.width, self.membrane.length])

    def fingerprint(self) -> str:
        """Digest of all that decides simulated shapes."""
        return self._digest({"membrane", "surface"})


def load_any_robot(name_or_path: str | Path) -> Robot | TipRobot:
    """Read a robot, of whatever body, by its name in `config/robots` or by the path of a description.

    Raises:
        SoftformError: If the description is missing, is not YAML, or does not describe a robot.
    """
    path = robot_file(name_or_path)
    content = _read(path)
    kind = TipRobot if isinstance(content, dict) and "rod" in content else Robot
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'robot'}: {e['msg']}" for e in error.errors())
        raise SoftformError(f"{path} does not describe a robot: {faults}.", "See docs/robots.") from error


def load_robot(name_or_path: str | Path) -> Robot:
    """Read a robot with a surface by its name in `config/robots` or by the path of a description.

    Raises:
        SoftformError: As `load_any_robot`, and if the robot has no surface.
    """
    robot = load_any_robot(name_or_path)
    if not isinstance(robot, Robot):
        raise SoftformError(
            f"Robot '{robot.name}' has a tip and no surface.", "Choose a robot with a membrane, such as 'membrane'."
        )
    return robot


def load_tip_robot(name_or_path: str | Path) -> TipRobot:
    """Read a robot with a tip by its name in `config/robots` or by the path of a description.

    Raises:
        SoftformError: As `load_any_robot`, and if the robot has no tip.
    """
    robot = load_any_robot(name_or_path)
    if not isinstance(robot, TipRobot):
        raise SoftformError(
            f"Robot '{robot.name}' has a surface and no tip.", "Choose a chain of rods, such as 'three_chamber'."
        )
    return robot


def _read(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise SoftformError(f"{path} is not valid YAML: {error}", "Mend the file.") from error
