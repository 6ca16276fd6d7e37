"""`softform shape`: what is read is told before anything moves."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from softform_core.cli.main import main
from softform_core.robots import load_robot
from softform_core.shapes.dem import dem_target
from softform_core.shapes.shape import Shape
from softform_core.shapes.write import write_ply

pytestmark = pytest.mark.slow

KEYS = ["points", "triangles", "area_mm2", "box_mm", "parts", "holes", "repaired"]
KEYS += ["unit_guess", "beside_robot_share", "pose"]


@pytest.fixture(scope="module")
def shifted(tmp_path_factory):
    """The landscape, a part of which lies beside the membrane, 5 mm above it."""
    path = tmp_path_factory.mktemp("shape") / "shifted.ply"
    land = dem_target(load_robot("membrane"))
    write_ply(path, Shape(land.points + [0.08, 0.03, 0.005], None, land.faces), "mm")
    return path


def run(*arguments):
    return CliRunner().invoke(main, ["shape", *map(str, arguments)])


def test_all_of_a_look_is_given_as_json(shifted):
    look = json.loads(run(shifted, "--unit", "mm", "--json", "-").output)
    assert list(look) == KEYS
    assert (look["points"], look["triangles"], look["parts"], look["holes"]) == (6561, 12800, 1, 0)
    assert np.allclose(look["box_mm"], [[-80, -130, 5], [240, 190, 37]], atol=0.01)
    assert look["beside_robot_share"] == pytest.approx(0.31, abs=0.01) and look["unit_guess"] == "mm"
    assert look["pose"] == "fixed" and look["repaired"] == []


def test_without_json_a_look_is_told_in_words_and_help_says_nothing_else(shifted):
    assert run(shifted, "--unit", "mm").output.startswith(f"{shifted}: 6561 points")
    assert "the default" not in run("--help").output.split("--json FILE")[1]


@pytest.mark.parametrize("pose", ["place", "free"])
def test_a_shape_is_put_where_it_fits(shifted, pose):
    look = json.loads(run(shifted, "--unit", "mm", "--pose", pose, "--json", "-").output)
    assert look["beside_robot_share"] < 0.02
    assert look["pose"].startswith(f"{pose}: moved by (-")


def test_the_look_is_a_line_with_what_was_left_out_and_a_picture(shifted, tmp_path):
    result = run(shifted, "--unit", "mm", "--robot", "membrane", "--picture", tmp_path / "a.png")
    assert (
        "6561 points, 12800 triangles" in result.output and "31 % of the target lies beside the robot" in result.output
    )
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    cloud = tmp_path / "cloud.xyz"
    cloud.write_text("0 0 0\n0 0 0\n" + "".join(f"{x} {y} {x * y}\n" for x in (0.1, 0.5, 1.0) for y in (0.0, 0.2, 0.3)))
    result = run(cloud, "--picture", tmp_path / "b.png", "--robot", "manipulator")
    assert "2 points that were not measured" in result.output and (tmp_path / "b.png").is_file()
    write_ply(cloud.with_suffix(".ply"), Shape(Shape.from_cloud(np.loadtxt(cloud)[2:]).points * 300.0))
    assert "its size suggests that its unit is mm, not m" in run(cloud.with_suffix(".ply")).output


def test_what_cannot_be_read_is_an_error(tmp_path):
    (tmp_path / "a.stl").write_text("version https://git-lfs.github.com/spec/v1\n")
    result = run(tmp_path / "a.stl")
    assert result.exit_code == 2 and "git lfs pull" in result.output
