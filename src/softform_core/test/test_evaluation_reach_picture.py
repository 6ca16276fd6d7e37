"""The picture of a reached shape: every way to it on one scale; what cannot be drawn or written is rejected."""

import numpy as np
import pytest
from matplotlib.image import imread

from softform_core.errors import SoftformError
from softform_core.evaluation.measured_errors import MeasuredErrors, resting_surface
from softform_core.evaluation.reach_picture import write_picture
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.robots import load_robot
from softform_core.shapes.dem import dem_target
from softform_core.shapes.shape import Shape

pytestmark = pytest.mark.slow

REST = np.full(100, 11.0)


@pytest.fixture(scope="module")
def target():
    return dem_target(load_robot("membrane"))


@pytest.fixture(scope="module")
def rest():
    robot = load_robot("membrane")
    return resting_surface(load_pipeline(robot, 400), robot).shape


def measured(target, scale):
    points = target.sample(3000, seed=1).points
    return MeasuredErrors(points, scale * np.abs(points[:, 0]) * 0.02, np.arange(0, 3000, 3))


def picture(path, target, rest, *scales):
    names = ("simulation alone", "with sim-to-real", "closed loop")
    ways = {name: measured(target, scale) for name, scale in zip(names, scales, strict=False)}
    write_picture(path, target, ways, REST, [2.0, 1.4, 1.3], 1.2, {"target": "dem", "kPa": "c1 1  c2 2"}, rest)
    return imread(path)[..., :3]


@pytest.mark.long
def test_all_ways_are_drawn_on_one_scale_unless_one_would_be_black(tmp_path, target, rest):
    first = picture(tmp_path / "a.png", target, rest, 1.0, 1.0, 1.0)
    second = picture(tmp_path / "b.png", target, rest, 2.0, 1.0, 1.0)
    third = picture(tmp_path / "c.png", target, rest, 20.0, 1.0, 1.0)
    assert first.shape == second.shape
    height, width = first.shape[:2]
    assert width > 1200 and height > 800
    # A larger error of the first way darkens the maps of the others, of which the last is at the right end.
    last_map = np.s_[height // 10 : 4 * height // 10, 82 * width // 100 : 97 * width // 100]
    assert second[last_map].mean() < first[last_map].mean() - 0.03 < third[last_map].mean()
    space = np.s_[6 * height // 10 : 9 * height // 10, 27 * width // 100 : 49 * width // 100]
    assert np.ptp(first[space], axis=2).mean() > 0.02, "the shape is coloured in space, too"


def test_one_way_alone_is_drawn(tmp_path, target, rest):
    assert picture(tmp_path / "one.png", target, rest, 1.0).std() > 0.05


def ring(shape, points):
    grid = np.arange(points.shape[0]).reshape(shape)
    a, b, c, d = (part.ravel() for part in (grid[:-1, :-1], grid[:-1, 1:], grid[1:, 1:], grid[1:, :-1]))
    return Shape(points, None, np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)]))


def test_a_standing_robot_is_drawn_from_the_front_and_from_the_back(tmp_path):
    """A cylinder with large errors at its back alone: that view is bright, the other dark."""
    angle, height = np.meshgrid(np.linspace(0.0, 2.0 * np.pi, 120), np.linspace(0.0, 0.3, 60))
    points = np.stack([0.05 * np.cos(angle), 0.05 * np.sin(angle), height], axis=-1).reshape(-1, 3)
    errors = np.where(points[:, 0] < 0.0, 0.005, 0.0)
    cylinder = Shape.from_cloud(points)
    path = tmp_path / "upright.png"
    way = MeasuredErrors(points, errors, np.arange(len(points)))
    write_picture(path, cylinder, {"simulation alone": way}, REST, [2.0], 1.2, {}, ring(angle.shape, points))
    drawn = imread(path)[..., :3]
    height, width = drawn.shape[:2]
    axes = np.abs(drawn - 0.9098).max(axis=2) < 0.01  # the map's grey ground, seen between both views
    columns = np.flatnonzero(axes[2 * height // 10 : 3 * height // 10].mean(axis=0) > 0.8)
    right = columns[columns > 0.27 * width]  # of the second map
    gap = right[np.flatnonzero(np.diff(right) > 10)]
    assert len(gap) >= 2  # ground, front, ground, back, ground
    row = 25 * height // 100
    front, back = drawn[row, gap[0] + 12 : gap[0] + 32], drawn[row, gap[1] + 12 : gap[1] + 32]
    assert back.mean() > front.mean() + 0.3


def test_what_cannot_be_drawn_or_written_is_rejected(tmp_path, target, rest):
    with pytest.raises(SoftformError, match="cannot be drawn"):
        picture(tmp_path / "none.png", target, rest)
    with pytest.raises(SoftformError, match="cannot be written"):
        picture(tmp_path / "absent" / "report.png", target, rest, 1.0)
