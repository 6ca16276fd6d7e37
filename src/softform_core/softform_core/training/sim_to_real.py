"""Training of N_rbf and N_conf on captured frames without correspondences (paper 000, Secs. II-C and III).

What the paper prints and what works. `paper` keeps the printed recipe: all control points as the input, Gaussians of
c = 3e-5 / mm^2, point-to-point Chamfer distances, sums in Eqs. 8 and 9, weights 12.0, 0.5, 1.5e-4. Only the identity
start is ours, without which it diverges. `default` differs where the printed form does not work:

- Eq. 8 as a sum over 1000 points outweighs Eq. 6, which is a mean: the confidence stays 1 and no hole is found. With a
  mean, w = 1 - d^2 / (2 omega) where it is at its best.
- Point-to-point distances to sparse samples have a floor of tens of mm^2 along the surface. Distances are taken along
  the mean of both normals, plus a small share of the full ones, from which the confidence learns where points are
  missing; omega_cr goes down with that share.
- c = 3e-5 is ill-conditioned. Narrower Gaussians and a singular-value decomposition of the warp (`stable_directions`,
  Eq. 10 built in) with a penalty on the amplitudes take the place of L_gr; its printed weight, on squared moments in
  mm^2 that grow with the size of the robot, seemed to keep the warp from fitting (lowered together with a
  larger amplitude penalty, not tried apart).
- Distances along normals do not see points slide along the surface, past the rim above all; a penalty holds them.
- The 2700 control points over-fit 40 frames; their first principal components do not.
- Captured points far outside the spread of their frame's distances are outliers, left out.
- An ensemble, each member stopped by another fold of the frames; the mean of its members is one perceptron.
"""

import hashlib
import math
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from tqdm import tqdm

from softform_core.errors import SoftformError
from softform_core.kinematics.pipeline import grid_uv
from softform_core.kinematics.rbf_warp import KERNEL_WIDTH, SimToReal
from softform_core.networks.layers import MlpWeights
from softform_core.networks.sim_to_real import (
    Confidence,
    FunctionPrediction,
    ShapeInput,
    mean_of,
    stable_directions,
    warp_basis,
    warp_basis_slope,
)
from softform_core.surface.bspline import basis_matrix, derivative_matrices
from softform_core.training.checkpoint import load_checkpoint, remove_checkpoint, save_checkpoint
from softform_core.training.frames import Frames
from softform_core.training.sim_to_real_losses import (
    Clouds,
    Neighbours,
    confidence_regularization,
    gathered,
    geometric_regularization,
    mean_normals,
    nearest_neighbours,
    normal_compatibility,
    surface_normals,
    weighted_chamfer,
)
from softform_core.units import MM_PER_M

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Recipe:
    """How N_rbf and N_conf are trained.

    Attributes:
        name: For logs and cards.
        epochs: At most; passes over the training frames.
        patience: Training stops after so many epochs without a better validation error.
        learning_rate: Of AdamW; falls to zero along a cosine.
        weight_decay: Of AdamW.
        batch_size: Frames a step.
        refresh: Epochs between searches for nearest neighbours.
        kernels: N, a square number; centers on an even grid of parameters.
        kernel_width: c of Eq. 2, 1/mm^2.
        surface_points: Samples of the predicted surface.
        components: Principal components of the control points that enter the networks, None for all control points.
        hidden: Widths of N_rbf's hidden layers.
        activation: Between them.
        smallest_direction: See `stable_directions`; None for gamma itself.
        to_plane: Distances along the mean of captured and predicted normals, instead of full ones.
        tangential: Share of the full squared distance added to them.
        mean_confidence: Eq. 8 with a mean over the points.
        outlier_spread: Captured points further than so many robust standard deviations are left out; None keeps all.
        confidence_weight: omega_cr of Eq. 12.
        normal_weight: omega_nc.
        geometric_weight: omega_gr.
        amplitude_weight: Of the mean squared amplitude along the stable directions.
        slide_weight: Of the mean squared displacement along the surface.
        members: Of the ensemble.
        folds: Each member is stopped by one of so many parts of the frames.
        fixed_confidence: w_c = 1, the paper's baseline.
    """

    name: str
    epochs: int
    patience: int
    learning_rate: float
    weight_decay: float
    batch_size: int
    refresh: int
    kernels: int
    kernel_width: float
    surface_points: int
    components: int | None
    hidden: tuple[int, ...]
    activation: str
    smallest_direction: float | None
    to_plane: bool
    tangential: float
    mean_confidence: bool
    outlier_spread: float | None
    confidence_weight: float = 12.0
    normal_weight: float = 0.5
    geometric_weight: float = 1.5e-4
    amplitude_weight: float = 0.0
    slide_weight: float = 0.0
    members: int = 1
    folds: int = 5
    fixed_confidence: bool = False


