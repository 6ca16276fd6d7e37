"""Uniform B-spline surfaces in matrix form (paper 000, Eq. 1; Piegl and Tiller, The NURBS Book, ch. 2-3).

Control point (i, j) has i along u and j along v; flattened it is row `i * cols + j`, the column of the matrices here.
Along v the spline is clamped. Along u it is clamped too, or periodic for a tube: u = 0 and u = 1 are then the same
place, and the surface is as smooth there as anywhere, whatever the control points are.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import BSpline
from scipy.sparse import csr_matrix

from softform_core.arrays import Array
from softform_core.errors import SoftformError


def clamped_knots(count: int, degree: int = 3) -> Array:
    """Return uniform knots (count + degree + 1,) on [0, 1] with repeated ends: the surface reaches its corners.

    Raises:
        SoftformError: If there are fewer than degree + 1 control points.
    """
    if count < degree + 1:
        raise SoftformError(
            f"A B-spline of degree {degree} needs at least {degree + 1} control points, got {count}.",
            "Set `rows` and `columns` higher in `surfaces` of the robot's description, or `degree` lower.",
        )
    inner = np.linspace(0.0, 1.0, count - degree + 1)
    return np.concatenate([np.zeros(degree), inner, np.ones(degree)])


def knots_along(count: int, degree: int, periodic: bool) -> Array:
    """Return `clamped_knots`, or uniform knots to `degree` intervals beyond [0, 1], for periodic functions.

    Returns:
        (count + degree + 1,), or (count + 2 degree + 1,) if periodic.

    Raises:
        SoftformError: If there are fewer than degree + 1 control points.
    """
    clamped = clamped_knots(count, degree)
    return np.arange(-degree, count + degree + 1) / count if periodic else clamped


def basis_matrix(uv: ArrayLike, rows: int = 30, cols: int = 30, degree: int = 3, periodic: bool = False) -> csr_matrix:
    """Return products N_i(u) N_j(v) of Eq. 1: points = basis_matrix @ control_points.reshape(rows * cols, 3).

    Args:
        uv: (P, 2) parameters in the unit square.
        rows: Control points along u.
        cols: Control points along v.
        degree: Polynomial degree.
        periodic: Whether u runs around a tube.

    Returns:
        (P, rows * cols); each row sums to one.

    Raises:
        SoftformError: If uv is not (P, 2) finite numbers in the unit square, or the grid is too small.
    """
    uv = checked_uv(uv)
    along_u, along_v = _local_basis(uv[:, 0], rows, degree, periodic), _local_basis(uv[:, 1], cols, degree)
    return _products(along_u, along_v, rows, cols)


def derivative_matrices(
    uv: ArrayLike, rows: int = 30, cols: int = 30, degree: int = 3, periodic: bool = False
) -> tuple[csr_matrix, csr_matrix]:
    """Return derivatives of `basis_matrix` along u and along v; arguments and errors as there.

    Returns:
        Bu and Bv, (P, rows * cols) each.
    """
    uv = checked_uv(uv)
    along_u, along_v = _local_basis(uv[:, 0], rows, degree, periodic), _local_basis(uv[:, 1], cols, degree)
    slope_u = _local_basis(uv[:, 0], rows, degree, periodic, derivative=True)
    slope_v = _local_basis(uv[:, 1], cols, degree, derivative=True)
    return _products(slope_u, along_v, rows, cols), _products(along_u, slope_v, rows, cols)


def evaluate(control_points: ArrayLike, uv: ArrayLike, degree: int = 3, periodic: bool = False) -> Array:
    """Return points (..., P, 3) of surfaces (..., rows, cols, 3), in their unit, at (P, 2) in the unit square, Eq. 1.

    Raises:
        SoftformError: If an argument has another shape.
    """
    control = _checked_control_points(control_points)
    rows, cols = control.shape[-3:-1]
    return apply(basis_matrix(uv, rows, cols, degree, periodic), control)


def unit_normals(along_u: Array, along_v: Array) -> Array:
    """Return unit normals du x dv from tangents (..., P, 3) each; zero where they are parallel."""
    cross = np.cross(along_u, along_v)
    length = np.linalg.norm(cross, axis=-1, keepdims=True)
    return np.divide(cross, length, out=np.zeros_like(cross), where=length > 0.0)


def checked_uv(uv: ArrayLike) -> Array:
    """Return `uv` as a (P, 2) float array.

    Raises:
        SoftformError: If it has another shape, is not finite or leaves the unit square.
    """
    values = np.asarray(uv, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != 2:
        raise SoftformError(f"Surface parameters have shape {values.shape}.", "Give (P, 2).")
    if not np.isfinite(values).all() or (values.size and (values.min() < 0.0 or values.max() > 1.0)):
        raise SoftformError("Surface parameters must be finite and lie in the unit square.", "Clip them to 0 … 1.")
    return values


def _checked_control_points(control_points: ArrayLike) -> Array:
    control = np.asarray(control_points, dtype=np.float64)
    if control.ndim < 3 or control.shape[-1] != 3:
        raise SoftformError(f"Control points have shape {control.shape}.", "Give (..., rows, cols, 3).")
    return control


def apply(matrix: csr_matrix, control: Array) -> Array:
    """Return a matrix (P, rows * cols) of this module times control points (..., rows, cols, 3): (..., P, 3)."""
    flat = control.reshape(-1, matrix.shape[1], 3)
    columns = flat.transpose(1, 0, 2).reshape(matrix.shape[1], -1)
    points = (matrix @ columns).reshape(matrix.shape[0], -1, 3).transpose(1, 0, 2)
    return np.ascontiguousarray(points).reshape(*control.shape[:-3], matrix.shape[0], 3)


def _local_basis(
    parameter: Array, count: int, degree: int, periodic: bool = False, derivative: bool = False
) -> tuple[NDArray[np.int64], Array]:
    """Return the degree + 1 functions that are not zero at each parameter: (P, d + 1) control points and values."""
    knots = knots_along(count, degree, periodic)
    if periodic:
        parameter = parameter % 1.0
    span = np.clip(np.searchsorted(knots, parameter, side="right") - 1, degree, len(knots) - degree - 2)
    functions = (span - degree)[:, None] + np.arange(degree + 1)
    if derivative:
        # N'_{i,d} = d (N_{i,d-1} / (t_{i+d} - t_i) - N_{i+1,d-1} / (t_{i+d+1} - t_{i+1})), The NURBS Book, Eq. 2.7.
        lower = BSpline.design_matrix(parameter, knots[1:-1], degree - 1).toarray()
        scaled = degree * lower / (knots[degree + 1 : -1] - knots[1 : -degree - 1])
        dense = -np.diff(scaled, axis=1, prepend=0.0, append=0.0)
    else:
        dense = BSpline.design_matrix(parameter, knots, degree).toarray()
    return functions % count, np.take_along_axis(dense, functions, axis=1)


def _products(
    along_u: tuple[NDArray[np.int64], Array], along_v: tuple[NDArray[np.int64], Array], rows: int, cols: int
) -> csr_matrix:
    (places_u, values_u), (places_v, values_v) = along_u, along_v
    points = len(values_u)
    columns = (places_u[:, :, None] * cols + places_v[:, None, :]).reshape(points, -1)
    values = (values_u[:, :, None] * values_v[:, None, :]).reshape(points, -1)
    starts = np.arange(points + 1) * columns.shape[1]
    matrix = csr_matrix((values.ravel(), columns.ravel(), starts), shape=(points, rows * cols))
    matrix.sort_indices()
    return matrix
