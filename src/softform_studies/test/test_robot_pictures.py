"""`softform picture` draws a body that has a picture of its own by that."""

import struct
from pathlib import Path

import yaml
from click.testing import CliRunner

from softform_core.paths import robot_file
from softform_studies.cli_picture import picture


def drawn(robot: str | Path, output: Path) -> tuple[int, int]:
    """Width and height in pixels of the picture that the command draws."""
    CliRunner().invoke(picture, [str(robot), "--output", str(output)], catch_exceptions=False)
    return struct.unpack(">II", output.read_bytes()[16:24])


def test_the_common_command_draws_solids(tmp_path: Path) -> None:
    described = yaml.safe_load(robot_file("manipulator").read_text())
    described["body"]["cells"] = {"chamber": 2, "rib": 1, "layers": 2}
    described["actuators"]["maximum"] = 5000.0
    description = tmp_path / "manipulator.yaml"
    description.write_text(yaml.safe_dump(described))
    assert drawn(description, tmp_path / "solid.png") == (1125, 675), "its own picture: surfaces and cuts"