PAPER = Recipe(
    name="paper",
    epochs=300,
    patience=300,
    learning_rate=1e-3,
    weight_decay=0.0,
    batch_size=8,
    refresh=1,
    kernels=100,
    kernel_width=KERNEL_WIDTH,
    surface_points=1000,
    components=None,
    hidden=(24, 24),
    activation="relu",
    smallest_direction=None,
    to_plane=False,
    tangential=0.0,
    mean_confidence=False,
    outlier_spread=None,
)
DEFAULT = replace(
    PAPER,
    name="default",
    epochs=80,
    patience=80,
    learning_rate=1e-2,
    weight_decay=2.0,
    refresh=5,
    kernel_width=3e-4,
    components=9,
    hidden=(64, 64),
    activation="tanh",
    smallest_direction=1e-3,
    to_plane=True,
    tangential=0.005,
    mean_confidence=True,
    outlier_spread=4.0,
    confidence_weight=1.2,
    geometric_weight=1e-6,
    amplitude_weight=1.0,
    slide_weight=0.03,
    members=4,
)
RECIPES = {recipe.name: recipe for recipe in (DEFAULT, PAPER)}

_TYPICAL_SHAPES = 512
_CHECKPOINT_EPOCHS = 25


@dataclass(frozen=True)
class TrainedSimToReal:
    """A trained sim-to-real transfer.

    Attributes:
        sim_to_real: The mean of the ensemble, for the pipelines of kinematics.
        members: Each member; their spread tells how sure the prediction is.
        confidence: N_conf of each member.
        shape_input: How control points enter N_conf.
        validation_mm: Mean distance of captured points to the predicted surface in each member's validation frames.
        best_epochs: Epoch of each member's weights.
        seconds: Time spent, interrupted runs included.
    """

    sim_to_real: SimToReal
    members: list[SimToReal]
    confidence: list[Confidence]
    shape_input: ShapeInput
    validation_mm: list[float]
    best_epochs: list[int]
    seconds: float


