"""Pictures of robots: shapes, and sections of what they are made of."""

import matplotlib.image
import pytest

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
