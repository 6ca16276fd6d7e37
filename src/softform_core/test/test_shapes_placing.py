"""Targets that lie anywhere, placed on the resting robot."""

import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_core.shapes.placing import placed, placement
from softform_core.shapes.shape import Shape
from softform_core.surface.patch_set import SHEET

ROBOT = load_robot("membrane")
SAMPLES = SHEET.samples(900)


def bump():
    """A hill of 40 mm on a rim in z = 0, off its middle."""
    x, y = 0.3 * (SAMPLES.T - 0.5)
    z = 0.04 * (1.0 - (2.0 * SAMPLES[:, 0] - 1.0) ** 2) * (1.0 - (2.0 * SAMPLES[:, 1] - 1.0) ** 4) * (1.0 + x)
    return Shape.from_mesh(np.column_stack([x, y, z]), SHEET.triangles(len(SAMPLES)))


@pytest.mark.parametrize("tilt", [[0.0, 0.0, 0.0], [0.4, -0.3, 0.0], [np.pi, 0.0, 0.0], [0.0, 2.0, 0.0]])
def test_a_mesh_comes_to_lie_with_its_rim_in_the_resting_plane(tilt):
    shape = bump()
    lost = shape.transformed(Rotation.from_rotvec(tilt).as_matrix(), np.array([0.2, -0.1, 0.5]))
    found = placed(lost, ROBOT)
    rim = np.isin(SAMPLES, [0.0, 1.0]).any(axis=1)
    assert found.points[rim, 2] == pytest.approx(0.0, abs=1e-9)
    assert found.points[:, 2] == pytest.approx(shape.points[:, 2], abs=1e-9) and found.facing[2] > 0.8
    assert 0.5 * (found.points.min(axis=0) + found.points.max(axis=0))[:2] == pytest.approx(0.0, abs=0.02)


def test_a_mesh_that_lies_face_down_is_turned_over_and_not_about_z_too():
    shape = bump()
    for faces in (shape.faces[:, ::-1], np.roll(shape.faces, 1, axis=1)[:, ::-1]):
        found = placed(Shape(shape.points, None, faces), ROBOT)
        assert np.ptp(found.points, axis=0)[:2] == pytest.approx(np.ptp(shape.points, axis=0)[:2], abs=1e-9)
        assert found.facing[2] > 0.8 and found.points[:, 2].max() == pytest.approx(0.0, abs=1e-9)


def test_a_cloud_comes_to_lie_with_its_lowest_points_in_the_resting_plane():
    lost = Shape(bump().points + [0.2, -0.1, 0.5])
    found = placed(lost, ROBOT)
    assert np.percentile(found.points[:, 2], 2.0) == pytest.approx(0.0, abs=1e-3)
    assert found.points[:, 2].max() == pytest.approx(0.04, abs=6e-3)
    assert np.abs(found.points[:, :2]).max() < 0.16


def lifted_dome(kept=lambda xy: xy[:, 0] < 2.0):
    """The dome of 24 mm on a square of 320 mm, raised by 40 mm, as vertices and faces, or a part of it."""
    x, y = (SAMPLES.T - 0.5) * 0.32
    z = 0.04 + 0.024 * (1.0 - (x / 0.16) ** 2) * (1.0 - (y / 0.16) ** 2)
    faces = SHEET.triangles(len(SAMPLES))
    return np.column_stack([x, y, z]), faces[kept(SAMPLES[faces].mean(axis=1))]


def soup(points, faces):
    return points[faces].reshape(-1, 3), np.arange(faces.size).reshape(-1, 3)


def noisy(points, faces, noise=1e-6):
    """Corners that a program wrote triangle by triangle, not quite alike."""
    return points + np.random.default_rng(0).uniform(-noise, noise, points.shape), faces


def cut_at(points, faces):
    """A seam of textures: the triangles of each quarter have vertices of their own."""
    quarter = (points[faces].mean(axis=1)[:, :2] > 0.011) @ [1, 2]
    parts = [soup(points, faces[quarter == one]) for one in range(4)]
    joined = [np.unique(part, axis=0, return_inverse=True) for part, _ in parts]
    starts = np.cumsum([0, *(len(part) for part, _ in joined)])
    return (
        np.concatenate([part for part, _ in joined]),
        np.concatenate([start + one.reshape(-1, 3) for start, (_, one) in zip(starts, joined, strict=False)]),
    )


