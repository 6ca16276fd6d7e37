"""Training of N_rbf and N_conf on captured frames without correspondences (paper 000, Secs. II-C and III).

Some of the paper's printed sums, weights and scales do not work; docs/notes/sim-to-real-as-printed.md describes what
was tried and why ours differs. Both forms are recipes. Here is the problem that one member of the ensemble
solves, and how members become a model.
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor, nn

from softform_core.evaluation.uncertainty import calibrate, measurement_noise
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.surface_uncertainty import members_spread
from softform_core.frames.frames import Frames
from softform_core.networks.mlp_weights import MlpWeights
from softform_core.networks.sim_to_real import Confidence
from softform_core.training.actuation_fit import fit_actuation
from softform_core.training.border import Border, BorderLine, BorderNeighbours, border_misfit, border_neighbours
from softform_core.training.ensemble import Member, TrainingRun, WarpProblem, train_ensemble
from softform_core.training.loop import run_batches
from softform_core.training.recipe import DEFAULT, Recipe
from softform_core.training.scan_checks import check_scans, fold_flags, residual_flags
from softform_core.training.sim_to_real_losses import (
    Clouds,
    Neighbours,
    chamfer_parts,
    confidence_regularization,
    gathered,
    mean_normals,
    nearest_neighbours,
    normal_compatibility,
    surface_normals,
    weighted_chamfer,
)
from softform_core.training.trained_sim_to_real import FrameFlag, TrainedSimToReal, model_of
from softform_core.training.warp_data import WarpData
from softform_core.units import MM_PER_M

__all__ = ["train_sim_to_real"]

_CAP_MM = 10.0
"""Distance to which those of captured points are cut in validation, mm: a wild point must not decide alone."""


def train_sim_to_real(
    forward_kinematics: MlpWeights, frames: Frames, recipe: Recipe = DEFAULT, run: TrainingRun | None = None
) -> TrainedSimToReal:
    """Train N_rbf and N_conf on at least as many frames as the recipe's folds; N_fk stays as it is.

    Raises:
        SoftformError: If frames, N_fk and start do not fit together, there are too few frames, or training diverges.
    """
    run = run or TrainingRun()
    uv, kernel_uv = run.patches.samples(recipe.surface_points), run.patches.kernels(recipe.kernels)
    simulated = ForwardPipeline(forward_kinematics, uv, None, run.patches)
    clouds = Clouds.of([MM_PER_M * cloud for cloud in frames.clouds], frames.normals)
    check_scans(
        clouds, *(torch.from_numpy(of(frames.actuation)).float() for of in (simulated.points, simulated.normals))
    )
    actuation = None if run.start is None else run.start[0].actuation
    if run.start is None and recipe.corrects_actuation:
        actuation = fit_actuation(simulated, forward_kinematics, frames, alike=run.alike)
    if actuation is not None:
        frames = frames.effective(actuation.memory)
        forward_kinematics = actuation.before(forward_kinematics)
    data = WarpData.of(forward_kinematics, frames.actuation, uv, kernel_uv, recipe, run.patches, run.prior)
    border = Border.of(run.patches, data.points[0].numpy())

    problem = partial(ScanProblem, data, clouds, recipe, border, run)
    scaling = () if data.scaling is None else (data.scaling,)
    arrays = (frames.actuation, *frames.clouds, *frames.normals, *scaling)
    members = train_ensemble(problem, len(frames), recipe, run, arrays)
    calibration, flags = _judged(members, clouds, data.normals)
    learned = recipe.confidence == "learned"
    confidence = [member.problem.confidence for member in members] if learned else []
    return model_of(members, data, calibration, flags, confidence, actuation)


class ScanProblem(WarpProblem):
    """N_rbf and N_conf of one member, learned from scans without correspondences.

    Eq. 12 is minimised in turns: N_rbf's steps hold the confidence of the last refresh, N_conf's steps, taken at each
    refresh, hold the distances.
    """

    def __init__(
        self, data: WarpData, clouds: Clouds, recipe: Recipe, border: Border, run: TrainingRun, number: int
    ) -> None:
        super().__init__(data, recipe, run.start_of(number))
        self._clouds, self._used, self._border = clouds, clouds, border
        self.confidence = Confidence(data.shape.shape[1], float(data.points.std()))
        self.nets = nn.ModuleList([self.network, self.confidence])
        self._neighbours: Neighbours | None = None
        self._border_neighbours: BorderNeighbours | None = None
        self._confidence = torch.ones(data.points.shape[:2])

    def refresh(self, validation: Tensor) -> float:
        """Find neighbours, outliers and confidence of all frames anew; returns the validation error as it is, mm."""
        points, slope_u, slope_v = self.surfaces()
        normals = surface_normals(slope_u, slope_v)
        neighbours = nearest_neighbours(points, self._clouds)
        distance = signed_distances(points, normals, self._clouds, neighbours).abs()
        weight = self._clouds.weight
        # Every point in the frame counts, outliers too: a prediction must not win by rejecting points.
        capped = distance.clamp(max=_CAP_MM) * weight
        error = float(capped[validation].sum() / weight[validation].sum())
        spread = self._recipe.outlier_spread
        if spread is not None:
            present = torch.where(weight > 0.0, distance, torch.nan)
            # 1.48 median absolute deviations are one standard deviation of Gaussian distances.
            limit = spread * 1.48 * present.nanmedian(dim=1, keepdim=True).values
            self._used = replace(self._clouds, weight=weight * (distance <= limit))
            neighbours = nearest_neighbours(points, self._used)
        self._neighbours = neighbours
        if self._recipe.border_weight > 0.0 and len(self._border.index):
            line = BorderLine.of(self._border, points, slope_u, slope_v)
            self._border_neighbours = border_neighbours(line, self._used)
        if self._recipe.confidence == "seen":
            self._confidence = seen(points, normals, self._used, neighbours)
        elif self._recipe.confidence == "learned":
            along = normals if self._recipe.to_plane else None
            squared, _ = chamfer_parts(points, self._used, neighbours, along, self._recipe.tangential)
            fit_confidence(self.confidence, self._data.points, self._data.shape, squared, self._recipe)
            with torch.no_grad():
                self._confidence = self.confidence(self._data.points, self._data.shape)
        return error

    def loss(self, batch: Tensor) -> Tensor:
        """Eq. 12, mean over the frames of a batch."""
        data, recipe = self._data, self._recipe
        assert self._neighbours is not None
        clouds, neighbours = self._used.part(batch), self._neighbours.part(batch)
        amplitudes, gamma = self.warps(batch)
        predicted = data.basis[batch] @ gamma
        slope_u, slope_v = data.slope_u[batch] @ gamma, data.slope_v[batch] @ gamma
        normals = surface_normals(slope_u, slope_v)
        along = normals if recipe.to_plane else None
        forth, back = chamfer_parts(predicted, clouds, neighbours, along, recipe.tangential)
        loss = weighted_chamfer(forth, back, clouds.weight, self._confidence[batch])
        loss = loss + recipe.normal_weight * normal_compatibility(normals, clouds, neighbours)
        loss = self.regularised(loss, amplitudes, gamma, batch)
        shift = predicted - data.points[batch]
        slide = (shift - (shift * normals).sum(-1, keepdim=True) * normals).square().sum(-1)
        loss = loss + recipe.slide_weight * slide.mean(dim=1)
        if len(self._border.index):
            loss = loss + recipe.rim_slide_weight * slide[:, self._border.index].mean(dim=1)
        if self._border_neighbours is not None:
            line = BorderLine.of(self._border, predicted, slope_u, slope_v)
            misfit = border_misfit(line, clouds, self._border_neighbours.part(batch))
            loss = loss + recipe.border_weight * misfit
        return loss.mean()


def signed_distances(predicted: Tensor, normals: Tensor, clouds: Clouds, neighbours: Neighbours) -> Tensor:
    """Return distances (n, M) mm of captured points from the predicted surface, along the mean of both normals."""
    residual = clouds.points - gathered(predicted, neighbours.on_surface)
    between = mean_normals(clouds.normals, gathered(normals, neighbours.on_surface))
    return (residual * between).sum(-1)


def _judged(
    members: Sequence[Member[ScanProblem]], clouds: Clouds, simulated_normals: Tensor
) -> tuple[tuple[float, float], list[FrameFlag]]:
    """Return factor and floor of the members' spread, by frames not trained on, and what stands out.

    The residual of a frame on which every member was trained is that of the mean of all members.
    """
    surfaces = [member.problem.predicted() for member in members]
    points, normals = (torch.stack(part) for part in zip(*surfaces, strict=True))
    mean_points, mean_normals = points.mean(dim=0), torch.nn.functional.normalize(normals.mean(dim=0), dim=-1)
    spread = members_spread(points.numpy().astype(np.float64), mean_normals.numpy().astype(np.float64))
    residual = np.zeros(len(clouds.points))
    distances, spreads, noises = [], [], []
    left = np.setdiff1d(np.arange(len(residual)), np.concatenate([member.validation for member in members]))
    parts = [(m.validation, *surface) for m, surface in zip(members, surfaces, strict=True)]
    for number, (frames, surface, normal) in enumerate([*parts, (left, mean_points, mean_normals)]):
        chosen = torch.from_numpy(frames)
        part = clouds.part(chosen)
        neighbours = nearest_neighbours(surface[chosen], part)
        signed = signed_distances(surface[chosen], normal[chosen], part, neighbours).numpy().astype(np.float64)
        for place, frame in enumerate(frames):
            used = part.weight[place].numpy() > 0.0
            residual[frame] = np.minimum(np.abs(signed[place, used]), _CAP_MM).mean()
            if number == len(members):
                continue
            on_surface = neighbours.on_surface[place].numpy()[used]
            distances.append(signed[place, used])
            spreads.append(spread[frame][on_surface])
            noise = measurement_noise(part.points[place].numpy()[used], distances[-1])
            noises.append(np.full(len(distances[-1]), noise))
    calibration = calibrate(*(np.concatenate(values) for values in (distances, spreads, noises)))
    return calibration, residual_flags(residual) + fold_flags(mean_normals, simulated_normals)


_FRAMES, _SHARE = 8, 5
"""Frames of a step, and the step between the samples that each contributes."""
_TYPICAL = 0.5
"""Largest median of squared distances, as a share of omega_cr; larger ones are all scaled down to it."""
_AROUND = 2.8
"""Radius in median distances between the cloud's neighbours: of random points, one in 300 misses all others by more."""
_FAR = 4.0
"""Squared distances over omega_cr beyond which they are cut off (w = 0 from two on)."""


