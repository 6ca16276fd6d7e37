"""A shifted sparse Hessian has entries where the Hessian has them: PARDISO analyses the pattern once."""

import numpy as np
from scipy.sparse import csc_matrix

from softform_core.simulation.hessian import SparseHessian


def test_a_shift_keeps_entries_that_are_zero() -> None:
    matrix = csc_matrix(([2.0, 0.0, 0.0, 3.0], ([0, 1, 0, 1], [0, 0, 1, 1])), shape=(2, 2))
    shifted = SparseHessian(matrix).shifted(np.array([0.5])).matrix
    np.testing.assert_array_equal(shifted.toarray(), np.diag([2.5, 3.5]))
    np.testing.assert_array_equal(shifted.indices, matrix.indices)
    assert matrix[0, 0] == 2.0
