"""The scanner sees what a scanner can see: noise, outliers, occlusion, holes; its exports are whole or not there."""

import resource

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform, kabsch
from softform_core.shapes.ply_header import read_ply_header
from softform_core.shapes.read import read_shape
from softform_rig.reality import ScannerDescription
from softform_rig.scanner import Scan, Scanner
from softform_rig.surface_scans import export_scan

POSE = RigidTransform(np.eye(3), np.zeros(3))
CLEAN = {"noise": 0.0, "outlier_fraction": 0.0, "holes": 0.0}


def grid(height=lambda x, y: 0.0 * x, cells: int = 60, half: float = 0.16):
    line = np.linspace(-half, half, cells + 1)
    x, y = np.meshgrid(line, line, indexing="ij")
    vertices = np.stack([x, y, height(x, y)], axis=-1).reshape(-1, 3)
    a = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).ravel()
    b, c, d = a + cells + 1, a + cells + 2, a + 1
    return vertices, np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])


def scanner(seed: int = 0, pose: RigidTransform = POSE, **changes) -> Scanner:
    return Scanner(ScannerDescription(**(CLEAN | changes)), pose, 0.25, seed)


def test_a_clean_scan_lies_on_the_surface_and_covers_it() -> None:
    vertices, faces = grid()
    scan = scanner().scan(vertices, faces)
    assert np.abs(scan.points[:, 2]).max() < 1e-9
    assert np.allclose(scan.normals, [0.0, 0.0, 1.0])
    assert cKDTree(scan.points).query(vertices)[0].max() < 0.006


def test_range_noise_has_the_stated_deviation_along_the_ray() -> None:
    vertices, faces = grid()
    eye = (0.0, 0.0, 0.6)
    points = scanner(viewpoints=[eye], noise=0.0005).scan(vertices, faces).points
    rays = (points - eye) / np.linalg.norm(points - eye, axis=1, keepdims=True)
    error = points[:, 2] / rays[:, 2]
    assert error.std() == pytest.approx(0.0005, rel=0.05)
    assert abs(error.mean()) < 0.00003


def test_outliers_are_as_many_and_as_far_as_stated() -> None:
    vertices, faces = grid()
    scan = scanner(outlier_fraction=0.05, outlier_range=0.03).scan(vertices, faces)
    assert scan.is_outlier.mean() == pytest.approx(0.05, abs=0.01)
    off = np.abs(scan.points[:, 2])
    assert off[~scan.is_outlier].max() < 1e-9
    assert 0.02 < off[scan.is_outlier].max() <= 0.03


def test_hidden_points_are_never_seen() -> None:
    vertices, faces = grid()
    lid, lid_faces = grid(lambda x, y: 0.0 * x + 0.1, cells=10, half=0.06)
    both = np.concatenate([vertices, lid])
    scan = scanner(viewpoints=[(0.0, 0.0, 0.6)]).scan(both, np.concatenate([faces, lid_faces + len(vertices)]))
    low = scan.points[scan.points[:, 2] < 0.05]
    shadow = 0.06 * 0.6 / 0.5  # of the lid on z = 0, seen from 0.6 m
    assert len(low) > 1000
    assert np.abs(low[:, :2]).max(axis=1).min() >= shadow - 1e-6


def test_the_far_side_of_a_ridge_is_not_seen() -> None:
    vertices, faces = grid(lambda x, y: 0.08 * np.exp(-((y / 0.03) ** 2)))
    scan = scanner(viewpoints=[(0.0, -0.6, 0.1)], look_at=(0.0, 0.0, 0.04)).scan(vertices, faces)
    assert len(scan.points) > 500
    assert scan.points[:, 1].max() < 0.005


def test_back_faces_are_not_seen() -> None:
    vertices, faces = grid()
    assert len(scanner(viewpoints=[(0.0, 0.0, -0.6)]).scan(vertices, faces).points) == 0


def test_grazing_surfaces_are_missing() -> None:
    vertices, faces = grid()
    low = {"viewpoints": [(0.0, -0.6, 0.08)], "look_at": (0.0, 0.0, 0.0)}
    assert len(scanner(grazing_angle=75.0, **low).scan(vertices, faces).points) == 0
    assert len(scanner(grazing_angle=89.0, **low).scan(vertices, faces).points) > 100


def test_holes_take_away_regions_and_differ_from_scan_to_scan() -> None:
    vertices, faces = grid()
    looking = scanner(holes=4.0, hole_radius=0.04)
    missing = []
    for _ in range(12):
        far = cKDTree(looking.scan(vertices, faces).points).query(vertices)[0] > 0.006
        missing.append(far)
    share = np.mean(missing, axis=1)
    assert 0.1 < share.mean() < 0.3
    assert len(np.unique(share)) > 6


