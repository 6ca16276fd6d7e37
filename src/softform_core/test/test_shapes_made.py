import numpy as np
import pytest
from equilibria import solve_equilibrium

from softform_core.bodies.membrane.simulator import build_membrane
from softform_core.robots import load_robot
from softform_core.shapes.dem import HEIGHT, dem_target
from softform_core.shapes.random import random_target
from softform_core.shapes.validate import check_target


@pytest.fixture(scope="module")
def robot():
    return load_robot("membrane")


def test_the_landscape_fits_the_membrane_and_its_frame(robot):
    target = dem_target(robot)
    check_target(target.points, robot)
    x, y, z = target.points.T
    assert target.extent[:2] == pytest.approx([0.32, 0.32])
    assert (x.min(), y.min()) == pytest.approx((-0.16, -0.16))
    rim = (np.abs(x) > 0.16 - 1e-9) | (np.abs(y) > 0.16 - 1e-9)
    assert np.abs(z[rim]).max() < 1e-12
    assert z.min() >= 0.0
    assert z.max() == pytest.approx(HEIGHT * 0.32)
    assert 0.025 <= z.max() <= 0.040
    assert target.normals[:, 2].min() > 0.8


def test_the_landscape_is_measured_not_symmetric(robot):
    side = int(np.sqrt(len(dem_target(robot).points)))
    z = dem_target(robot).points[:, 2].reshape(side, side)
    for mirrored in (z[::-1], z[:, ::-1], z.T):
        assert np.abs(z - mirrored).mean() > 1e-3


def test_a_random_target_is_a_shape_of_the_simulated_robot(robot):
    target = random_target(robot, seed=5)
    check_target(target.points, robot)
    assert target.extent[2] > 0.01
    # The way it is made, done here by hand.
    hidden = np.random.default_rng(5).uniform(robot.actuation_min, robot.actuation_max)
    membrane = build_membrane(robot.body)
    assert np.allclose(target.points, solve_equilibrium(membrane, hidden).vertices, atol=1e-9)


def test_random_targets_differ_by_seed_and_hide_their_pressures(robot):
    first, other = random_target(robot, 1), random_target(robot, 2)
    assert np.abs(first.points - other.points).max() > 1e-3
    assert set(vars(first)) == {"points", "normals", "faces"}
