"""A centre line as a B-spline curve: Eq. 1 of paper 000 with one parameter, s along the body at rest, from its base."""

import numpy as np
from scipy.interpolate import BSpline
from scipy.sparse import csr_matrix

from softform_core.arrays import Array
from softform_core.surface.bspline import clamped_knots

DEGREE = 3
"""Polynomial degree of the curve."""


def curve_basis(at: Array, control_points: int) -> csr_matrix:
    """Return products N_i(s): points = curve_basis @ control_points (C, 3), of s (P,) in 0 ... 1; (P, C).

    Raises:
        SoftformError: If there are fewer control points than the degree needs.
    """
    return csr_matrix(BSpline.design_matrix(np.asarray(at), clamped_knots(control_points, DEGREE), DEGREE))


def fit_curve(nodes: Array, at: Array, control_points: int) -> Array:
    """Return control points (..., C, 3) of the curves that pass nearest to nodes (..., N, 3) at s (N,), in their unit.

    Raises:
        SoftformError: If there are fewer control points than the degree needs.
    """
    return np.asarray(np.linalg.pinv(curve_basis(at, control_points).toarray()) @ nodes)
