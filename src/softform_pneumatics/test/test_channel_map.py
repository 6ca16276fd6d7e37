"""The command that shows how a robot is plumbed: every chamber once, where it lies."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_pneumatics.cli_channels import channels


@pytest.mark.parametrize("robot", ["membrane", "three_chamber", "planar_fingers"])
def test_every_chamber_has_its_place(robot: str) -> None:
    described = load_robot(robot)
    outlines = described.body.outlines()
    assert len(outlines) == len(described.actuators) == len(set(outlines))


def test_the_membranes_first_chamber_lies_where_x_and_y_are_least() -> None:
    outlines = load_robot("membrane").body.outlines()
    assert outlines[0][2:4] == pytest.approx((-0.32 / 3.0, -0.32 / 3.0))
    assert outlines[2][2:4] == pytest.approx((0.32 / 3.0, -0.32 / 3.0))


def test_the_command_lists_and_draws(tmp_path: Path) -> None:
    picture = tmp_path / "channels.svg"
    result = CliRunner().invoke(channels, ["three_chamber", "--output", str(picture)])
    assert result.exit_code == 0, result.output
    assert "channel 2 -> c2" in result.output
    assert picture.read_text().count("<svg") == 1


def test_a_picture_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    result = CliRunner().invoke(channels, ["membrane", "--output", str(tmp_path / "no" / "folder.png")])
    assert isinstance(result.exception, SoftformError)