def train_sim_to_real(
    forward_kinematics: MlpWeights,
    frames: Frames,
    recipe: Recipe = DEFAULT,
    seed: int = 0,
    rows: int = 30,
    cols: int = 30,
    degree: int = 3,
    folder: Path | None = None,
    progress: bool = False,
) -> TrainedSimToReal:
    """Train N_rbf and N_conf; N_fk stays as it is.

    Args:
        forward_kinematics: N_fk of the robot, from `extract_mlp`.
        frames: Captured frames, at least as many as the recipe's folds.
        recipe: Settings.
        seed: Of the folds, the first weights and the batches.
        rows: Control points along u.
        cols: Control points along v.
        degree: Of the B-spline.
        folder: Where a checkpoint is kept, from which the same call goes on after an interruption; None for none.
        progress: Show a progress bar.

    Raises:
        SoftformError: If frames and N_fk do not fit together, there are too few frames, or training diverges.
    """
    if len(frames) < max(2, recipe.folds):
        raise SoftformError(f"{len(frames)} frames cannot be split into {recipe.folds} folds.", "Capture more frames.")
    if frames.actuation.shape[1] != len(forward_kinematics.input_offset):
        raise SoftformError(
            f"The frames have {frames.actuation.shape[1]} pressures, N_fk takes "
            f"{len(forward_kinematics.input_offset)}.",
            "Use frames of the robot that N_fk was trained for.",
        )
    data = _Data(forward_kinematics, frames, recipe, (rows, cols, degree))
    folds = np.random.default_rng(seed).permutation(len(frames)) % recipe.folds
    members, nets, confidences, errors, epochs, seconds = [], [], [], [], [], 0.0
    for number in range(recipe.members):
        member_folder = None if folder is None else folder / f"{_run_name(frames, recipe, seed)}-{number}"
        run = _Run(data, recipe, seed + 1000 * number, folds == number % recipe.folds, member_folder)
        run.train(f"member {number + 1} of {recipe.members}", progress)
        nets.append(run.network.weights(data.shape_input))
        members.append(SimToReal(data.kernel_uv, nets[-1], recipe.kernel_width))
        confidences.append(run.confidence)
        errors.append(run.best_error)
        epochs.append(run.best_epoch)
        seconds += run.seconds
    if folder is not None:
        for number in range(recipe.members):
            remove_checkpoint(folder / f"{_run_name(frames, recipe, seed)}-{number}")
    whole = SimToReal(data.kernel_uv, mean_of(nets), recipe.kernel_width)
    return TrainedSimToReal(whole, members, confidences, data.shape_input, errors, epochs, seconds)


class _Data:
    """What does not change in training: N_fk is frozen, so simulated shapes and kernels are evaluated once."""

    def __init__(
        self, forward_kinematics: MlpWeights, frames: Frames, recipe: Recipe, surface: tuple[int, int, int]
    ) -> None:
        side = math.isqrt(recipe.kernels)
        if side**2 != recipe.kernels:
            raise SoftformError(f"{recipe.kernels} kernels form no square grid.", "Use 25, 36, 64, 100, ...")
        # Centers in the middle of equal cells: kernels at the fixed rim would have little to do.
        line = (np.arange(side) + 0.5) / side
        self.kernel_uv = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
        uv = grid_uv(recipe.surface_points)
        control = forward_kinematics.forward(frames.actuation)
        typical = forward_kinematics.forward(_typical_actuations(forward_kinematics))
        if control.shape[1] != surface[0] * surface[1] * 3:
            raise SoftformError(
                f"N_fk gives {control.shape[1]} numbers, not {surface[0]} x {surface[1]} control points.",
                "Use the surface that N_fk was trained for.",
            )
        self.shape_input = ShapeInput.of(typical, recipe.components)
        decoders = (basis_matrix(uv, *surface), *derivative_matrices(uv, *surface))
        points, along_u, along_v = (_decoded(decoder, control) for decoder in decoders)
        center_decoder = basis_matrix(self.kernel_uv, *surface)
        self.points, self.centers = points.float(), _decoded(center_decoder, control).float()
        centers = _decoded(center_decoder, control)
        width = recipe.kernel_width
        self.basis = warp_basis(points, centers, width).float()
        self.slope_u = warp_basis_slope(points, along_u, centers, width).float()
        self.slope_v = warp_basis_slope(points, along_v, centers, width).float()
        self.shape = torch.from_numpy(self.shape_input.normalised(control)).float()
        self.clouds = Clouds.of([MM_PER_M * cloud for cloud in frames.clouds], frames.normals)
        self.point_scale = float(self.points.std())
        if recipe.smallest_direction is None:
            self.directions = np.eye(recipe.kernels + 4)
        else:
            mean = self.shape_input.mean[None]
            mean_points, mean_centers = _decoded(decoders[0], mean), _decoded(center_decoder, mean)
            mean_basis = warp_basis(mean_points, mean_centers, width)[0].numpy()
            self.directions = stable_directions(mean_basis, mean_centers[0].numpy(), recipe.smallest_direction)


