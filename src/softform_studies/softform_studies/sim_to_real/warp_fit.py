"""Least-squares fits of RBF warps (paper 000, Eq. 2): to points that a shape should go to, and to a captured cloud.

The second is a non-rigid registration, from which the paper's baseline takes its static correspondences (Sec. V-C2,
with Yao et al., CVPR 2020). Weights are Welsch's function, whose scale falls from coarse to fine, so that outliers lose
all weight; the kernels grow in number as the stiffness falls. Correspondences are searched from the cloud to the shape:
the shape is complete, the cloud has holes. Millimetres.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.rbf_warp import gaussians
from softform_core.inverse.closest_points import ClosestPoints
from softform_core.networks.sim_to_real import stable_directions
from softform_core.surface.patch_set import PatchSet

_SMALLEST = 1e-3
"""Motion over the strongest one's below which directions are left out."""


class WarpSpace:
    """All warps of a shape (P, 3) mm with kernels at (N, 3) mm, well-conditioned (`stable_directions`)."""

    def __init__(self, points: Array, centers: Array, width: float) -> None:
        self.points = points
        kernels = gaussians(points[None], centers[None], width)[0]
        basis = np.concatenate([np.ones((len(points), 1)), points, kernels], axis=1)
        self._columns = basis @ stable_directions(basis, centers, _SMALLEST)

    def nearest_warp(
        self,
        targets: Array,
        normals: Array,
        weights: Array,
        tangential: float = 0.01,
        ridge: float = 1e-4,
        index: NDArray[np.integer] | None = None,
    ) -> Array:
        """Return the warped p* that minimises mean w (((p* - t) . n)^2 + tangential |p* - t|^2) + ridge |amplitudes|^2.

        Args:
            targets: (M, 3) mm, t: where points should go.
            normals: (M, 3) unit normals of the surface there.
            weights: (M,) not negative.
            tangential: Weight of the full squared distance beside the point-to-plane one.
            ridge: Keeps what no target decides where it was; an amplitude of 1 moves the shape by 1 mm (RMS).
            index: (M,) which point of the shape each target is for; None if there is one for each in order.

        Returns:
            (P, 3) mm.
        """
        chosen = slice(None) if index is None else index
        columns, offsets = self._columns[chosen], targets - self.points[chosen]
        count, size = columns.shape
        metric = normals[:, :, None] * normals[:, None, :] + tangential * np.eye(3)
        metric *= (weights / count)[:, None, None]
        matrix = np.empty((3, size, 3, size))
        for axis in range(3):
            for other in range(axis, 3):
                block = columns.T @ (metric[:, axis, other, None] * columns)
                matrix[axis, :, other], matrix[other, :, axis] = block, block
        right = (columns.T @ np.einsum("pxy,py->px", metric, offsets)).T.ravel()
        normal_matrix = matrix.reshape(3 * size, 3 * size)
        normal_matrix[np.diag_indices(3 * size)] += ridge
        amplitudes = np.linalg.solve(normal_matrix, right).reshape(3, size).T
        return self.points + self._columns @ amplitudes


def warped_onto(
    points: Array, centers: Array, truth: ClosestPoints, width: float, rounds: int, tangential: float
) -> Array:
    """Return a simulated shape, warped by Eq. 2 as close to a true surface as least squares bring it, (P, 3) mm.

    Closest points on the truth are found again after each solve; distances count along its normals.

    Args:
        points: (P, 3) mm, simulated.
        centers: (N, 3) mm, kernel centers on the simulated surface.
        truth: The true surface.
        width: c of Eq. 2, 1/mm^2.
        rounds: Number of searches for closest points, and of solves.
        tangential: As of `WarpSpace.nearest_warp`.
    """
    space, warped = WarpSpace(points, centers, width), points
    for _ in range(rounds):
        closest = truth.query(warped)
        warped = space.nearest_warp(closest.points, closest.normals, np.ones(len(points)), tangential)
    return warped


_FEWEST_POINTS = 100


_LEVELS = ((16, 3e-5, 1e-1, 6), (49, 1e-4, 1e-2, 6), (100, 3e-4, 3e-3, 10))
"""Number and width (1/mm^2) of the kernels, stiffness, and iterations."""
_LAST_SCALE_MM = 1.0
"""Final Welsch scale, mm: a captured point three times further away is an outlier."""
_TANGENTIAL = 0.01
_SUPPORT_SPACINGS = 3.5
"""Distance in median spacings of the cloud beyond which a surface point without a captured one lies in a hole."""


@dataclass(frozen=True)
class Registration:
    """Places to which a fit moved the points of a surface.

    Attributes:
        points: (P, 3) mm, registered.
        is_supported: (P,) whether captured points lie around it; False in holes of the cloud, which the deformation has
            bridged.
    """

    points: Array
    is_supported: NDArray[np.bool_]


def register_surface(control_points: Array, uv: Array, patches: PatchSet, cloud: Array, normals: Array) -> Registration:
    """Deform a simulated surface, of control points (C, 3) mm, until it lies on a captured cloud.

    Registered are the points at uv (P, 2); the cloud (M, 3) mm, with unit normals (M, 3), has holes and outliers.

    Raises:
        SoftformError: If the cloud has too few points.
    """
    if len(cloud) < _FEWEST_POINTS:
        raise SoftformError(f"A cloud of {len(cloud)} points cannot be registered.", f"Give {_FEWEST_POINTS} or more.")
    points = patches.evaluate(control_points, uv)
    registered = points
    first_scale = max(2.0 * float(np.median(_along_normals(cloud, registered, normals)[1])), _LAST_SCALE_MM)
    total = sum(iterations for *_, iterations in _LEVELS)
    done = 0
    for kernels, width, ridge, iterations in _LEVELS:
        centers = patches.evaluate(control_points, patches.samples(kernels))
        space = WarpSpace(points, centers, width)
        for _ in range(iterations):
            scale = first_scale * (_LAST_SCALE_MM / first_scale) ** (done / (total - 1))
            nearest, distance = _along_normals(cloud, registered, normals)
            weight = np.exp(-0.5 * (distance / scale) ** 2)
            registered = space.nearest_warp(cloud, normals, weight, _TANGENTIAL, ridge, nearest)
            done += 1
    tree = cKDTree(cloud)
    spacing = float(np.median(tree.query(cloud, k=2)[0][:, 1]))
    return Registration(registered, tree.query(registered)[0] < _SUPPORT_SPACINGS * spacing)


def _along_normals(cloud: Array, surface: Array, normals: Array) -> tuple[NDArray[np.int64], Array]:
    """Return each captured point's nearest surface point (M,), and its distance along the normal (M,) mm."""
    nearest = cKDTree(surface).query(cloud)[1]
    return nearest, np.abs(np.einsum("mx,mx->m", cloud - surface[nearest], normals))
