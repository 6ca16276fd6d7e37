import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.shapes.shape import Shape, estimate_normals

SQUARE = np.array([[0.0, 0.0, 0.0], [0.3, 0.0, 0.0], [0.0, 0.3, 0.0], [0.3, 0.3, 0.0]])
SQUARE_FACES = np.array([[0, 1, 2], [1, 3, 2]])


def dome(points):
    """Sphere cap of radius 0.3 m over points in the plane, and its normals."""
    x, y = points[:, 0], points[:, 1]
    z = np.sqrt(0.09 - x**2 - y**2)
    return np.stack([x, y, z], axis=1), np.stack([x, y, z], axis=1) / 0.3


def test_a_mesh_is_sampled_uniformly_by_area():
    # A long and a short triangle: by vertices they would share the points evenly.
    vertices = np.array([[0.0, 0.0, 0.0], [0.9, 0.0, 0.0], [0.0, 1.0, 0.0], [-0.1, 0.0, 0.0]])
    samples = Shape.from_mesh(vertices, [[0, 1, 2], [0, 2, 3]]).sample(4000)
    assert samples.points.shape == (4000, 3)
    assert np.mean(samples.points[:, 0] > 0.0) == pytest.approx(0.9, abs=0.01)


def test_samples_lie_on_the_mesh_with_its_normals_and_repeat():
    mesh = Shape.from_mesh(SQUARE, SQUARE_FACES)
    first, again, other = mesh.sample(500, seed=1), mesh.sample(500, seed=1), mesh.sample(500, seed=2)
    assert np.array_equal(first.points, again.points)
    assert not np.array_equal(first.points, other.points)
    assert np.allclose(first.points[:, 2], 0.0)
    assert np.allclose(first.normals, [0.0, 0.0, 1.0])
    quarter = (first.points[:, 0] < 0.15) & (first.points[:, 1] < 0.15)
    assert np.mean(quarter) == pytest.approx(0.25, abs=0.06)


def test_a_cloud_is_thinned_to_distinct_points_of_its_own():
    cloud = Shape.from_cloud(np.random.default_rng(0).random((200, 3)))
    thin = cloud.sample(50)
    assert len({tuple(p) for p in thin.points} & {tuple(p) for p in cloud.points}) == 50
    assert cloud.sample(1000) is cloud


def test_normals_of_a_cloud_are_those_of_the_surface_and_point_up():
    points, normals = dome(np.random.default_rng(3).uniform(-0.15, 0.15, (4000, 2)))
    estimated = estimate_normals(points)
    assert np.einsum("ni,ni->n", estimated, normals).min() > np.cos(np.radians(8.0))


def test_vertex_normals_of_a_mesh_follow_its_faces():
    assert np.allclose(Shape.from_mesh(SQUARE, SQUARE_FACES[:, ::-1]).normals, [0.0, 0.0, -1.0])


def test_given_normals_are_made_unit_length():
    cloud = Shape.from_cloud(SQUARE, np.tile([0.0, 0.0, 5.0], (4, 1)))
    assert np.allclose(cloud.normals, [0.0, 0.0, 1.0])


def test_a_rigid_motion_moves_points_and_turns_normals():
    quarter_turn = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
    moved = Shape.from_mesh(SQUARE, SQUARE_FACES).transformed(quarter_turn, np.array([1.0, 2.0, 3.0]))
    assert np.allclose(moved.points[1], [1.0, 2.0, 2.7])
    assert np.allclose(moved.normals, [1.0, 0.0, 0.0])
    assert moved.faces is not None


@pytest.mark.parametrize(
    ("faces", "says"),
    [
        (np.empty((0, 3), dtype=int), "F > 0"),
        ([[0, 1, 2, 3]], "(F, 3)"),
        ([[0, 1, 4]], "vertex 4 of 4"),
        ([[0, 0, 1]], "no area"),
    ],
)
def test_unusable_faces_are_rejected(faces, says):
    with pytest.raises(SoftformError) as caught:
        Shape.from_mesh(SQUARE, faces)
    assert says in str(caught.value)


def test_unusable_normals_are_rejected():
    with pytest.raises(SoftformError, match="normals"):
        Shape.from_cloud(SQUARE, np.full((4, 3), np.nan))
    with pytest.raises(SoftformError, match="normals"):
        Shape.from_cloud(SQUARE, np.ones((3, 3)))