def test_the_same_seed_gives_the_same_scan() -> None:
    vertices, faces = grid()
    one, two, other = (scanner(seed, noise=2e-4, holes=3.0).scan(vertices, faces).points for seed in (3, 3, 4))
    assert np.array_equal(one, two)
    assert one.shape != other.shape or not np.array_equal(one, other)


@settings(max_examples=25)
@given(angles=st.tuples(*[st.floats(-3.1, 3.1)] * 3), shift=st.tuples(*[st.floats(-1.0, 1.0)] * 3))
def test_scanner_frame_and_robot_frame_are_inverse(angles, shift) -> None:
    quaternion = Rotation.from_euler("xyz", angles).as_quat()
    pose = RigidTransform.from_pose([*shift, *quaternion])
    points = np.random.default_rng(0).standard_normal((20, 3))
    assert np.allclose(pose.apply(pose.apply_inverse(points)), points)


def test_points_come_in_the_scanner_frame() -> None:
    vertices, faces = grid()
    pose = RigidTransform(Rotation.from_euler("x", 200, degrees=True).as_matrix(), np.array([0.1, -0.2, 0.5]))
    scan = scanner(pose=pose).scan(vertices, faces)
    assert np.abs(pose.apply(scan.points)[:, 2]).max() < 1e-9
    assert scan.points[:, 2].mean() > 0.3, "the surface lies in front of the scanner"


@pytest.mark.parametrize("registration", [[0.0] * 7, [0.0] * 6, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0], [np.nan] * 7])
def test_a_registration_that_is_no_pose(registration) -> None:
    with pytest.raises(SoftformError, match="is no pose"):
        RigidTransform.from_pose(registration)


def some_scan(count: int = 200) -> Scan:
    points = np.random.default_rng(0).uniform(-0.1, 0.1, (count, 3))
    return Scan(points, np.tile([0.0, 0.0, 1.0], (count, 1)), np.zeros(count, dtype=bool))


def test_exports_are_millimetre_ply_files_with_the_time_of_capture(tmp_path) -> None:
    path = export_scan(tmp_path / "new", some_scan(), 1_718_000_000.25, keep=5)
    header = read_ply_header(path)
    assert header.byte_order == "<"
    assert float(header.comment("captured_at")) == 1_718_000_000.25
    assert np.allclose(read_shape(path, "mm").points, some_scan().points, atol=1e-7)
    raw = path.read_bytes()[header.body_offset :]
    assert np.frombuffer(raw[:4], "<f4")[0] == pytest.approx(1000.0 * some_scan().points[0, 0], rel=1e-6)


def test_only_the_latest_exports_are_kept_and_other_files_left_alone(tmp_path) -> None:
    (tmp_path / "mine.ply").write_text("mine")
    for second in range(8):
        export_scan(tmp_path, some_scan(), 1000.0 + second, keep=3)
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == ["mine.ply", *(f"scan_{1000 * (1000 + s):015d}.ply" for s in (5, 6, 7))]


def test_after_the_clock_was_set_back_new_exports_stay_and_those_of_the_future_go(tmp_path):
    for second in (5000, 5001, 5002, 1400, 1401):
        path = export_scan(tmp_path, some_scan(), float(second), keep=3)
        assert path.exists()
    assert [int(path.stem[5:]) // 1000 for path in sorted(tmp_path.glob("*.ply"))] == [1400, 1401, 5002]


def test_a_full_disk_is_reported_and_leaves_no_half_file(tmp_path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        with pytest.raises(SoftformError, match="cannot be written"):
            export_scan(tmp_path, some_scan(5000), 1.0, keep=3)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_scan_is_rejected(tmp_path) -> None:
    with pytest.raises(SoftformError, match="saw no part"):
        export_scan(tmp_path, some_scan(0), 1.0, keep=3)


def test_every_scan_is_registered_anew_by_so_much() -> None:
    vertices, faces = grid(cells=4)
    off = scanner(registration_shift=1e-3, registration_turn=2e-3, rays=30)
    true = scanner(rays=30)
    motions = [kabsch(true.scan(vertices, faces).points, off.scan(vertices, faces).points) for _ in range(60)]
    pivot = np.array(true.description.look_at)
    shifts = [motion.apply(pivot) - pivot for motion in motions]
    turns = [Rotation.from_matrix(motion.rotation).as_rotvec() for motion in motions]
    np.testing.assert_allclose(np.std(shifts, axis=0), 1e-3, rtol=0.3)
    np.testing.assert_allclose(np.std(turns, axis=0), 2e-3, rtol=0.3)
