"""Measured errors: what a scan says about the shape, not about its noise, strays or holes."""

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.evaluation.measured_errors import measure_errors, resting_surface
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.geometry.rigid import RigidTransform
from softform_core.robots import load_robot
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M

HIDDEN = np.array([4000.0, 500.0, 3000.0, 800.0, 2500.0, 1500.0, 200.0, 3500.0, 1000.0])
HERE = RigidTransform()
REST = resting_surface(load_pipeline(load_robot("membrane")), load_robot("membrane"))


@pytest.fixture(scope="module")
def target():
    """The mesh that the shipped model predicts, m."""
    pipeline = load_pipeline(load_robot("membrane"))
    points = pipeline.points(HIDDEN) / MM_PER_M
    return Shape.from_mesh(points, pipeline.patches.triangles(len(points)))


@pytest.fixture
def scan(target):
    return target.sample(4000, seed=1).points


def test_a_perfect_scan_has_no_error(target, scan):
    measured = measure_errors(scan, target, HERE, REST)
    assert measured.maximum < 1e-9 and len(measured.points) == len(measured.errors) == 4000


def test_a_lifted_robot_is_measured_along_the_normal(target, scan):
    normals = target.sample(4000, seed=1).normals
    measured = measure_errors(scan + 0.002 * normals, target, HERE, REST)
    assert measured.mean == pytest.approx(0.002, rel=0.05) and measured.maximum < 0.0025


def test_strays_and_noise_do_not_decide(target, scan):
    rng = np.random.default_rng(0)
    noisy = scan + 2e-4 * rng.normal(size=scan.shape)
    noisy[rng.choice(len(noisy), 60, replace=False)] += rng.uniform(0.01, 0.05, (60, 3))
    measured = measure_errors(noisy, target, HERE, REST)
    assert measured.mean < 3e-4 and measured.maximum < 2e-3


def test_a_dent_is_not_taken_for_noise(target, scan):
    dented = scan.copy()
    dent = np.linalg.norm(dented[:, :2] - [0.05, -0.03], axis=1) < 0.02
    dented[dent, 2] -= 0.008
    measured = measure_errors(dented, target, HERE, REST)
    assert 0.005 < measured.maximum < 0.0085


def test_holes_and_points_without_return_are_no_errors(target, scan):
    holed = scan.copy()
    holed[np.linalg.norm(holed[:, :2], axis=1) < 0.05] = np.nan
    assert measure_errors(holed, target, HERE, REST).maximum < 1e-9
    left = Shape(target.points, target.normals, target.faces[target.points[target.faces].mean(axis=1)[:, 0] < 0])
    measured = measure_errors(scan, left, HERE, REST)
    assert measured.maximum < 0.006 and 0.4 < len(measured.points) / len(scan) < 0.6


def test_a_part_that_is_scanned_densely_counts_by_its_area(target, scan):
    left = scan[:, 0] < 0.0
    lifted = scan + [0.0, 0.0, 0.004] * left[:, None]
    once = measure_errors(lifted, target, HERE, REST)
    jitter = np.random.default_rng(0).normal(size=(8, *scan[left].shape)) * [1e-3, 1e-3, 0.0]
    dense = np.concatenate([lifted, (lifted[left] + jitter).reshape(-1, 3)])
    again = measure_errors(dense, target, HERE, REST)
    assert again.mean == pytest.approx(once.mean, rel=0.2) and again.errors.mean() > 1.7 * once.mean


def test_the_pose_moves_the_target(target, scan):
    pose = RigidTransform().moved(np.array([0.1, 0.2, 0.3]), np.array([0.01, 0.02, -0.03]), np.zeros(3))
    assert measure_errors(pose.apply(scan), target, pose, REST).maximum < 1e-9
    assert measure_errors(pose.apply(scan), target, HERE, REST).mean > 0.003


def test_useless_captures_are_rejected(target, scan):
    with pytest.raises(SoftformError, match="0 points"):
        measure_errors(np.full((500, 3), np.nan), target, HERE, REST)
    with pytest.raises(SoftformError, match="over the target"):
        measure_errors(scan + [1.0, 0.0, 0.0], target, HERE, REST)
