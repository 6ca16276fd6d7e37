"""The B-spline surface of paper 000, Sec. II-A (Eq. 1).

M or M_u, M_v count control points, S^c is (M_u, M_v, 3) mm; u and v lie in 0 … 1; `order` is k = l, degree plus one.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def basis_functions(parameter: Array, count: int, order: int = 4) -> Array:
    """N_{i,k}: basis functions (P, M) over clamped uniform knots on [0, 1], by the recursion of Cox and de Boor."""
    knots = np.concatenate([np.zeros(order - 1), np.linspace(0.0, 1.0, count - order + 2), np.ones(order - 1)])
    span = np.minimum(np.searchsorted(knots, parameter, side="right") - 1, count - 1)
    basis = (np.arange(len(knots) - 1) == span[:, None]).astype(np.float64)
    for k in range(2, order + 1):
        raised = np.zeros((len(parameter), len(knots) - k))
        for i in range(len(knots) - k):
            rise, fall = knots[i + k - 1] - knots[i], knots[i + k] - knots[i + 1]
            if rise > 0.0:
                raised[:, i] += (parameter - knots[i]) / rise * basis[:, i]
            if fall > 0.0:
                raised[:, i] += (knots[i + k] - parameter) / fall * basis[:, i + 1]
        basis = raised
    return basis


def surface_points(uv: Array, control_points: Array, order: int = 4) -> Array:
    """Eq. 1: p = B(u, v, S^c) = sum_i sum_j N_{i,k}(u) N_{j,l}(v) S^c_ij, (P, 3) mm, at uv (P, 2)."""
    along_u = basis_functions(uv[:, 0], control_points.shape[0], order)
    along_v = basis_functions(uv[:, 1], control_points.shape[1], order)
    return np.asarray(np.einsum("pi,pj,ijx->px", along_u, along_v, control_points))
