import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softform_capture.scanner.captured_cloud import (
    CloudOptions,
    captured_cloud,
    inside_workspace,
    not_stray,
    thinned_evenly,
)
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_core.robots import load_robot
from softform_core.shapes.dem import dem_target
from softform_core.shapes.shape import Shape

HALF_TURN_ABOUT_X = [0.1, -0.2, 0.9, 1.0, 0.0, 0.0, 0.0]
AS_IS = RigidTransform().apply


@pytest.fixture(scope="module")
def robot():
    return load_robot("membrane")


@pytest.fixture(scope="module")
def surface(robot):
    return Shape(dem_target(robot).sample(6000).points)


def test_a_registration_turns_then_shifts():
    moved = RigidTransform.from_pose(HALF_TURN_ABOUT_X).apply(np.array([[0.1, 0.2, 0.3]]))
    assert np.allclose(moved, [[0.2, -0.4, 0.6]])


@given(
    st.lists(st.floats(-1.0, 1.0), min_size=4, max_size=4).filter(lambda q: np.linalg.norm(q) > 0.1),
    st.lists(st.floats(-2.0, 2.0), min_size=3, max_size=3),
)
def test_a_registration_is_rigid(quaternion, translation):
    pose = [*translation, *(np.array(quaternion) / np.linalg.norm(quaternion))]
    corners = np.vstack([np.zeros(3), np.eye(3)])
    moved = RigidTransform.from_pose(pose).apply(corners)
    edges = moved[1:] - moved[0]
    assert np.allclose(edges @ edges.T, np.eye(3), atol=1e-9)
    assert np.linalg.det(edges) == pytest.approx(1.0)
    assert np.allclose(moved[0], translation)


@pytest.mark.parametrize(
    "pose", [[], [0.0] * 7, [0.0] * 6 + [2.0], [0.0] * 6, [0.0] * 5 + [np.nan, 1.0], [0.0] * 7 + [1.0]]
)
def test_what_is_no_pose_is_rejected(pose):
    with pytest.raises(SoftformError) as caught:
        RigidTransform.from_pose(pose)
    assert caught.value.next_step


def test_stray_points_go_and_the_surface_stays(surface):
    random = np.random.default_rng(1)
    noisy = surface.points + random.normal(0.0, 2e-4, surface.points.shape)
    height = random.uniform(0.004, 0.03, (60, 1)) * random.choice([-1.0, 1.0], (60, 1))
    stray = random.permutation(noisy)[:60] + height * [0.0, 0.0, 1.0]
    kept = not_stray(np.vstack([noisy, stray]))
    assert kept[: len(noisy)].mean() > 0.97
    assert kept[len(noisy) :].mean() < 0.1


def test_the_rim_of_an_even_grid_is_kept():
    grid = np.stack(np.meshgrid(np.arange(40.0), np.arange(40.0), [0.0]), axis=-1).reshape(-1, 3)
    assert not_stray(grid).all()


def test_few_points_are_all_kept():
    assert not_stray(np.eye(3)).all()


def test_the_box_holds_the_robot_inflated_and_sagging(robot):
    points = np.array([[0.16, 0.16, 0.0], [0.0, 0.0, 0.15], [0.0, 0.0, -0.05], [0.2, 0.0, 0.0], [0.0, 0.0, 0.4]])
    assert inside_workspace(points, robot, "box", 0.01).tolist() == [True, True, True, False, False]


def test_the_hemisphere_of_paper_004_is_centred_at_the_base(robot):
    reach = float(np.hypot(*robot.extent)) / 2.0
    points = np.array([[0.0, 0.0, reach], [0.16, 0.16, 0.0], [0.0, 0.0, reach + 0.02], [0.0, 0.0, -0.02]])
    assert inside_workspace(points, robot, "hemisphere", 0.01).tolist() == [True, True, False, False]


