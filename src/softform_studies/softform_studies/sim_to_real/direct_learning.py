"""Direct learning, the paper's baseline: from actuation straight to sample points (paper 000, Sec. V-C1, Eqs. 18-20).

A perceptron of 2 x 128 neurons predicts 200 points of the deformed surface; the surface itself follows by RBF-based
deformation with these points as handles. As printed there is no simulation in it, no confidence and no normals.

Left open by the paper: the points start as a grid on the mean simulated shape, so that point i keeps its (u, v) and the
deformation of the surface is defined; the kernel of the deformation is the biharmonic |r| of three dimensions; the
epoch is chosen by a fifth of the frames.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.interpolate import RBFInterpolator
from torch import Tensor, nn

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.frames.frames import Frames
from softform_core.networks.layers import perceptron
from softform_core.networks.mlp_weights import MlpWeights
from softform_core.surface.patch_set import PatchSet
from softform_core.training.ensemble import TrainingRun
from softform_core.training.loop import cosine, run_batches, train
from softform_core.training.sim_to_real_losses import Clouds, gathered, nearest_neighbours
from softform_core.units import MM_PER_M

CHAMFER_WEIGHT = 5.0
"""Weight of the Chamfer distance in Eq. 20."""

_HANDLES = (20, 10)
"""Rows and columns of handles, on an even grid that reaches the rim; the paper has 200 points, too."""

_EQUAL_DIGITS = 3
"""Digits of a mm to which the places of two handles must differ."""

_OUTPUT_SCALE_MM = 10.0
_EPOCH_STEPS = 50


@dataclass(frozen=True)
class DirectRecipe:
    """Settings of the direct network's training.

    Attributes:
        hidden: Widths of its hidden layers.
        steps: Steps of the optimiser, whatever the number of frames.
        learning_rate: Learning rate of Adam; falls to zero along a cosine.
        batch_size: Frames a step.
        folds: Number of parts of the frames, one of which chooses the weights that are kept.
    """

    hidden: tuple[int, ...] = (128, 128)
    steps: int = 1000
    learning_rate: float = 1e-3
    batch_size: int = 8
    folds: int = 5


AS_PRINTED = DirectRecipe()


@dataclass(frozen=True)
class DirectLearning:
    """A trained direct network.

    Attributes:
        network: Normalised actuation -> offsets of the handles, in units of the output scale.
        actuation_offset: (k,) Pa.
        actuation_scale: (k,) Pa.
        mean_shape: (C, 3) mm, control points of the shape that the handles deform.
        patches: Patches that the control points belong to.
        handle_uv: (H, 2), each at a place of its own.
        seconds: Time spent.
    """

    network: nn.Module
    actuation_offset: Array
    actuation_scale: Array
    mean_shape: Array
    patches: PatchSet
    handle_uv: Array
    seconds: float

    def handles(self, actuation: Array) -> Array:
        """Return the 200 predicted points, (n, k) Pa -> (n, H, 3) mm."""
        start = self.patches.evaluate(self.mean_shape, self.handle_uv)
        inputs = torch.from_numpy((actuation - self.actuation_offset) / self.actuation_scale).float()
        with torch.no_grad():
            offsets: Tensor = self.network(inputs).reshape(len(inputs), -1, 3)
        return start + _OUTPUT_SCALE_MM * offsets.double().numpy()

    def points(self, actuation: Array, uv: Array) -> Array:
        """Return the surface (n, P, 3) mm at (P, 2) under (n, k) Pa, deformed to follow the predicted points."""
        source = self.patches.evaluate(self.mean_shape, self.handle_uv)
        surface = self.patches.evaluate(self.mean_shape, uv)
        moved = self.handles(actuation) - source
        columns = moved.transpose(1, 0, 2).reshape(len(source), -1)
        deformation = RBFInterpolator(source, columns, kernel="linear", degree=0)(surface)
        return surface + deformation.reshape(len(surface), len(actuation), 3).transpose(1, 0, 2)


def hausdorff(clouds: Clouds, forth: Tensor, back: Tensor) -> Tensor:
    """Return the Hausdorff distance (Eq. 18), (n,) mm, from squared distances to nearest neighbours, mm^2.

    Those are of each predicted point from its nearest captured one, (n, P), and back, (n, M).
    """
    largest = torch.maximum(forth.amax(dim=1), torch.where(clouds.weight > 0.0, back, 0.0).amax(dim=1))
    return (largest + 1e-12).sqrt()


def chamfer(clouds: Clouds, forth: Tensor, back: Tensor) -> Tensor:
    """Return the Chamfer distance (Eq. 19), arguments as for `hausdorff`; (n,) mm^2."""
    return forth.mean(dim=1) + (clouds.weight * back).sum(dim=1) / clouds.weight.sum(dim=1)


def direct_loss(predicted: Tensor, clouds: Clouds) -> Tensor:
    """Eq. 20, D_Haus + 5 D_Cham, of predicted points (n, P, 3) mm; (n,), the one in mm, the other in mm^2."""
    neighbours = nearest_neighbours(predicted, clouds)
    forth = (predicted - gathered(clouds.points, neighbours.in_cloud)).square().sum(-1)
    back = (clouds.points - gathered(predicted, neighbours.on_surface)).square().sum(-1)
    return hausdorff(clouds, forth, back) + CHAMFER_WEIGHT * chamfer(clouds, forth, back)


def train_direct(
    forward_kinematics: MlpWeights, frames: Frames, recipe: DirectRecipe = AS_PRINTED, run: TrainingRun | None = None
) -> DirectLearning:
    """Train the direct network; of N_fk only the mean shape and the working range are used.

    Args:
        forward_kinematics: N_fk of the robot.
        frames: Captured frames.
        recipe: Settings.
        run: Seed and patches, one; None for the defaults. It keeps no checkpoint and begins anew.

    Raises:
        SoftformError: If there are fewer frames than folds, or training diverges.
    """
    if len(frames) < recipe.folds:
        raise SoftformError(f"{len(frames)} frames cannot be split into {recipe.folds} folds.", "Capture more frames.")
    run = run or TrainingRun()
    _ = run.patches.only
    lines = [np.linspace(0.0, 1.0, count) for count in _HANDLES]
    handle_uv = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 2)
    offset, scale = forward_kinematics.input_offset, forward_kinematics.input_scale
    mean_shape = forward_kinematics.output_offset.reshape(-1, 3)
    places = np.round(run.patches.evaluate(mean_shape, handle_uv), _EQUAL_DIGITS)
    handle_uv = handle_uv[np.sort(np.unique(places, axis=0, return_index=True)[1])]  # both sides of a seam are one
    start = torch.from_numpy(run.patches.evaluate(mean_shape, handle_uv)).float()
    inputs = torch.from_numpy((frames.actuation - offset) / scale).float()
    clouds = Clouds.of([MM_PER_M * cloud for cloud in frames.clouds], frames.normals)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        network = perceptron((inputs.shape[1], *recipe.hidden, 3 * len(handle_uv)))

    def loss_of(chosen: Tensor) -> Tensor:
        predicted = start + _OUTPUT_SCALE_MM * network(inputs[chosen]).reshape(len(chosen), -1, 3)
        return direct_loss(predicted, clouds.part(chosen)).mean()

    epochs = -(-recipe.steps // _EPOCH_STEPS)
    task = _DirectTask(network, loss_of, len(frames), recipe, run.seed)
    done = train(task, "direct learning", epochs=epochs, patience=epochs, progress=run.progress)
    return DirectLearning(network, offset, scale, mean_shape, run.patches, handle_uv, done.seconds)


class _DirectTask:
    """The `Task` of the training loop: an epoch is `_EPOCH_STEPS` random batches of frame numbers."""

    def __init__(
        self, network: nn.Module, loss_of: Callable[[Tensor], Tensor], frames: int, recipe: DirectRecipe, seed: int
    ) -> None:
        self.nets, self._loss_of, self._recipe = network, loss_of, recipe
        self.generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(frames, generator=self.generator)
        self._held, self._training = order[: frames // recipe.folds], order[frames // recipe.folds :]
        self.optimiser = torch.optim.Adam(network.parameters(), lr=recipe.learning_rate)

    def run_epoch(self, epoch: int) -> float:
        """Run random batches; returns the mean loss of the steps."""
        recipe, begun = self._recipe, epoch * _EPOCH_STEPS
        batches = [
            self._training[torch.randperm(len(self._training), generator=self.generator)[: recipe.batch_size]]
            for _ in range(min(_EPOCH_STEPS, recipe.steps - begun))
        ]

        def rate(share: float) -> float:
            return cosine(recipe.learning_rate, (begun + share * len(batches)) / recipe.steps)

        return run_batches(self.optimiser, self._loss_of, batches, rate)

    def validate(self) -> dict[str, float]:
        """Eq. 20 on the frames that are held out."""
        with torch.no_grad():
            return {"validation": float(self._loss_of(self._held))}
