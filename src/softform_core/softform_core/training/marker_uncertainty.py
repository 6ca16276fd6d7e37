"""Uncertainty of a prediction learned from markers: at the markers, and between them, where nothing was seen.

At the markers, the spread of the members is calibrated on frames that they were not trained on, as for scans. The error
between markers adds to the floor. No frame shows it; gaps that are known everywhere do, those between simulated shapes
under different actuations: fitted at the markers, they tell which share of a gap is missed between them.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.evaluation.uncertainty import calibrate
from softform_core.forward.surface_uncertainty import members_spread
from softform_core.networks.mlp_weights import MlpWeights
from softform_core.surface.patch_set import PatchSet
from softform_core.training.recipe import Recipe
from softform_core.training.warp_data import WarpData, decoded

_TRIED_GAPS = 32
_TRIED_CHANGE = 0.1
"""Change of the actuation that is tried, over half the working range; the result hardly depends on it."""
_SURFACE_POINTS = 900


def calibrate_at_markers(
    captured: Array, points: Array, normals: Array, seen: NDArray[np.bool_]
) -> tuple[float, float]:
    """Return factor and floor (mm) at markers, see `evaluation.uncertainty`; the floor includes their noise.

    Captured markers are (n, M, 3) mm, the points of the k members (k, n, M, 3) mm with unit normals; `seen` (k, n, M)
    are those captured in a frame that the member was not trained on.
    """
    mean = normals.mean(axis=0)
    spread = members_spread(points, mean / np.linalg.norm(mean, axis=-1, keepdims=True))
    distance = np.einsum("knmx,knmx->knm", captured - points, normals)[seen]
    return calibrate(distance, np.broadcast_to(spread, seen.shape)[seen], np.zeros(len(distance)))


def share_between_markers(
    forward_kinematics: MlpWeights, uv: Array, kernel_uv: Array, recipe: Recipe, patches: PatchSet
) -> float:
    """Return the error between markers that are themselves fitted, over the gap at them; root mean squares.

    The gaps tried are those between simulated shapes whose actuations differ by tenths.

    Args:
        forward_kinematics: N_fk of the robot.
        uv: (M, 2) parameters of the markers.
        kernel_uv: (N, 2) parameters of the kernels.
        recipe: Kernel width, directions and the weight of their amplitudes.
        patches: The robot's surface.
    """
    generator = np.random.default_rng(0)
    k = len(forward_kinematics.input_offset)
    relative = generator.uniform(-1.0, 1.0, (_TRIED_GAPS, k))
    actuation = forward_kinematics.input_offset + relative * forward_kinematics.input_scale
    change = _TRIED_CHANGE * generator.standard_normal((_TRIED_GAPS, k)) * forward_kinematics.input_scale
    real = forward_kinematics.forward(actuation + change)

    without_components = replace(recipe, components=None)  # no network is fed here

    def gap_and_basis(at: Array) -> tuple[Array, Array]:
        data = WarpData.of(forward_kinematics, actuation, at, kernel_uv, without_components, patches)
        gap = decoded(patches.basis(at), real) - data.points
        return gap.numpy(), data.basis.double().numpy() @ data.directions

    (gap, basis), (gap_between, basis_between) = gap_and_basis(uv), gap_and_basis(patches.samples(_SURFACE_POINTS))
    # What training would find for this gap alone: Eq. 13 and the penalty on the amplitudes.
    directions = basis.shape[2]
    penalty = recipe.amplitude_weight * len(uv) / (3 * directions) * np.eye(directions)
    transposed = basis.swapaxes(1, 2)
    # Without a penalty, kernels may be more than the markers determine: the least amplitudes are taken.
    amplitudes = np.linalg.pinv(transposed @ basis + penalty, rcond=1e-10, hermitian=True) @ transposed @ gap
    left, left_between = gap - basis @ amplitudes, gap_between - basis_between @ amplitudes
    unseen = np.square(left_between).sum(axis=2).mean() - np.square(left).sum(axis=2).mean()
    return float(np.sqrt(max(0.0, unseen) / np.square(gap).sum(axis=2).mean()))