def test_even_thinning_leaves_one_mean_in_every_cube():
    dense = np.random.default_rng(0).uniform(0.0, 0.01, (5000, 3))
    sparse = dense[:5] + [0.1, 0.0, 0.0]
    thinned = thinned_evenly(np.vstack([dense, sparse]), 0.02)
    assert thinned.shape == (2, 3)
    thinned = thinned[thinned[:, 0].argsort()]
    assert thinned[0] == pytest.approx(dense.mean(axis=0))
    assert thinned[1] == pytest.approx(sparse.mean(axis=0))
    even = thinned_evenly(dense, 0.002)
    assert 100 < len(even) <= 6**3


def test_quality_tells_how_much_of_the_robot_is_seen_how_densely_and_how_clean(robot, surface):
    whole = captured_cloud(surface, AS_IS, robot, CloudOptions(remove_outliers=False)).quality
    assert whole.coverage == 1.0
    assert whole.density == pytest.approx(len(surface.points) / np.prod(robot.extent), rel=0.15)
    assert whole.outlier_share == 0.0
    half = Shape(surface.points[surface.points[:, 0] < 0.0])
    assert captured_cloud(half, AS_IS, robot, CloudOptions()).quality.coverage == pytest.approx(0.5, abs=0.04)
    random = np.random.default_rng(1)
    stray = random.uniform([-0.15, -0.15, 0.06], [0.15, 0.15, 0.12], (300, 3))
    dirty = captured_cloud(Shape(np.vstack([surface.points, stray])), AS_IS, robot, CloudOptions()).quality
    assert dirty.outlier_share == pytest.approx(300 / 6300, rel=0.6)


def test_normals_are_those_of_the_surface_upwards(robot, surface):
    cloud = captured_cloud(surface, AS_IS, robot, CloudOptions(remove_outliers=False, normals=True))
    truth = dem_target(robot).sample(6000).normals
    assert np.abs(np.einsum("ni,ni->n", cloud.normals, truth)).mean() > 0.98
    assert (cloud.normals[:, 2] >= 0.0).all()


def test_a_scan_becomes_the_cloud_of_the_robot_alone(robot, surface):
    registration = RigidTransform.from_pose(HALF_TURN_ABOUT_X)
    table = np.random.default_rng(0).uniform([-1.0, -1.0, -0.3], [1.0, 1.0, -0.25], (3000, 3))
    seen = np.vstack([surface.points, table])
    in_scanner = (seen - registration.translation) @ registration.rotation
    options = CloudOptions(remove_outliers=False)
    cloud = captured_cloud(Shape(in_scanner), registration.apply, robot, options).points
    assert np.allclose(cloud, surface.points)


def test_a_large_scan_is_thinned_and_a_mesh_is_sampled(robot, surface):
    options = CloudOptions(max_points=1000, remove_outliers=False)
    assert len(captured_cloud(surface, AS_IS, robot, options).points) == 1000
    square = [[-0.1, -0.1, 0.01], [0.1, -0.1, 0.01], [0.1, 0.1, 0.01], [-0.1, 0.1, 0.01]]
    cloud = captured_cloud(Shape.from_mesh(square, [[0, 1, 2], [0, 2, 3]]), AS_IS, robot, options).points
    assert len(cloud) == 1000
    assert np.allclose(cloud[:, 2], 0.01)


def test_wrong_units_and_a_wrong_registration_are_rejected(robot, surface):
    with pytest.raises(SoftformError, match="in millimetres"):
        captured_cloud(Shape(surface.points * 1000.0), AS_IS, robot, CloudOptions())
    with pytest.raises(SoftformError, match="converted from millimetres twice"):
        captured_cloud(Shape(surface.points / 1000.0), AS_IS, robot, CloudOptions())
    away = RigidTransform.from_pose([3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    with pytest.raises(SoftformError, match="registration"):
        captured_cloud(surface, away.apply, robot, CloudOptions())
