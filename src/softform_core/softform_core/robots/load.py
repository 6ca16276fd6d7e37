"""Reading robots from their descriptions."""

from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from softform_core.errors import SoftformError
from softform_core.paths import places, robot_file
from softform_core.robots.robot import Robot
from softform_core.yaml_files import read_yaml


def load_robot(name_or_path: str | Path, needs: Literal["surface", "tip"] | None = None) -> Robot:
    """Read a robot, with the outputs that it needs, by its name in `config/robots` or by the path of a description.

    Raises:
        SoftformError: If the description is missing, is not YAML, does not describe a robot, or lacks what is needed.
    """
    path = robot_file(name_or_path)
    robot = read_robot(read_yaml(path), path)
    is_found_by_name = any(path.resolve().is_relative_to((place / "config").resolve()) for place in places())
    if str(name_or_path) != robot.name and not is_found_by_name:
        robot._path = str(name_or_path)
    if needs == "surface":
        _ = robot.patches
    elif needs == "tip":
        _ = robot.tip
    return robot


def read_robot(content: Any, origin: Path | str) -> Robot:
    """The robot that parsed YAML describes; paths of files in it begin at the folder of `origin`.

    Raises:
        SoftformError: If it does not describe a robot; the message names each wrong field of `origin`.
    """
    try:
        return Robot.model_validate(content, context={"folder": Path(origin).parent})
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, e['loc'])) or 'robot'}: {e['msg'].removeprefix('Value error, ').rstrip('.')}"
            for e in error.errors()
        )
        raise SoftformError(f"{origin} does not describe a robot: {faults}.", "See docs/robots.") from error
