"""Sparse Hessians: a shift keeps their entries, for PARDISO analyses them once; products beside them are of the sum."""

import numpy as np
import pytest
from scipy.sparse import csc_matrix

from softform_core.simulation.hessian import SparseHessian, UpdatedHessian


def test_a_shift_keeps_entries_that_are_zero() -> None:
    matrix = csc_matrix(([2.0, 0.0, 0.0, 3.0], ([0, 1, 0, 1], [0, 0, 1, 1])), shape=(2, 2))
    shifted = SparseHessian(matrix).shifted(np.array([0.5])).matrix
    np.testing.assert_array_equal(shifted.toarray(), np.diag([2.5, 3.5]))
    np.testing.assert_array_equal(shifted.indices, matrix.indices)
    assert matrix[0, 0] == 2.0


@pytest.mark.parametrize(
    "eigenvalues", [(5.0, 3.0, 2.0, 1.0, 4.0), (5.0, 3.0, -2.0, 1.0, 4.0), (5.0, -3.0, -2.0, 1.0, 4.0)]
)
def test_products_beside_a_sparse_hessian_are_those_of_the_sum(eigenvalues: tuple[float, ...]) -> None:
    """Solutions, products with moves, and by Sylvester's law how many pivots are negative."""
    random = np.random.default_rng(1)
    turn = np.linalg.qr(random.standard_normal((5, 5)))[0]
    sparse = SparseHessian(csc_matrix(turn @ np.diag(eigenvalues) @ turn.T))
    for columns, weights in (
        (turn[:, 1:3], np.array([4.0, 4.0])),  # lifts both of the second and third
        (random.standard_normal((5, 2)), np.array([0.1, 7.0])),
    ):
        hessian = UpdatedHessian(sparse, columns, weights)
        whole = sparse.matrix.toarray() + columns @ np.diag(weights) @ columns.T
        move = random.standard_normal((1, 5))
        factor = hessian.factorised()
        np.testing.assert_allclose(hessian.times(move), move @ whole, atol=1e-12)
        np.testing.assert_allclose(factor.solve(move[..., None])[0, :, 0], np.linalg.solve(whole, move[0]), atol=1e-9)
        assert (factor.pivots < 0.0).sum() == (np.linalg.eigvalsh(whole) < 0.0).sum()
        shifted = hessian.shifted(np.array([10.0])).factorised()
        assert (shifted.pivots > 0.0).all()
        expected = np.linalg.solve(whole + 10.0 * np.eye(5), move[0])
        np.testing.assert_allclose(shifted.solve(move[..., None])[0, :, 0], expected, atol=1e-9)
