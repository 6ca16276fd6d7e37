"""Which targets count as out of reach, with the share that the nodes have by default."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from softform_core.errors import SoftformError
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.inverse.ik_options import IkOptions
from softform_core.inverse.inverse import solve_inverse_kinematics
from softform_core.inverse.out_of_reach import OutOfReachError, check_reach, largest_deformation
from softform_core.robots import load_robot
from softform_core.shapes.shape import Shape
from softform_core.surface.patch_set import SHEET
from softform_core.units import MM_PER_M

SHARE = 0.4


@pytest.fixture(scope="module")
def robot():
    return load_robot("membrane")


@pytest.fixture(scope="module")
def pipeline(robot):
    whole = load_pipeline(robot)
    return whole.at(robot.patches.samples(400))


@pytest.fixture(scope="module")
def deformation_mm(robot, pipeline):
    return largest_deformation(pipeline.points, robot.actuation_min, robot.actuation_max)


def check(robot, pipeline, deformation_mm, points_mm, partial=False):
    target = Shape.from_mesh(points_mm / MM_PER_M, SHEET.triangles(len(points_mm)))
    options = IkOptions(robot.actuation_min, robot.actuation_max, max_seconds=10.0, partial=partial)
    solution = solve_inverse_kinematics(pipeline, target, options)
    check_reach(solution.mean_error_mm, solution.miss, SHARE * deformation_mm)


def shape(robot, pipeline, seed):
    return pipeline.points(np.random.default_rng(seed).uniform(robot.actuation_min, robot.actuation_max))


def flat(pipeline, robot):
    rest = pipeline.points(robot.actuation_min)
    return rest[:, 0], rest[:, 1]


def test_the_largest_deformation_is_that_between_two_shapes(robot, pipeline, deformation_mm):
    empty, full = pipeline.points(robot.actuation_min), pipeline.points(robot.actuation_max)
    between = np.linalg.norm(full - empty, axis=1).mean()
    assert between <= deformation_mm < 1.2 * between
    # Of a pair of actuators that work against each other no single command shows it: the corners do.
    turned = largest_deformation(lambda a: a[:, :1] * [[1.0, 0.0]] - a[:, 1:] * [[1.0, 0.0]], np.zeros(2), np.ones(2))
    assert turned == pytest.approx(2.0)


def test_of_a_model_that_solves_few_shapes_are_asked_for_and_those_without_a_balance_left_out():
    asked = []

    def tip(actuation):
        asked.append(actuation)
        if actuation.min() > 0.5:
            raise SoftformError("It buckles.", "Lower the load.")
        return actuation[:, :2]

    assert largest_deformation(tip, np.zeros(9), np.ones(9), is_solved=True) == pytest.approx(np.sqrt(2.0))
    assert {len(one) for one in asked} == {1} and 4 < len(asked) < 20 and any(one.min() == 1.0 for one in asked)
    with pytest.raises(SoftformError, match="It buckles"):
        largest_deformation(tip, 0.9 * np.ones(9), np.ones(9), is_solved=True)


@pytest.mark.parametrize("seed", range(4))
def test_what_the_robot_can_take_or_nearly_passes(robot, pipeline, deformation_mm, seed):
    points = shape(robot, pipeline, seed)
    noise = np.random.default_rng(seed).normal(0.0, 5.0, points.shape)
    steeper = points * [1.0, 1.0, 1.5]
    for given in (points, points + [0.0, 0.0, 20.0], points + [50.0, 0.0, 0.0], steeper, points + noise):
        check(robot, pipeline, deformation_mm, given)


@pytest.mark.parametrize(
    "height",
    [
        lambda x, y: 40.0 * np.sin(np.pi * x / 160.0) * np.cos(np.pi * y / 160.0),
        lambda x, y: 80.0 * np.exp(-((x - 40.0) ** 2 + y**2) / 3200.0),
        lambda x, y: 60.0 * ((np.abs(x) < 100.0) & (np.abs(y) < 100.0)),
        lambda x, y: 40.0 * np.cos(np.pi * x / 320.0) * np.cos(np.pi * y / 320.0) + 8.0 * np.sin(x / 5.0),
    ],
    ids=["wave", "peak", "box", "ripples"],
)
def test_a_mediocre_fit_of_a_hard_shape_passes(robot, pipeline, deformation_mm, height):
    x, y = flat(pipeline, robot)
    check(robot, pipeline, deformation_mm, np.stack([x, y, height(x, y)], axis=1))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p: p + [0.0, 0.0, 500.0], r"4\d\d\.\d mm away in the direction \(-?0\.00, -?0\.00, 1\.00\)"),
        (lambda p: p + [0.0, 0.0, 100.0], "away in the direction"),
        (lambda p: p + [500.0, 0.0, 0.0], r"direction \((1\.00|0\.9)"),
        (lambda p: p * [1.0, 1.0, -1.0], "away in the direction .*-1.00|-0.9"),
        (lambda p: p @ Rotation.from_euler("x", 180, degrees=True).as_matrix().T, "-1.00|-0.9"),
        (lambda p: p @ Rotation.from_euler("x", 45, degrees=True).as_matrix().T, "several sides|away"),
        (lambda p: p @ Rotation.from_euler("y", 90, degrees=True).as_matrix().T, "several sides|away"),
        (lambda p: p * 0.1, "of another size"),
        (lambda p: p * 10.0, "away|of another size"),
    ],
    ids=["up 0.5 m", "up 0.1 m", "aside", "mirrored", "upside down", "tilted", "on its side", "a tenth", "tenfold"],
)
def test_what_lies_nowhere_near_does_not(robot, pipeline, deformation_mm, seed, change, says):
    with pytest.raises(OutOfReachError, match=says):
        check(robot, pipeline, deformation_mm, change(shape(robot, pipeline, seed)))


def test_a_part_that_lies_nowhere_near_does_not(robot, pipeline, deformation_mm):
    with pytest.raises(OutOfReachError, match="out of reach"):
        check(robot, pipeline, deformation_mm, shape(robot, pipeline, 0) + [0.0, 0.0, 500.0], partial=True)


def test_what_the_solver_had_no_time_for_is_not_called_out_of_reach():
    with pytest.raises(OutOfReachError, match=r"The time for solving was up, .* may be .* 9.0 mm .* more max_time"):
        check_reach(9.0, np.array([0.0, 0.0, 9.0]), 5.0, cut_short=True)
