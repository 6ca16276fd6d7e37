"""Derivatives of the equations against finite differences of what they are derivatives of."""

import numpy as np
import pytest

from softform_core.equations import inverse_kinematics, jacobian, tip
from softform_core.equations.surface import surface_points
from softform_core.equations.warp import kernels, warp, warp_coefficients

WIDTH = 3e-4
GRID = (5, 6)


@pytest.fixture
def random():
    return np.random.default_rng(0)


@pytest.fixture
def place(random):
    """Points (7, 3) mm, centers (4, 3) mm, and coefficients (8, 3)."""
    return 60.0 * random.normal(size=(7, 3)), 60.0 * random.normal(size=(4, 3)), random.normal(size=(8, 3))


def differences(function, x, step=1e-5):
    """Central differences of an array by all numbers of x, (..., x.size)."""
    columns = []
    for direction in np.eye(x.size).reshape(-1, *x.shape):
        columns.append((function(x + step * direction) - function(x - step * direction)) / (2.0 * step))
    return np.stack(columns, axis=-1)


def close(a, b):
    return np.abs(a - b).max() <= 1e-6 * np.abs(b).max() and np.abs(b).max() > 0.0


def test_eqs_23_to_25_are_the_derivative_by_the_centers(place):
    p, q, gamma = place
    assert close(jacobian.by_centers(p, q, gamma, WIDTH), differences(lambda x: warp(p, x, gamma, WIDTH), q))
    of_kernels = differences(lambda x: kernels(p, x, WIDTH), q).reshape(7, 4, 4, 3)
    for i in range(4):
        assert close(jacobian.kernel_by_center(p, q, WIDTH)[:, i], of_kernels[:, i, i])


def test_eqs_26_and_27_are_the_derivative_by_the_point(place):
    p, q, gamma = place
    expected = differences(lambda x: warp(x, q, gamma, WIDTH), p).reshape(7, 3, 7, 3)[range(7), :, range(7)]
    assert close(jacobian.by_point(p, q, gamma, WIDTH), expected)
    of_kernels = differences(lambda x: kernels(x, q, WIDTH), p).reshape(7, 4, 7, 3)[range(7), :, range(7)]
    assert close(jacobian.kernel_by_point(p, q, WIDTH), of_kernels)


def test_eqs_29_and_30_are_the_derivative_by_the_coefficients(place):
    p, q, gamma = place
    assert close(jacobian.by_coefficients(p, q, WIDTH), differences(lambda x: warp(p, q, x, WIDTH), gamma))


def test_eq_31_is_the_derivative_by_the_control_points(random):
    uv, control = random.uniform(size=(9, 2)), random.normal(size=(*GRID, 3))
    expected = differences(lambda x: surface_points(uv, x), control)
    assert close(jacobian.surface_by_control_points(uv, GRID), expected)


def test_eq_17_is_the_derivative_of_eq_5_and_eq_16_that_of_eq_15(random):
    count = 3 * GRID[0] * GRID[1]
    uv, kernel_uv, actuation = random.uniform(size=(7, 2)), random.uniform(size=(4, 2)), random.normal(size=3)
    first, last = random.normal(size=(count, 3)), random.normal(size=(24, count)) / count
    offset = 60.0 * random.normal(size=count)

    def n_fk(a):
        return offset + 30.0 * np.tanh(first @ a)

    def n_rbf(flat):
        return np.tanh(last @ flat)

    def points_of(a):
        control = inverse_kinematics.simulated_control_points(a, n_fk, GRID)
        gamma = warp_coefficients(control, n_rbf)
        return warp(surface_points(uv, control), surface_points(kernel_uv, control), gamma, WIDTH)

    control = inverse_kinematics.simulated_control_points(actuation, n_fk, GRID)
    p, q, gamma = surface_points(uv, control), surface_points(kernel_uv, control), warp_coefficients(control, n_rbf)
    by_actuation = jacobian.actuation_jacobian(
        jacobian.by_point(p, q, gamma, WIDTH),
        jacobian.surface_by_control_points(uv, GRID),
        jacobian.by_coefficients(p, q, WIDTH),
        (1.0 - gamma.reshape(-1, 1) ** 2) * last,
        jacobian.by_centers(p, q, gamma, WIDTH),
        jacobian.surface_by_control_points(kernel_uv, GRID).reshape(-1, count),
        30.0 * (1.0 - np.tanh(first @ actuation) ** 2)[:, None] * first,
    )
    assert close(by_actuation, differences(points_of, actuation))

    closest = p + random.normal(size=p.shape)
    turn, shift = np.linalg.qr(random.normal(size=(3, 3)))[0], random.normal(size=3)
    gradient = inverse_kinematics.objective_gradient(by_actuation, points_of(actuation), closest, turn, shift)

    def objective(a):
        return np.array(inverse_kinematics.objective(points_of(a), closest, turn, shift))

    assert close(gradient, differences(objective, actuation))


def test_paper_001_derivatives(random):
    first, second, waypoint, c = (random.normal(size=shape) for shape in ((3, 2), (3, 3), 3, 2))

    def n_fk(a):
        return np.tanh(first @ a)

    def n_s2r(p):
        return p + 0.1 * np.tanh(second @ p)

    def slope(p):
        return np.eye(3) + 0.1 * (1.0 - np.tanh(second @ p) ** 2)[:, None] * second

    def n_j(a):
        return (1.0 - np.tanh(first @ a) ** 2)[:, None] * first

    assert close(tip.difference_jacobian(n_fk, c, 1e-5), n_j(c))  # Eq. 3
    real = tip.transferred_jacobian(slope(n_fk(c)), n_j(c))
    assert close(real, differences(lambda a: n_s2r(n_fk(a)), c))  # Eq. 4

    def real_objective(a):
        return np.array(tip.objective(waypoint, n_s2r(n_fk(a))))  # Eq. 1

    expected = differences(real_objective, c)
    assert close(tip.objective_gradient(waypoint, n_s2r(n_fk(c)), real), expected)  # Eq. 2
    assert close(tip.real_objective_gradient(waypoint, n_s2r(n_fk(c)), real), expected)  # Eq. 5
    assert close(tip.learned_objective_gradient(waypoint, c, n_fk, n_j, n_s2r, slope), expected)  # Eq. 6
