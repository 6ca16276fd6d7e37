"""Constant data of learning a warp: N_fk is frozen, so simulated shapes and kernels are evaluated once."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.networks.mlp_weights import MlpWeights
from softform_core.networks.sim_to_real import (
    ShapeInput,
    identity_coefficients,
    stable_directions,
    warp_basis,
    warp_basis_slope,
)
from softform_core.surface.patch_set import PatchSet
from softform_core.training.displacement_prior import DisplacementPrior
from softform_core.training.recipe import Recipe
from softform_core.training.sim_to_real_losses import surface_normals

_TYPICAL_SHAPES = 512
_NEIGHBOURS = 4
"""Neighbours of a kernel whose distances give the spacing, as in a square grid."""


@dataclass(frozen=True)
class WarpData:
    """Simulated shapes at the actuations of the frames and the warp on them, in tensors.

    Attributes:
        kernel_uv: (N, 2) parameters of the kernels, of width c of Eq. 2, 1/mm^2; `centers` (n, N, 3) mm.
        shape_input: Encoding of the control points for the networks; `shape` (n, r) are the shapes in it.
        directions: (N + 4, d) of gamma along which N_rbf predicts.
        scaling: (3 d, 3 d) from N_rbf's coordinates to amplitudes along them; None if they are the same.
        points: (n, P, 3) mm, simulated.
        basis: (n, P, N + 4), `warp_basis`; `slope_u` and `slope_v` of the same shape, `warp_basis_slope`.
    """

    kernel_uv: Array
    kernel_width: float
    shape_input: ShapeInput
    directions: Array
    scaling: Array | None
    shape: Tensor
    points: Tensor
    centers: Tensor
    basis: Tensor
    slope_u: Tensor
    slope_v: Tensor

    @property
    def normals(self) -> Tensor:
        """(n, P, 3), unit, of the simulated surfaces."""
        identity = torch.from_numpy(identity_coefficients(len(self.kernel_uv))).float()
        return surface_normals(self.slope_u @ identity, self.slope_v @ identity)

    @classmethod
    def of(
        cls,
        forward_kinematics: MlpWeights,
        actuation: Array,
        uv: Array,
        kernel_uv: Array,
        recipe: Recipe,
        patches: PatchSet,
        prior: DisplacementPrior | None = None,
    ) -> "WarpData":
        """Evaluate N_fk, spline and kernels.

        Args:
            forward_kinematics: N_fk of the robot.
            actuation: (n, k), of the frames.
            uv: (P, 2) parameters of the surface's samples: a grid for scans, the markers' for markers.
            kernel_uv: (N, 2) parameters of the kernels.
            recipe: Kernel width, input and directions.
            patches: The robot's surface.
            prior: Prior of its displacements in realities, if known and used by the recipe.

        Raises:
            SoftformError: If actuations or spline do not fit N_fk.
        """
        if actuation.shape[1] != len(forward_kinematics.input_offset):
            raise SoftformError(
                f"The frames have {actuation.shape[1]} actuation values, "
                f"N_fk takes {len(forward_kinematics.input_offset)}.",
                "Use frames of the robot that N_fk was trained for.",
            )
        control = forward_kinematics.forward(actuation)
        if control.shape[1] != patches.control_points * 3:
            raise SoftformError(
                f"N_fk gives {control.shape[1]} numbers, not {patches} control points.",
                "Use the surface that N_fk was trained for.",
            )
        relative = np.random.default_rng(0).uniform(-1.0, 1.0, (_TYPICAL_SHAPES, actuation.shape[1]))
        typical = forward_kinematics.input_offset + relative * forward_kinematics.input_scale
        shape_input = ShapeInput.of(forward_kinematics.forward(typical), recipe.components)
        points, along_u, along_v = (
            decoded(decoder, control) for decoder in (patches.basis(uv), *patches.derivatives(uv))
        )
        centers = decoded(patches.basis(kernel_uv), control)
        width = kernel_width(shape_input.mean, kernel_uv, recipe, patches)
        directions = _directions(shape_input.mean, kernel_uv, width, recipe, patches)
        scaling = None
        if prior is not None and recipe.prior_scale is not None:
            there = _mean_basis(shape_input.mean, prior.modes.shape[1], kernel_uv, width, patches)[0]
            scaling = recipe.prior_scale * prior.scaling(there @ directions)
        return cls(
            kernel_uv,
            width,
            shape_input,
            directions,
            scaling,
            torch.from_numpy(shape_input.normalised(control)).float(),
            points.float(),
            centers.float(),
            warp_basis(points, centers, width).float(),
            warp_basis_slope(points, along_u, centers, width).float(),
            warp_basis_slope(points, along_v, centers, width).float(),
        )


def decoded(decoder: Any, control_points: Array) -> Tensor:
    """Eq. 1 for control points (n, C * 3): (n, P, 3)."""
    return torch.from_numpy(np.stack([decoder @ shape.reshape(-1, 3) for shape in control_points]))


def kernel_width(mean_shape: Array, kernel_uv: Array, recipe: Recipe, patches: PatchSet) -> float:
    """Return c of Eq. 2, 1/mm^2: the recipe's, or by the distance of kernels, at (N, 2), on a shape (C * 3,) mm."""
    if recipe.kernel_width is not None:
        return recipe.kernel_width
    centers = patches.basis(kernel_uv) @ mean_shape.reshape(-1, 3)
    nearest = cKDTree(centers).query(centers, k=_NEIGHBOURS + 1)[0][:, 1:]
    return float(0.5 / (recipe.kernel_reach * np.median(nearest)) ** 2)


def _directions(mean_shape: Array, kernel_uv: Array, width: float, recipe: Recipe, patches: PatchSet) -> Array:
    """Return `stable_directions` on the mean shape, sampled evenly whatever the frames' samples are."""
    if recipe.smallest_direction is None:
        return np.eye(len(kernel_uv) + 4)
    basis, centers = _mean_basis(mean_shape, recipe.surface_points, kernel_uv, width, patches)
    return stable_directions(basis, centers, recipe.smallest_direction)


def _mean_basis(
    mean_shape: Array, samples: int, kernel_uv: Array, width: float, patches: PatchSet
) -> tuple[Array, Array]:
    """Return `warp_basis` (P, N + 4) at samples of the mean shape, and the kernels' centers (N, 3) there."""
    points, centers = (decoded(patches.basis(uv), mean_shape[None]) for uv in (patches.samples(samples), kernel_uv))
    return warp_basis(points, centers, width)[0].numpy(), centers[0].numpy()
