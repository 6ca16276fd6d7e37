"""What of a robot and of a target lies beside the other: by footprint, whatever edges, walls and seams a scan has."""

import numpy as np
import pytest
from scipy.spatial import Delaunay
from scipy.spatial.transform import Rotation

from softform_core.evaluation.measured_errors import measure_errors, resting_surface
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.geometry.rigid import RigidTransform
from softform_core.inverse.counterpart import beside_share
from softform_core.inverse.ik_options import IkOptions
from softform_core.inverse.inverse import solve_inverse_kinematics
from softform_core.robots import load_robot
from softform_core.shapes.shape import Shape

ROBOT = load_robot("membrane")
PIPELINE = load_pipeline(ROBOT)
REST = resting_surface(PIPELINE, ROBOT)
HERE = RigidTransform()


def dome(xy):
    return 0.024 * (1.0 - (xy[:, 0] / 0.16) ** 2) * (1.0 - (xy[:, 1] / 0.16) ** 2)


def sheet(height=dome, shift=(0.0, 0.0), half=0.16, side=41, kept=lambda xy: xy[:, 0] < np.inf):
    line = np.linspace(-half, half, side)
    xy = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    faces = Delaunay(xy).simplices
    faces = faces[kept(xy[faces].mean(axis=1))]
    return Shape.from_mesh(np.column_stack([xy + shift, height(xy)]), faces)


def scan(radius=0.07, side=61):
    """A round hill as scans have them: its rim folds down and inwards, so that its edge is the nearest to nothing."""
    hill = sheet(lambda xy: 0.03 * np.exp(-((xy**2).sum(axis=1)) / 0.05**2), half=0.08, side=side)
    away = np.linalg.norm(hill.points[:, :2], axis=1)
    faces = hill.faces[(away[hill.faces] < radius).all(axis=1)]
    points = hill.points + [0.0, 0.0, 0.004]
    edge = away > radius - 0.004
    points[edge] = points[edge] * [0.96, 0.96, 0.0]
    return Shape.from_mesh(points, faces)


def soup(target):
    return Shape.from_mesh(target.points[target.faces].reshape(-1, 3), np.arange(target.faces.size).reshape(-1, 3))


def solved(target, **options):
    return solve_inverse_kinematics(PIPELINE, target, IkOptions(ROBOT.actuation_min, ROBOT.actuation_max, **options))


@pytest.mark.parametrize(
    ("target", "share"),
    [
        (sheet(), 0.0),
        (sheet(shift=(0.08, 0.0)), 0.25),
        (sheet(shift=(0.08, -0.04)), 1.0 - 0.75 * 0.875),
        (sheet(lambda xy: 0.0 * xy[:, 0], half=0.24), 1.0 - (2.0 / 3.0) ** 2),
        (sheet(lambda xy: 0.0 * xy[:, 0], half=0.08), 0.0),
        (sheet(shift=(0.4, 0.0)), 1.0),
        (soup(sheet(shift=(0.08, 0.0))), 0.25),
        (Shape(sheet(shift=(0.08, 0.0), side=200).points), 0.25),
        (sheet(lambda xy: 0.5 + dome(xy)), 0.0),
    ],
    ids=["over it", "aside", "aside both ways", "larger", "smaller", "elsewhere", "soup", "cloud", "far above"],
)
def test_the_share_of_a_target_beside_the_robot_is_known_before_anything_moves(target, share):
    assert beside_share(target, REST.shape, HERE) == pytest.approx(share, abs=0.012)


def test_the_share_is_that_of_the_posed_target():
    pose = RigidTransform(Rotation.from_euler("z", 90, degrees=True).as_matrix(), np.array([0.0, 0.08, 0.1]))
    assert beside_share(sheet(), REST.shape, pose) == pytest.approx(0.25, abs=0.012)


