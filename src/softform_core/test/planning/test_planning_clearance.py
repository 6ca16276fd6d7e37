import numpy as np
import pytest
import trimesh

from softform_core.planning.clearance import FAR_MM, ClearanceGauge, DistanceField
from softform_core.planning.obstacles import CloudObstacle, MeshObstacle

pytestmark = pytest.mark.slow

REGION = np.array([[-160.0, -160.0, 0.0], [160.0, 160.0, 80.0]])


def stick_at(height, radius=4.0):
    mesh = trimesh.creation.capsule(250.0, radius, count=[16, 16])
    turned = trimesh.transformations.rotation_matrix(1.2, [0.4, 1.0, 0.0])
    mesh.apply_transform(turned)
    mesh.vertices += [0.0, 0.0, height] - mesh.centroid
    return mesh


def densely(faces, values):
    """Values (P, d) at points spread over triangles, by linear interpolation."""
    weights = np.array([[i, j, 8 - i - j] for i in range(9) for j in range(9 - i)]) / 8.0
    return np.einsum("wc,fcd->fwd", weights, values[faces]).reshape(-1, values.shape[1])


@pytest.mark.parametrize("kind", ["mesh", "cloud"])
@pytest.mark.parametrize("height", [100.0, 140.0, 60.0])
def test_spare_is_that_of_the_densely_sampled_surface(surface, actuations, kind, height):
    mesh = stick_at(height)
    obstacle = MeshObstacle(mesh.vertices, mesh.faces)
    if kind == "cloud":
        obstacle = CloudObstacle(np.asarray(mesh.sample(4000, seed=0)))
    states = surface.at(actuations)
    gauge = ClearanceGauge(obstacle, REGION, surface.faces, 1.0)
    spare, distances = gauge.spare(states), gauge.distances(states)
    for index in range(0, len(actuations), 2):
        at_points = obstacle.distances(states.points[index])
        near = surface.faces[(at_points < at_points.min() + 14.0)[surface.faces].any(axis=1)]
        points = densely(near, states.points[index])
        allowance = densely(near, states.allowance[index][:, None])[:, 0]
        apart = obstacle.distances(points)
        room = float((apart - allowance).min()) - 1.0
        if room > FAR_MM:
            assert spare[index] > FAR_MM - 25.0
            continue
        assert distances[index] <= apart.min() + 1e-6
        assert distances[index] == pytest.approx(apart.min(), abs=0.5)
        assert np.sign(spare[index]) == np.sign(room) or abs(room) < 1.5
        if room > 0.0:
            # The allowance is taken at its largest around the closest place, which is wider if that is far.
            assert 0.8 * room - 1.5 < spare[index] <= room + 1e-6


def test_a_pin_between_the_points_is_not_missed(plate):
    """The plate's points are 5 mm apart, the pin is 0.2 mm thick."""
    pin = trimesh.creation.cylinder(0.1, 30.0, sections=8)
    gauge = ClearanceGauge(MeshObstacle(pin.vertices + [2.1, 1.9, 0.0], pin.faces), REGION, plate.faces, 0.1)
    states = plate.at(np.zeros((1, 2)))
    assert gauge.spare(states)[0] < 0.0
    assert gauge.distances(states)[0] == 0.0


def test_a_far_obstacle_is_reported_to_be_far(surface, actuations):
    mesh = stick_at(600.0)
    gauge = ClearanceGauge(MeshObstacle(mesh.vertices, mesh.faces), REGION, surface.faces, 1.0)
    assert (gauge.spare(surface.at(actuations)) > FAR_MM).all()


def test_the_field_bounds_distances_everywhere():
    mesh = stick_at(100.0)
    obstacle = MeshObstacle(mesh.vertices, mesh.faces)
    points = np.random.default_rng(3).uniform(-300.0, 300.0, (4000, 3))
    lowest, highest = DistanceField(REGION, obstacle).bounds(points)
    apart = obstacle.distances(points)
    assert (lowest <= apart + 1e-9).all() and (apart <= highest + 1e-9).all()
    inside = ((points > REGION[0]) & (points < REGION[1])).all(axis=1)
    assert (highest - lowest)[inside].max() < 16.0
