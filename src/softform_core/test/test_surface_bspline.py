import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.interpolate import NdBSpline

from softform_core.errors import SoftformError
from softform_core.surface.bspline import (
    apply,
    basis_matrix,
    clamped_knots,
    derivative_matrices,
    evaluate,
    unit_normals,
)

parameters = arrays(np.float64, st.tuples(st.integers(1, 20), st.just(2)), elements=st.floats(0.0, 1.0))
grids = st.tuples(st.integers(4, 12), st.integers(4, 12))


def _surface(seed: int, rows: int, cols: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, cols, 3))


@given(parameters, grids)
def test_basis_is_a_partition_of_unity(uv, grid):
    basis = basis_matrix(uv, *grid)
    assert basis.shape == (len(uv), grid[0] * grid[1])
    assert basis.data.min() >= 0.0
    np.testing.assert_allclose(basis.sum(axis=1), 1.0, atol=1e-12)
    for derivative in derivative_matrices(uv, *grid):
        np.testing.assert_allclose(derivative.sum(axis=1), 0.0, atol=1e-9)


@given(parameters, grids, st.integers(0, 1000))
def test_matrix_form_agrees_with_scipys_tensor_spline(uv, grid, seed):
    control = _surface(seed, *grid)
    spline = NdBSpline((clamped_knots(grid[0]), clamped_knots(grid[1])), control, 3)
    np.testing.assert_allclose(evaluate(control, uv), spline(uv), atol=1e-12)
    along_u, along_v = derivative_matrices(uv, *grid)
    np.testing.assert_allclose(along_u @ control.reshape(-1, 3), spline(uv, nu=(1, 0)), atol=1e-9)
    np.testing.assert_allclose(along_v @ control.reshape(-1, 3), spline(uv, nu=(0, 1)), atol=1e-9)


@given(parameters, st.integers(0, 1000))
def test_surfaces_are_affinely_invariant(uv, seed):
    rng = np.random.default_rng(seed)
    control, linear, shift = _surface(seed, 7, 5), rng.normal(size=(3, 3)), rng.normal(size=3)
    moved = evaluate(control @ linear.T + shift, uv)
    np.testing.assert_allclose(moved, evaluate(control, uv) @ linear.T + shift, atol=1e-11)


def test_surface_reaches_its_corner_control_points():
    control = _surface(0, 30, 30)
    corners = evaluate(control, [[0, 0], [0, 1], [1, 0], [1, 1]])
    np.testing.assert_allclose(corners, [control[0, 0], control[0, -1], control[-1, 0], control[-1, -1]], atol=1e-12)


def test_control_points_are_ordered_along_u_first():
    control = np.zeros((6, 4, 3))
    control[2, 1] = 1.0
    column = basis_matrix([[0.4, 0.3]], 6, 4)[:, [2 * 4 + 1]].toarray()
    np.testing.assert_allclose(evaluate(control, [[0.4, 0.3]]), column * np.ones(3))
    assert column[0, 0] > 0.1


def test_many_surfaces_at_once():
    controls = np.stack([_surface(seed, 6, 5) for seed in range(6)]).reshape(2, 3, 6, 5, 3)
    uv = np.random.default_rng(0).random((9, 2))
    points = evaluate(controls, uv)
    assert points.shape == (2, 3, 9, 3)
    np.testing.assert_allclose(points[1, 2], evaluate(controls[1, 2], uv), atol=1e-13)


def test_normals_of_a_plane_and_of_a_degenerate_surface():
    u, v = np.meshgrid(np.linspace(0, 2, 6), np.linspace(0, 3, 5), indexing="ij")
    tilted = np.stack([u, v, u + 2.0 * v], axis=-1)
    slopes = derivative_matrices(np.random.default_rng(0).random((8, 2)), 6, 5)
    found = unit_normals(*(apply(slope, tilted) for slope in slopes))
    np.testing.assert_allclose(found, np.tile(np.array([-1, -2, 1]) / np.sqrt(6), (8, 1)), atol=1e-12)
    assert not unit_normals(*(apply(slope, np.zeros((6, 5, 3))) for slope in slopes)).any()


@pytest.mark.parametrize("uv", [[0.5, 0.5], [[0.5]], [[np.nan, 0.5]], [[1.01, 0.5]], [[0.5, -0.01]]])
def test_parameters_outside_of_the_square_are_rejected(uv):
    with pytest.raises(SoftformError, match="unit square|shape"):
        basis_matrix(uv)


def test_too_few_control_points_are_rejected():
    with pytest.raises(SoftformError, match="at least 4"):
        basis_matrix([[0.5, 0.5]], rows=3)
    with pytest.raises(SoftformError, match="rows, cols, 3"):
        evaluate(np.zeros((5, 5)), [[0.5, 0.5]])
