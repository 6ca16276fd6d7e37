"""Pictures of robots: shapes, and sections of what they are made of; the command draws a body's own picture, if any."""

import struct
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from softform_core.paths import robot_file
from softform_core.robots import Robot, load_robot
from softform_studies.cli_picture import picture
from softform_studies.robot_pictures import draw_robot


def size_of(output: Path) -> tuple[int, int]:
    """Width and height of a picture, pixels."""
    return struct.unpack(">II", output.read_bytes()[16:24])


def coarse(name: str, **changes: object) -> Robot:
    robot = load_robot(name, "surface")
    return robot.model_copy(update={"body": robot.body.model_copy(update=changes)})


@pytest.mark.parametrize(
    ("robot", "rows", "columns"),
    [(coarse("mannequin", cell=0.03), 2, 4), (coarse("membrane", cells=12), 1, 5)],
    ids=["mannequin", "membrane"],
)
def test_a_robot_is_drawn_in_one_row_or_unrolled_in_two(robot: Robot, rows: int, columns: int, tmp_path: Path) -> None:
    path = tmp_path / "robot.png"
    draw_robot(robot, path)
    assert size_of(path) == pytest.approx((352 * columns, 405 * rows), abs=3)


def test_the_common_command_draws_solids(tmp_path: Path) -> None:
    described = yaml.safe_load(robot_file("manipulator").read_text())
    described["body"]["cells"] = {"chamber": 2, "rib": 1, "layers": 2}
    described["actuators"]["maximum"] = 5000.0
    described.pop("tolerances", None)  # of the whole range
    description, output = tmp_path / "manipulator.yaml", tmp_path / "solid.png"
    description.write_text(yaml.safe_dump(described))
    CliRunner().invoke(picture, [str(description), "--output", str(output)], catch_exceptions=False)
    assert size_of(output) == (1125, 675), "its own picture: surfaces and cuts"