def _decoded(decoder: Any, control_points: Array) -> Tensor:
    """Eq. 1 for control points (n, rows * cols * 3): (n, P, 3)."""
    return torch.from_numpy(np.stack([decoder @ shape.reshape(-1, 3) for shape in control_points]))


def _typical_actuations(forward_kinematics: MlpWeights) -> Array:
    """Random pressures of N_fk's working range: what a robot can look like, whatever the frames happen to show."""
    relative = np.random.default_rng(0).uniform(-1.0, 1.0, (_TYPICAL_SHAPES, len(forward_kinematics.input_offset)))
    return forward_kinematics.input_offset + relative * forward_kinematics.input_scale


class _Run:
    """Training of one member, whose state a checkpoint holds."""

    def __init__(
        self, data: _Data, recipe: Recipe, seed: int, validation: NDArray[np.bool_], folder: Path | None
    ) -> None:
        self._data, self._recipe, self._folder = data, recipe, folder
        self._training, self._validation = (
            torch.from_numpy(np.flatnonzero(part)) for part in (~validation, validation)
        )
        self._generator = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = FunctionPrediction(data.shape.shape[1], data.directions, recipe.hidden, recipe.activation)
            self.confidence = Confidence(data.shape.shape[1], data.point_scale)
        self._nets = nn.ModuleList([self.network, self.confidence])
        self._optimiser = torch.optim.AdamW(
            self._nets.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
        )
        self.epoch, self.best_epoch, self.best_error, self.seconds = 0, 0, math.inf, 0.0
        self._best: dict[str, Tensor] = _copied(self._nets)
        self._clouds = data.clouds
        self._neighbours: Neighbours | None = None

    def train(self, title: str, progress: bool) -> None:
        """Run epochs until the recipe or the patience is at its end."""
        recipe = self._recipe
        self._resume()
        begin = time.perf_counter() - self.seconds
        with tqdm(total=recipe.epochs, initial=self.epoch, unit="epoch", desc=title, disable=not progress) as bar:
            while self.epoch < recipe.epochs and self.epoch - self.best_epoch < recipe.patience:
                if self._neighbours is None or self.epoch % recipe.refresh == 0:
                    self._refresh()
                loss = self._run_epoch()
                if not math.isfinite(loss):
                    raise SoftformError(
                        f"The loss became {loss} in epoch {self.epoch + 1}.",
                        "Check the frames; with a recipe of your own, lower its learning rate.",
                    )
                self.epoch += 1
                self.seconds = time.perf_counter() - begin
                if self.epoch % _CHECKPOINT_EPOCHS == 0:
                    self._save()
                bar.set_postfix_str(f"loss {loss:.3f}, validation {self.best_error:.3f} mm", refresh=False)
                bar.update()
            self._refresh()
        self._nets.load_state_dict(self._best)

    def _refresh(self) -> None:
        """Nearest neighbours and outliers of all frames; validation of the weights as they are."""
        data = self._data
        with torch.no_grad():
            gamma = self.network(data.shape)
            predicted = data.basis @ gamma
            normals = surface_normals(data.slope_u @ gamma, data.slope_v @ gamma)
        neighbours = nearest_neighbours(predicted, data.clouds)
        residual = data.clouds.points - gathered(predicted, neighbours.on_surface)
        between = mean_normals(data.clouds.normals, gathered(normals, neighbours.on_surface))
        distance = (residual * between).sum(-1).abs()
        weight = data.clouds.weight
        spread = self._recipe.outlier_spread
        if spread is not None:
            present = torch.where(weight > 0.0, distance, torch.nan)
            # 1.48 median absolute deviations are one standard deviation of Gaussian distances.
            limit = spread * 1.48 * present.nanmedian(dim=1, keepdim=True).values
            weight = weight * (distance <= limit)
        chosen = self._validation
        # Every point in the frame counts, outliers too, up to 10 mm: a prediction must not win by rejecting points.
        capped = distance.clamp(max=10.0) * data.clouds.weight
        error = float(capped[chosen].sum() / data.clouds.weight[chosen].sum())
        if error < self.best_error:
            self.best_error, self.best_epoch, self._best = error, self.epoch, _copied(self._nets)
        self._clouds = replace(data.clouds, weight=weight)
        self._neighbours = nearest_neighbours(predicted, self._clouds) if spread is not None else neighbours

    def _run_epoch(self) -> float:
        """One pass over the training frames in random batches; mean loss."""
        recipe = self._recipe
        order = self._training[torch.randperm(len(self._training), generator=self._generator)]
        batches = order.tensor_split(max(1, round(len(order) / recipe.batch_size)))
        total = 0.0
        for step, batch in enumerate(batches):
            done = (self.epoch + step / len(batches)) / recipe.epochs
            self._optimiser.param_groups[0]["lr"] = 0.5 * recipe.learning_rate * (1.0 + math.cos(math.pi * done))
            loss = self._loss(batch)
            self._optimiser.zero_grad(set_to_none=True)
            loss.backward()
            self._optimiser.step()
            total += loss.item()
        return total / len(batches)

    def _loss(self, batch: Tensor) -> Tensor:
        """Eq. 12, mean over the frames of a batch."""
        data, recipe = self._data, self._recipe
        assert self._neighbours is not None
        clouds, neighbours = self._clouds.part(batch), self._neighbours.part(batch)
        amplitudes = self.network.amplitudes(data.shape[batch])
        gamma = self.network.identity + self.network.directions @ amplitudes
        predicted = data.basis[batch] @ gamma
        if recipe.fixed_confidence:
            confidence = torch.ones(predicted.shape[:2])
        else:
            confidence = self.confidence(data.points[batch], data.shape[batch])
        normals = surface_normals(data.slope_u[batch] @ gamma, data.slope_v[batch] @ gamma)
        along = normals if recipe.to_plane else None
        loss = weighted_chamfer(predicted, clouds, neighbours, confidence, along, recipe.tangential)
        loss = loss + recipe.confidence_weight * confidence_regularization(confidence, recipe.mean_confidence)
        loss = loss + recipe.normal_weight * normal_compatibility(normals, clouds, neighbours)
        loss = loss + recipe.geometric_weight * geometric_regularization(gamma, data.centers[batch])
        shift = predicted - data.points[batch]
        slide = shift - (shift * normals).sum(-1, keepdim=True) * normals
        loss = loss + recipe.slide_weight * slide.square().sum(-1).mean(dim=1)
        loss = loss + recipe.amplitude_weight * amplitudes.square().mean(dim=(1, 2))
        return loss.mean()

    def _save(self) -> None:
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        state: dict[str, Any] = {
            "nets": self._nets.state_dict(),
            "optimiser": self._optimiser.state_dict(),
            "generator": self._generator.get_state(),
            "epoch": self.epoch,
            "seconds": self.seconds,
            "best_error": self.best_error,
            "best_epoch": self.best_epoch,
            "best": self._best,
        }
        save_checkpoint(self._folder, state)

    def _resume(self) -> None:
        state = None if self._folder is None else load_checkpoint(self._folder)
        if state is None:
            return
        self._nets.load_state_dict(state["nets"])
        self._optimiser.load_state_dict(state["optimiser"])
        self._generator.set_state(state["generator"])
        self.epoch, self.seconds = state["epoch"], state["seconds"]
        self.best_error, self.best_epoch, self._best = state["best_error"], state["best_epoch"], state["best"]


def _run_name(frames: Frames, recipe: Recipe, seed: int) -> str:
    """A name that only runs of the same settings on the same frames share."""
    digest = hashlib.sha256(repr((sorted(asdict(recipe).items()), seed)).encode())
    for part in (frames.actuation, *frames.clouds, *frames.normals):
        digest.update(np.ascontiguousarray(part).tobytes())
    return f"{recipe.name}-{digest.hexdigest()[:12]}"


def _copied(nets: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in nets.state_dict().items()}