@pytest.mark.parametrize("name", ["manipulator", "mannequin"])
def test_no_part_of_a_shape_that_an_arm_can_take_lies_beside_it(name):
    robot = load_robot(name)
    pipeline = load_pipeline(robot, 1600)
    rest = resting_surface(pipeline, robot).shape
    points = pipeline.points(0.3 * robot.actuation_min + 0.7 * robot.actuation_max) / 1000.0
    shape = Shape(points, None, pipeline.patches.triangles(len(points)))
    assert beside_share(shape, rest, HERE) < 0.01
    assert beside_share(shape, rest, RigidTransform(np.eye(3), np.array([0.0, 0.0, 1.0]))) > 0.9


@pytest.mark.parametrize("target", [scan(), soup(scan()), Shape(scan(side=161).sample(6000).points)])
def test_what_of_the_robot_lies_beside_a_scan_counts_nowhere(target):
    """By edges alone 81 of 860 points beside the folded rim counted, and the mean was 9 mm."""
    result = solved(target)
    away = np.linalg.norm(result.points[:, :2], axis=1)
    assert not result.covered[away > 75.0].any() and result.covered[away < 60.0].all()
    assert result.mean_error_mm < 5.0 and result.max_error_mm < 20.0
    resting = measure_errors(REST.shape.sample(5000).points, target, HERE, REST)
    assert np.linalg.norm(resting.points[:, :2], axis=1).max() < 0.075


@pytest.mark.parametrize("pieces", [lambda shape: shape, soup], ids=["mesh", "soup"])
def test_a_whole_target_is_met_everywhere_and_a_hole_of_it_nowhere(pieces):
    whole = solved(pieces(sheet()))
    assert whole.covered.all() and whole.mean_error_mm == pytest.approx(0.85, abs=0.1)
    holed = solved(pieces(sheet(kept=lambda xy: np.linalg.norm(xy - 0.03, axis=1) > 0.04)))
    away = np.linalg.norm(holed.points[:, :2] - 30.0, axis=1)
    assert not holed.covered[away < 32.0].any() and holed.covered[away > 46.0].all()
    assert np.linalg.norm(holed.points - whole.points, axis=1).mean() < 1.0


def test_a_steep_target_is_met_below_its_slopes():
    """The nearest point of a steep slope lies far sideways, but the target is right above."""
    target = sheet(lambda xy: 0.05 * (np.abs(xy[:, 0]) < 0.08) * np.minimum(1.0, (0.08 - np.abs(xy[:, 0])) / 0.01))
    assert solved(target).covered.all()


@pytest.mark.parametrize("turn", [70.0, 90.0])
def test_what_stands_on_the_robot_has_no_footprint(turn):
    target = sheet().transformed(Rotation.from_euler("y", turn, degrees=True).as_matrix(), np.zeros(3))
    assert solved(target).mean_error_mm > 15.0
    stray = Shape(np.concatenate([sheet(kept=lambda xy: xy[:, 0] < 0.0).points[:861], [[0.0, 0.0, 9.0]]]))
    assert solved(stray).covered.mean() == pytest.approx(0.52, abs=0.04)


def test_walls_alone_are_no_error():
    points = np.array([[x, y, z] for x in (-0.1, 0.0, 0.1) for y in (-0.1, 0.1) for z in (0.0, 0.02)])
    faces = np.concatenate([[[k, k + 1, k + 2], [k + 1, k + 3, k + 2]] for k in (0, 4, 8)])
    assert np.isfinite(solved(Shape.from_mesh(points, faces)).mean_error_mm)


def test_a_free_target_is_not_moved_off_the_robot():
    """A target of half the size may lie anywhere on it: the footprint goes with it."""
    target = sheet(lambda xy: 0.5 * dome(2.0 * xy), half=0.08).transformed(np.eye(3), np.array([0.05, 0.02, 0.1]))
    result = solved(target, fix_pose=False)
    assert 0.2 < result.covered.mean() < 0.35 and result.mean_error_mm < 2.0
    assert np.abs(result.pose.apply(target.points * 1000.0).mean(axis=0)[:2]).max() < 81.0
