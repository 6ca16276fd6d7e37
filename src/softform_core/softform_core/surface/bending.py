"""Bending energy of a B-spline surface, the thin-plate term of its fit (Duchon 1977; Wahba, Spline Models, ch. 2)."""

import numpy as np
from scipy.interpolate import BSpline

from softform_core.arrays import Array
from softform_core.surface.bspline import knots_along


def bending_energy(rows: int, cols: int, degree: int = 3, periodic: bool = False) -> Array:
    """Matrix G of the thin-plate energy: integral of |S_uu|^2 + 2 |S_uv|^2 + |S_vv|^2 du dv = trace(C^T G C).

    Args:
        rows: Control points along u.
        cols: Control points along v.
        degree: Polynomial degree.
        periodic: Whether u runs around a tube.

    Returns:
        (rows * cols, rows * cols), symmetric, positive semidefinite, for control points C (rows * cols, 3).

    Raises:
        SoftformError: If there are too few control points for the degree.
    """
    along_u = [_gram(rows, degree, order, periodic) for order in range(3)]
    along_v = [_gram(cols, degree, order, False) for order in range(3)]
    return np.kron(along_u[2], along_v[0]) + 2.0 * np.kron(along_u[1], along_v[1]) + np.kron(along_u[0], along_v[2])


def _gram(count: int, degree: int, order: int, periodic: bool) -> Array:
    """Integrals over [0, 1] of products of the basis functions' derivatives of an order, (count, count)."""
    knots = knots_along(count, degree, periodic)
    ends = np.unique(knots[(knots >= 0.0) & (knots <= 1.0)])
    # Gauss-Legendre with degree + 1 nodes an interval is exact for polynomials up to 2 degree + 1.
    nodes, weights = np.polynomial.legendre.leggauss(degree + 1)
    half = np.diff(ends)[:, None] / 2.0
    at = (ends[:-1, None] + half + half * nodes).ravel()
    wrapped = np.eye(count)[np.arange(len(knots) - degree - 1) % count]
    values = BSpline(knots, wrapped, degree)(at, nu=order)
    return values.T @ ((half * weights).reshape(-1, 1) * values)
