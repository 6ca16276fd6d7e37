"""Half a tube is no target of a robot whose surface is a tube, however it is bent, turned, sampled or measured."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from softform_core.errors import SoftformError
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.robots import load_robot
from softform_core.shapes.open_tube import MOST_OPEN, OPEN_PART, check_goes_around, open_angles
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M

pytestmark = pytest.mark.slow

SAMPLES = 48 * 48


@pytest.fixture(scope="module", params=["manipulator", "compressible", "mannequin"])
def shapes(request):
    """A robot, its surface's parameters, and its shapes at rest and, bent far, at corners of its working range."""
    robot = load_robot(request.param)
    random = np.random.default_rng(3)
    corners = np.where(random.random((5, robot.degrees_of_freedom)) < 0.5, robot.actuation_min, robot.actuation_max)
    points = load_pipeline(robot, SAMPLES).points(np.vstack([robot.rest_actuation, corners])) / MM_PER_M
    turn = Rotation.from_rotvec([0.5, -1.0, 2.0]).as_matrix()
    faces = robot.patches.triangles(SAMPLES)
    return robot, robot.patches.samples(SAMPLES), [Shape(one @ turn.T, None, faces) for one in points]


def part(shape, keeps):
    """The faces of a mesh all of whose vertices are kept."""
    return Shape(shape.points, None, shape.faces[keeps[shape.faces].all(axis=1)])


def noisy(shape, count):
    points = shape.sample(count).points
    return Shape(points + np.random.default_rng(1).normal(0.0, 1e-3, points.shape))


def is_open(shape):
    gaps = open_angles(shape)
    return (gaps > MOST_OPEN).mean() > OPEN_PART


def test_whole_tubes_pass(shapes):
    robot, uv, whole = shapes
    for shape in whole:
        for target in (shape, Shape(shape.points), noisy(shape, 20_000), shape.sample(300)):
            check_goes_around(target, robot)
        check_goes_around(part(shape, uv[:, 1] < 0.3), robot)  # shorter than the robot


@pytest.mark.long
@pytest.mark.parametrize("start", [0.0, 0.25, 0.5, 0.75])
def test_half_a_tube_is_open(shapes, start):
    robot, uv, whole = shapes
    for shape in whole:
        half = part(shape, (uv[:, 0] - start) % 1.0 <= 0.5)
        assert is_open(half) and is_open(noisy(half, 20_000)) and is_open(half.sample(500))
    with pytest.raises(SoftformError, match=f"open: .* degrees .* '{robot.name}' is a tube") as caught:
        check_goes_around(half, robot)
    assert "partial" in caught.value.next_step


def test_a_half_cut_through_space_is_open(shapes):
    _, _, whole = shapes
    for shape in whole:
        centred = shape.points - shape.points.mean(axis=0)
        across = centred @ np.linalg.svd(centred, full_matrices=False)[2][2]
        assert is_open(part(shape, across > 0.0)) and is_open(part(shape, across < 0.0))


def test_holes_do_not_open_a_tube(shapes):
    """As of a scan: a third is missing in six patches."""
    robot, uv, whole = shapes
    for number, shape in enumerate(whole):
        missing = np.zeros(len(uv), dtype=bool)
        for u, v in np.random.default_rng(number).random((6, 2)):
            around = np.abs((uv[:, 0] - u + 0.5) % 1.0 - 0.5)
            missing |= np.hypot(around, uv[:, 1] - v) < 0.14
        check_goes_around(part(shape, ~missing), robot)


def test_a_flat_sheet_is_no_tube():
    sheet = np.random.default_rng(0).random((1000, 3)) * [0.3, 0.3, 0.0]
    with pytest.raises(SoftformError, match="open"):
        check_goes_around(Shape(sheet), load_robot("manipulator"))
    check_goes_around(Shape(sheet), load_robot("membrane"))


def test_too_few_points_are_not_judged():
    assert len(open_angles(Shape(np.random.default_rng(0).random((100, 3))))) == 0
