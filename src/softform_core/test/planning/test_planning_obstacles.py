import numpy as np
import pytest
import trimesh

from softform_core.errors import SoftformError
from softform_core.planning.obstacles import CloudObstacle, MeshObstacle, check_obstacle, obstacle_of


def ball(center, radius, subdivisions=4):
    mesh = trimesh.creation.icosphere(subdivisions, radius)
    return mesh.vertices + np.asarray(center), mesh.faces


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda p: np.where(np.arange(len(p))[:, None] == 3, np.nan, p), "NaN"),
        (lambda p: p[:0], "empty"),
        (lambda p: p[:2], "2 points"),
        (lambda p: np.zeros((2_000_001, 3)), "at most 2000000"),
        (lambda p: 1000.0 * p + 60.0, "millimetres"),
        (lambda p: p + 100.0, "millimetres"),
        (lambda p: 0.001 * p, "twice"),
        (lambda p: np.ones_like(p), "coincide"),
    ],
)
@pytest.mark.parametrize("faces", [True, False])
def test_points_that_are_no_obstacle_are_rejected(robot, spoil, reason, faces):
    vertices, triangles = ball((0.0, 0.0, 0.1), 0.02, 1)
    with pytest.raises(SoftformError, match=reason):
        check_obstacle(spoil(vertices), triangles if faces else None, robot)


def test_triangles_that_are_none_are_rejected(robot):
    vertices, triangles = ball((0.0, 0.0, 0.1), 0.02, 1)
    with pytest.raises(SoftformError, match="names vertex"):
        check_obstacle(vertices, triangles + len(vertices), robot)
    with pytest.raises(SoftformError, match="no area"):
        check_obstacle(vertices, [[0, 1, 1]], robot)


def test_metres_become_millimetres(robot):
    vertices, triangles = ball((0.0, 0.0, 0.1), 0.02)
    mesh = obstacle_of(check_obstacle(vertices, triangles, robot))
    assert mesh.distances(np.zeros((1, 3))) == pytest.approx(80.0, abs=0.1)
    cloud = obstacle_of(check_obstacle(vertices, [], robot))
    assert isinstance(cloud, CloudObstacle)
    assert cloud.distances(np.zeros((1, 3))) == pytest.approx(80.0 - cloud.radius, abs=0.1)


def test_distances_to_a_mesh_are_those_to_the_ball():
    obstacle = MeshObstacle(*ball((1.0, 2.0, 3.0), 20.0, 5))
    points = np.random.default_rng(0).uniform(-60.0, 60.0, (500, 3))
    away = np.linalg.norm(points - [1.0, 2.0, 3.0], axis=1)
    assert obstacle.distances(points) == pytest.approx(np.abs(away - 20.0), abs=0.03)


def test_what_a_mesh_winds_around_is_inside(robot):
    obstacle = MeshObstacle(*ball((1.0, 2.0, 3.0), 20.0, 3))
    points = np.random.default_rng(0).uniform(-30.0, 30.0, (300, 3))
    away = np.linalg.norm(points - [1.0, 2.0, 3.0], axis=1)
    clear_of_the_shell = np.abs(away - 20.0) > 0.5
    assert (obstacle.contains(points) == (away < 20.0))[clear_of_the_shell].all()


def test_distance_between_triangles_is_that_of_densely_sampled_ones():
    generator = np.random.default_rng(1)
    obstacle = MeshObstacle(*ball((0.0, 0.0, 0.0), 20.0))
    for _ in range(20):
        corners = generator.uniform(-15.0, 15.0, (3, 3, 3)) + 45.0 * _direction(generator)
        weights = generator.dirichlet(np.ones(3), 20_000)
        sampled = np.linalg.norm(weights @ corners, axis=2).min() - 20.0
        distance = obstacle.distance_to_triangles(corners)
        if sampled > 0.5:
            assert distance == pytest.approx(sampled, abs=0.4)
            assert distance <= sampled + 0.15  # the polyhedron lies within the ball


def test_triangles_that_cross_touch():
    plane = np.array([[[-100.0, -100.0, 5.0], [100.0, -100.0, 5.0], [0.0, 100.0, 5.0]]])
    for obstacle in (MeshObstacle(*ball((0.0, 0.0, 0.0), 20.0)), CloudObstacle(ball((0.0, 0.0, 0.0), 20.0)[0])):
        assert obstacle.distance_to_triangles(plane) == 0.0
        assert obstacle.distance_to_triangles(plane + [0.0, 0.0, 25.0]) == pytest.approx(
            10.0, abs=obstacle_radius(obstacle)
        )


def obstacle_radius(obstacle):
    return getattr(obstacle, "radius", 0.1) + 0.1


def test_a_cloud_leaves_no_gap_to_slip_through():
    generator = np.random.default_rng(2)
    sheet = np.column_stack([generator.uniform(-100.0, 100.0, (20_000, 2)), np.zeros(20_000)])
    obstacle = CloudObstacle(sheet)
    inner = np.column_stack([generator.uniform(-95.0, 95.0, (5000, 2)), np.zeros(5000)])
    assert (obstacle.distances(inner) == 0.0).mean() > 0.99
    assert obstacle.radius < 3.0
    assert not obstacle.contains(inner).any()


def test_a_stray_point_does_not_blow_a_cloud_up():
    vertices, _ = ball((0.0, 0.0, 100.0), 20.0)
    strayed = np.concatenate([vertices, [[0.0, 0.0, 900.0]]])
    assert CloudObstacle(strayed).radius == pytest.approx(CloudObstacle(vertices).radius, rel=0.01)


def _direction(generator):
    vector = generator.standard_normal(3)
    return vector / np.linalg.norm(vector)