def seen(points: Tensor, normals: Tensor, clouds: Clouds, neighbours: Neighbours) -> Tensor:
    """Return 1 for predicted points (n, P, 3) mm that captured ones lie around, else 0; (n, P), no gradient.

    What counts is how far the nearest captured point lies aside, along the surface, over the spacing of the captured
    points. How far the surfaces are apart, which is what is being learned, says nothing about holes.
    """
    difference = gathered(clouds.points, neighbours.in_cloud) - points
    between = mean_normals(normals, gathered(clouds.normals, neighbours.in_cloud))
    aside = (difference - (difference * between).sum(-1, keepdim=True) * between).norm(dim=-1)
    frames = zip(clouds.points.cpu(), clouds.weight.cpu(), strict=True)
    spacing = torch.tensor([_spacing(*frame) for frame in frames]).to(points.device)
    return (aside < _AROUND * spacing[:, None]).float()


def _spacing(cloud: Tensor, weight: Tensor) -> float:
    used = cloud[weight > 0.0].numpy()
    return float(np.median(cKDTree(used).query(used, k=2)[0][:, 1]))


def fit_confidence(network: Confidence, points: Tensor, shape: Tensor, squared: Tensor, recipe: Recipe) -> None:
    """Take steps of Adam down Eq. 6 plus omega_cr Eq. 8 with the predicted surface held.

    Per point the minimum is w = 1 - d^2 / (2 omega) for means; N_conf smooths it over the surface and over shapes. As
    long as the surfaces do not fit yet, all distances are far above omega: w = 0 everywhere, from where the sigmoid
    has no gradient back. Distances are scaled so that the middle one never is.

    Args:
        network: N_conf.
        points: (n, P, 3) mm, simulated.
        shape: (n, r) normalised shapes.
        squared: (n, P) mm^2, from predicted points to captured ones.
        recipe: Steps, learning rate, weight.
    """
    omega = recipe.confidence_weight
    typical = _TYPICAL * omega
    squared = (squared * min(1.0, typical / max(float(squared.median()), 1e-12))).clamp(max=_FAR * omega)
    optimiser = torch.optim.Adam(network.parameters(), lr=recipe.confidence_rate)
    generator = torch.Generator().manual_seed(0)
    batches = [torch.randperm(len(shape), generator=generator)[:_FRAMES] for _ in range(recipe.confidence_steps)]
    shares = itertools.cycle(range(_SHARE))

    def loss_of(batch: Tensor) -> Tensor:
        some = slice(next(shares), None, _SHARE)
        confidence = network(points[batch, some], shape[batch])
        regularization = confidence_regularization(confidence, recipe.mean_confidence)
        if not recipe.mean_confidence:
            regularization = _SHARE * regularization
        return ((confidence * squared[batch, some]).mean(dim=1) + omega * regularization).mean()

    run_batches(optimiser, loss_of, batches, lambda _: recipe.confidence_rate)
