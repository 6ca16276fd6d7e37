"""Training of N_rbf on labelled markers (paper 000, Sec. III-C): known correspondences, Eq. 13 in place of Eq. 6.

As the paper has it: w_c is 1 for a captured marker and 0 for a missing one, omega_nc = omega_cr = 0 (no N_conf), the
kernels stand at the markers, or on an even grid where there are more markers than kernels (Table II: 34 kernels at 34
markers, 100 under 400). The actuation is corrected first, by markers that are many also for how the base sits
(`training.actuation_fit`), and the warp learns what is left. The start at the identity, the
stable directions with a penalty on their amplitudes, the principal components and the ensemble are those of scans
(`training.sim_to_real`).

At the markers, the spread of the members is calibrated on frames that they were not trained on, as for scans. The error
between markers adds to the floor. No frame shows it; gaps that are known everywhere do, those between simulated shapes
under different actuations: fitted at the markers, they tell which share of a gap is missed between them.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softform_core.arrays import Array
from softform_core.evaluation.uncertainty import calibrate
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.surface_uncertainty import members_spread
from softform_core.frames.frames import MarkerFrames
from softform_core.frames.marker_checks import MarkerFault, check_markers, marker_faults
from softform_core.geometry.rigid import RigidTransform
from softform_core.networks.mlp_weights import MlpWeights
from softform_core.surface.patch_set import PatchSet
from softform_core.training.actuation_fit import fit_actuation_to_few_markers, fit_actuation_to_markers
from softform_core.training.ensemble import TrainingRun, WarpProblem, train_ensemble
from softform_core.training.recipe import DEFAULT, PAPER, Recipe
from softform_core.training.scan_checks import fold_flags, residual_flags
from softform_core.training.trained_sim_to_real import FrameFlag, TrainedSimToReal, model_of
from softform_core.training.warp_data import WarpData, decoded
from softform_core.units import MM_PER_M

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


MARKERS = replace(
    DEFAULT,
    name="markers",
    epochs=200,
    patience=200,
    batch_size=32,
    kernel_width=3e-4,
    keeps_best=True,
    confidence_weight=0.0,
    normal_weight=0.0,
    prior_scale=None,
)
"""Recipe for markers; settings that concern scans alone are not used."""

_EPOCHS_OF_MANY = 15
"""Most epochs of 500 frames with more markers than kernels; the corrected actuation leaves little to learn."""

MARKER_RECIPES = {recipe.name: recipe for recipe in (MARKERS, PAPER)}
"""Recipes for markers, the printed one among them; kernels stand at the markers in all of them."""


def train_sim_to_real_from_markers(
    forward_kinematics: MlpWeights,
    frames: MarkerFrames,
    recipe: Recipe = MARKERS,
    run: TrainingRun | None = None,
    kernel_uv: Array | None = None,
    check_labels: bool = True,
) -> TrainedSimToReal:
    """Train N_rbf on at least as many frames as the recipe's folds; N_fk stays as it is.

    Kernels stand at `kernel_uv` (N, 2), by default at the markers. Without `check_labels`, labels that cannot be right
    are not rejected: virtual markers of a registration may slide past each other.

    Raises:
        SoftformError: If frames, N_fk and start do not fit together, labels cannot be right, there are too few frames,
            or training diverges.
    """
    run = run or TrainingRun()
    patches, actuation, motion = run.patches, None, RigidTransform()
    are_many = len(frames.uv) > recipe.kernels
    if kernel_uv is None and (are_many or recipe.corrects_actuation):
        simulated_markers = ForwardPipeline(forward_kinematics, frames.uv, None, patches)
        if run.start is not None:
            actuation = run.start[0].actuation
        elif are_many:
            actuation, motion = fit_actuation_to_markers(simulated_markers, forward_kinematics, frames)
        else:
            actuation = fit_actuation_to_few_markers(simulated_markers, forward_kinematics, frames, run.alike)
        if actuation is not None:
            frames = frames.effective(actuation.memory)
            forward_kinematics = actuation.before(forward_kinematics)
    if kernel_uv is None and are_many:
        epochs = min(recipe.epochs, _EPOCHS_OF_MANY)
        kernel_uv = patches.kernels(recipe.kernels)
        recipe = replace(recipe, kernel_width=None, epochs=epochs, patience=epochs)
    kernels = frames.uv if kernel_uv is None else kernel_uv
    data = WarpData.of(forward_kinematics, frames.actuation, frames.uv, kernels, recipe, patches)
    if check_labels:
        simulated = decoded(patches.basis(frames.uv), forward_kinematics.forward(frames.actuation))
        check_markers(frames, simulated.numpy() / MM_PER_M)

    problem = partial(MarkerProblem, data, frames, recipe, run, motion)
    arrays = (frames.actuation, frames.uv, frames.positions, kernels)
    members = train_ensemble(problem, len(frames), recipe, run, arrays)
    surfaces = [member.problem.predicted() for member in members]
    points, normals = (torch.stack(part).double().numpy() for part in zip(*surfaces, strict=True))
    seen = np.zeros(points.shape[:3], dtype=bool)
    for place, member in enumerate(members):
        seen[place, member.validation] = frames.visible[member.validation]
    factor, floor = calibrate_at_markers(members[0].problem.captured.double().numpy(), points, normals, seen)
    share = share_between_markers(forward_kinematics, frames.uv, kernels, recipe, patches)
    gap = MM_PER_M * frames.positions - data.points.numpy()
    floor = float(np.hypot(floor, share * np.sqrt(np.nanmean(np.square(gap).sum(axis=2)))))
    residual = np.nanmean(np.linalg.norm(MM_PER_M * frames.positions - points.mean(axis=0), axis=2), axis=1)
    flags = residual_flags(residual) + fold_flags(torch.from_numpy(normals.mean(axis=0)).float(), data.normals)
    return model_of(members, data, (factor, floor), flags, actuation=actuation)


def unfit_markers(forward_kinematics: MlpWeights, frames: MarkerFrames, patches: PatchSet) -> list[FrameFlag]:
    """Return frames whose labels cannot be right, to be left out before training.

    Under more markers than kernels, frames are compared with what is simulated once the actuation is corrected: an arm
    may lie further beside the simulated one than markers lie apart.
    """
    simulated = ForwardPipeline(forward_kinematics, frames.uv, None, patches)
    if len(frames.uv) <= MARKERS.kernels:
        return [FrameFlag(fault.frame, fault.reason) for fault in _faults(simulated, frames, frames.actuation)]
    kept, flags = np.arange(len(frames)), list[FrameFlag]()
    while len(kept):
        # Training corrects the actuation by the frames that are left, and has to find no other unfit.
        fit = frames.part(kept)
        correction, _ = fit_actuation_to_markers(simulated, forward_kinematics, fit)
        faults = _faults(simulated, fit, correction.effective(fit.effective(correction.memory).actuation))
        flags += [FrameFlag(int(kept[fault.frame]), fault.reason) for fault in faults]
        kept = np.delete(kept, [fault.frame for fault in faults])
        if not faults:
            break
    return sorted(flags, key=lambda flag: flag.frame)


def _faults(simulated: ForwardPipeline, frames: MarkerFrames, actuation: Array) -> list[MarkerFault]:
    return marker_faults(frames, simulated.points(actuation) / MM_PER_M)


class MarkerProblem(WarpProblem):
    """N_rbf of one member, learned from labelled markers.

    Attributes:
        captured: (n, M, 3) mm, x_i.
        visible: (n, M), 1 where a marker is captured, 0 where it is missing: w_c of Eq. 13.
    """

    def __init__(
        self,
        data: WarpData,
        frames: MarkerFrames,
        recipe: Recipe,
        run: TrainingRun,
        motion: RigidTransform,
        number: int,
    ) -> None:
        super().__init__(data, recipe, run.start_of(number), motion)
        self.visible = torch.from_numpy(frames.visible).float()
        self.captured = torch.from_numpy(np.nan_to_num(MM_PER_M * frames.positions)).float()

    def refresh(self, validation: Tensor) -> float:
        """Return the mean distance of captured markers from predicted ones in these frames, mm."""
        distance = (self.predicted()[0][validation] - self.captured[validation]).norm(dim=-1)
        visible = self.visible[validation]
        return float((visible * distance).sum() / visible.sum())

    def loss(self, batch: Tensor) -> Tensor:
        """Eq. 12 with Eq. 13, mean over the frames of a batch."""
        amplitudes, gamma = self.warps(batch)
        loss = marker_distance(self._data.basis[batch] @ gamma, self.captured[batch], self.visible[batch])
        return self.regularised(loss, amplitudes, gamma, batch).mean()


def marker_distance(predicted: Tensor, captured: Tensor, visible: Tensor) -> Tensor:
    """Eq. 13: mean over the markers of w_c |p*_i - x_i|^2, for (n, M, 3) mm and w_c (n, M); (n,) mm^2."""
    return (visible * (predicted - captured).square().sum(-1)).mean(dim=1)
