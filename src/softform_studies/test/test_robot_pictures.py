"""Pictures of robots: shapes, and sections of what they are made of."""

import matplotlib.image
import pytest
import yaml

from softform_core.paths import robot_file
from softform_core.robots import Robot, load_robot
from softform_studies.robot_pictures import draw_robot


def coarse(name: str, **changes: object) -> Robot:
    robot = load_robot(name, "surface")
    return robot.model_copy(update={"body": robot.body.model_copy(update=changes)})


@pytest.mark.parametrize(
    ("robot", "rows"),
    [(coarse("mannequin", cell=0.03), 2), (coarse("membrane", cells=12), 1)],
    ids=["mannequin", "membrane"],
)
def test_a_robot_is_drawn_in_one_row_or_unrolled_in_two(robot: Robot, rows: int, tmp_path) -> None:
    path = tmp_path / "robot.png"
    draw_robot(robot, path, [("all highest", robot.actuation_max)])
    height, width = matplotlib.image.imread(path).shape[:2]
    assert height == pytest.approx(rows * 405, abs=2) and width == pytest.approx(352 * 3, abs=2)


def test_a_solid_has_a_picture_of_its_own(tmp_path) -> None:
    described = yaml.safe_load(robot_file("manipulator").read_text())
    described["body"]["cells"] = {"chamber": 2, "rib": 1, "layers": 2}
    described["actuators"]["maximum"] = 5000.0
    (tmp_path / "manipulator.yaml").write_text(yaml.safe_dump(described))
    draw_robot(load_robot(str(tmp_path / "manipulator.yaml"), "surface"), tmp_path / "robot.png")
    assert matplotlib.image.imread(tmp_path / "robot.png").shape[:2] == (675, 1125)
