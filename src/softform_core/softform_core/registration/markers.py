"""Places of markers on the surface: their parameters (u, v), found once at rest (paper 000, Sec. III-C)."""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.spatial.distance import pdist, squareform

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.registration.rest_surface import rest_surface
from softform_core.robots import Robot
from softform_core.surface.bspline import basis_matrix, derivative_matrices
from softform_core.surface.patch import Patch
from softform_core.surface.patch_set import PatchSet

_FEWEST_MARKERS = 4
_LARGEST_DISTANCE = 0.05
"""Largest distance of a marker from the rest surface, over the robot's size; a real sheet may sag."""
_LEAST_SPACING, _LEAST_OF_USUAL = 0.01, 0.2
"""Least distance over the robot's size, and over the usual one to the next marker: closer than both, markers cannot be
told apart."""
_SEARCH_GRID = 91
_SEARCH_ITERATIONS = 50
_SEARCH_STEP = 1e-12
_DAMPING = 1e-3
_LEAN_ITERATIONS = 8
_LEAN_POWERS = 4
_LEAN_RIDGE = 1e-4
"""Regularisation that keeps sections where no normal tells of them: along the tube."""


def register_markers(rest: Array, robot: Robot) -> Array:
    """Return parameters (M, 2) of the rest surface's points closest to markers (M, 3) m of the resting robot.

    Raises:
        SoftformError: If there are fewer than four markers, one is missing or far from the surface, or two coincide.
    """
    markers = np.asarray(rest, dtype=np.float64)
    if markers.ndim != 2 or markers.shape[1] != 3 or len(markers) < _FEWEST_MARKERS:
        raise SoftformError(
            f"Markers of shape {markers.shape} cannot be registered.", f"Give at least {_FEWEST_MARKERS} as (M, 3) m."
        )
    if not np.isfinite(markers).all():
        missing = np.flatnonzero(~np.isfinite(markers).all(axis=1))
        raise SoftformError(
            f"Marker {_listed(missing)} is missing at rest.", "Capture the rest shape with all markers visible."
        )
    size = float(robot.extent.max())
    gaps = squareform(pdist(markers)) + np.diag(np.full(len(markers), np.inf))
    if gaps.min() < min(_LEAST_SPACING * size, _LEAST_OF_USUAL * float(np.median(gaps.min(axis=1)))):
        pair = np.unravel_index(gaps.argmin(), gaps.shape)
        raise SoftformError(
            f"Markers {_listed(np.sort(pair))} are {gaps.min():.4f} m apart.",
            "Check the labels; take one of two markers that touch off the robot.",
        )
    control = rest_surface(robot).control_points
    markers = markers - _lean(markers, control, robot.patches)
    uv, distance = closest_parameters(markers, control, robot.patches)
    far = np.flatnonzero(distance > _LARGEST_DISTANCE * size)
    if len(far):
        raise SoftformError(
            f"Marker {_listed(far)} is {distance[far].max():.3f} m from robot '{robot.name}' at rest.",
            "Check unit and alignment of the capture system, and that the robot is vented.",
        )
    return uv


def _lean(markers: Array, control: Array, patches: PatchSet) -> Array:
    """Return how far (M, 3) m a real tube leans to a side of the simulated one at each marker, at rest.

    A long arm is mounted and loaded a little askew: its end lies a good part of its thickness beside that of the
    simulated arm, and the closest points would lie as far around it from the markers. So cross-sections are shifted
    first, by a polynomial along the tube, until markers are as near as they can be along the normals.
    """
    if len(patches) > 1 or not patches.patches[0].periodic:
        return np.zeros_like(markers)
    shift = np.zeros_like(markers)
    for _ in range(_LEAN_ITERATIONS):
        uv, _ = closest_parameters(markers - shift, control, patches)
        slopes = [matrix @ control for matrix in patches.derivatives(uv)]
        normals = np.cross(*slopes)
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        off = np.einsum("mx,mx->m", markers - patches.basis(uv) @ control, normals)
        powers = uv[:, 1, None] ** np.arange(_LEAN_POWERS)
        rows = np.einsum("mp,mx->mpx", powers, normals).reshape(len(markers), -1)
        ridge = _LEAN_RIDGE * len(markers) * np.eye(rows.shape[1])
        amplitudes = np.linalg.solve(rows.T @ rows + ridge, rows.T @ off).reshape(_LEAN_POWERS, 3)
        shift = powers @ amplitudes
    return shift


def _listed(indices: NDArray[np.integer]) -> str:
    """Return places in the list of markers, from 1 as in their names."""
    return ", ".join(str(int(index) + 1) for index in indices)


def closest_parameters(points: Array, control: Array, patches: PatchSet) -> tuple[Array, Array]:
    """Return parameters (M, 2) of the closest points of a B-spline surface (C, 3) to points (M, 3), and distances (M,).

    The nearest point of dense grids, then Gauss-Newton between the borders of its patch, all points at once.
    """
    grid = patches.samples(len(patches) * _SEARCH_GRID**2)
    nearest = cKDTree(patches.basis(grid) @ control).query(points)[1]
    place, local = patches.split(grid[nearest])
    uv, distance = np.empty((len(points), 2)), np.empty(len(points))
    for number, (patch, own) in enumerate(zip(patches.patches, patches.control_grids(control), strict=True)):
        on = place == number
        found, distance[on] = _closest_on_patch(points[on], own.reshape(-1, 3), patch, local[on])
        uv[on] = patches.joined(number, found)
    return uv, distance


def _closest_on_patch(points: Array, control: Array, patch: Patch, starts: Array) -> tuple[Array, Array]:
    """Find `closest_parameters` on one patch, from (M, 2) near the closest points: damped Gauss-Newton."""
    around = np.inf if patch.periodic else 0.0
    lowest, highest = np.array([-around, 0.0]), np.array([1.0 + around, 1.0])

    def wrapped(at: Array) -> Array:
        return at % [1.0, np.inf] if patch.periodic else at

    def offsets(at: Array) -> Array:
        return np.asarray(basis_matrix(wrapped(at), *patch) @ control) - points

    uv, damping, diagonal = starts.copy(), np.full(len(points), _DAMPING), np.arange(2)
    offset = offsets(uv)
    for _ in range(_SEARCH_ITERATIONS):
        slopes = np.stack([matrix @ control for matrix in derivative_matrices(wrapped(uv), *patch)], axis=2)
        gradient, matrix = np.einsum("mxi,mx->mi", slopes, offset), np.einsum("mxi,mxj->mij", slopes, slopes)
        matrix[:, diagonal, diagonal] *= 1.0 + damping[:, None]
        held = ((uv <= lowest) & (gradient > 0.0)) | ((uv >= highest) & (gradient < 0.0))
        matrix[held[:, :, None] | held[:, None, :]] = 0.0
        matrix[:, diagonal, diagonal] += held
        trial = np.clip(uv - np.linalg.solve(matrix, np.where(held, 0.0, gradient)[..., None])[..., 0], lowest, highest)
        if np.abs(trial - uv).max() < _SEARCH_STEP:
            break
        reached = offsets(trial)
        closer = (reached**2).sum(axis=1) < (offset**2).sum(axis=1)
        uv, offset = np.where(closer[:, None], trial, uv), np.where(closer[:, None], reached, offset)
        damping = np.where(closer, 0.1, 10.0) * damping
    return wrapped(uv), np.linalg.norm(offset, axis=1)