def with_debris(points, faces):
    crumbs = np.random.default_rng(0).uniform([-0.1, -0.16, -0.05], [0.16, 0.16, 0.2], (20, 1, 3)) + [
        [0.0, 0.0, 0.0],
        [0.004, 0.0, 0.0],
        [0.0, 0.004, 0.0],
    ]
    return (
        np.concatenate([points, crumbs.reshape(-1, 3)]),
        np.concatenate([faces, len(points) + np.arange(60).reshape(-1, 3)]),
    )


def holes(xy):
    """Everywhere but in a large hole and in a dozen small ones."""
    small = np.abs(xy[:, None] - np.random.default_rng(1).uniform(0.2, 0.8, (12, 2))).max(axis=2).min(axis=1) < 0.02
    return ~small & (np.linalg.norm(xy - [0.55, 0.6], axis=1) > 0.15)


def with_holes_at_the_rim(points, faces):
    """Every seventh triangle that meets the rim in one vertex is missing."""
    at_rim = np.isin(SAMPLES, [0.0, 1.0]).any(axis=1)[faces].sum(axis=1)
    return points, np.delete(faces, np.flatnonzero(at_rim == 1)[::7], axis=0)


def turned_at_random(points, faces):
    return points, np.where(np.random.default_rng(2).random((len(faces), 1)) < 0.2, faces[:, ::-1], faces)


def with_a_fin(points, faces):
    """A part that stands on an inner edge, which three triangles then share."""
    a, b = faces[400, :2]
    tip = 0.5 * (points[a] + points[b]) + [0.0, 0.0, 0.5]
    return np.concatenate([points, tip[None]]), np.concatenate([faces, [[a, b, len(points)]]])


@pytest.mark.parametrize(
    ("points", "faces"),
    [
        lifted_dome(),
        soup(*lifted_dome()),
        cut_at(*lifted_dome()),
        with_debris(*lifted_dome()),
        lifted_dome(holes),
        with_holes_at_the_rim(*lifted_dome(holes)),
        with_debris(*soup(*lifted_dome(holes))),
        turned_at_random(*lifted_dome(holes)),
        with_a_fin(*lifted_dome()),
        (lifted_dome()[0], np.repeat(lifted_dome()[1], 2, axis=0)),
    ],
    ids=[
        "clean",
        "soup",
        "seams",
        "debris",
        "holes",
        "holes at the rim",
        "soup, holes, debris",
        "turned",
        "fin",
        "doubled",
    ],
)
def test_the_rim_is_the_longest_closed_border_of_the_largest_part(points, faces):
    motion = placement(Shape.from_mesh(points, faces), ROBOT)
    assert motion.translation == pytest.approx([0.0, 0.0, -0.04], abs=1e-9)
    assert motion.rotation == pytest.approx(np.eye(3), abs=1e-9)


def test_a_closed_figure_with_a_hole_of_its_scan_lies_on_its_lowest_points():
    ball = trimesh.creation.icosphere(4, 0.1)
    at = ball.triangles_center
    holed = ball.faces[(at[:, 0] < 0.093) & (np.linalg.norm(at - [0.0, 0.06, 0.08], axis=1) > 0.012)]
    for faces in (ball.faces, holed):
        motion = placement(Shape.from_mesh(ball.vertices * [1.0, 1.5, 0.3] + [0.3, 0.0, 0.2], faces), ROBOT)
        assert motion.translation == pytest.approx([-0.3, 0.0, 0.03 - 0.2], abs=0.004)
        assert motion.rotation == pytest.approx(np.eye(3), abs=0.03)


def test_strays_of_a_cloud_do_not_move_it():
    cloud = bump().points
    strays = np.random.default_rng(3).uniform([-0.15, -0.15, -0.3], [0.15, 0.15, 0.6], (12, 3))
    alone, among = (placement(Shape(points), ROBOT) for points in (cloud, np.concatenate([cloud, strays])))
    assert among.translation == pytest.approx(alone.translation, abs=2e-4)
    assert among.rotation == pytest.approx(alone.rotation, abs=2e-3)


def test_a_robot_without_a_surface_has_no_place_for_a_target():
    with pytest.raises(SoftformError, match="no surface"):
        placed(bump(), load_robot("three_chamber"))


def test_sides_of_a_seam_may_lie_a_rounding_apart():
    motion = placement(Shape.from_mesh(*noisy(*soup(*lifted_dome()))), ROBOT)
    assert motion.translation == pytest.approx([0.0, 0.0, -0.04], abs=1e-5)
    assert motion.rotation == pytest.approx(np.eye(3), abs=1e-4)
