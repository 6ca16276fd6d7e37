"""Non-rigid registration of a simulated shape to a captured cloud: where each surface point went, for one frame.

The paper's baseline of static correspondences takes them from a robust non-rigid registration (paper 000, Sec. V-C2,
with Yao et al., CVPR 2020). As there, distances enter through Welsch's function, whose scale falls from coarse to fine,
so that outliers lose all weight. The deformation is an RBF warp (Eq. 2) whose kernels grow in number as its stiffness
falls. Correspondences are searched from the cloud to the shape: the shape is complete, the cloud has holes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.surface.patch_set import PatchSet
from softform_studies.sim_to_real.warp_fit import WarpSpace

_FEWEST_POINTS = 100


_LEVELS = ((16, 3e-5, 1e-1, 6), (49, 1e-4, 1e-2, 6), (100, 3e-4, 3e-3, 10))
"""Number and width (1/mm^2) of the kernels, stiffness, and iterations."""
_LAST_SCALE_MM = 1.0
"""Welsch scale at the end: a captured point three times further away is an outlier."""
_TANGENTIAL = 0.01
_SUPPORT_SPACINGS = 3.5
"""A surface point without a captured one within so many median spacings of the cloud lies in a hole."""


@dataclass(frozen=True)
class Registration:
    """Where the points of a surface went.

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
    """Nearest surface point of each captured one (M,), and its distance along the captured normal (M,) mm."""
    nearest = cKDTree(surface).query(cloud)[1]
    return nearest, np.abs(np.einsum("mx,mx->m", cloud - surface[nearest], normals))
