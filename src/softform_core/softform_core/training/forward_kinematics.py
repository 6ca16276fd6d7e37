"""Training of N_fk (paper 000, Eq. 14 and Sec. V-B1)."""

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.networks.forward_kinematics import ForwardKinematics
from softform_core.networks.layers import perceptron
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.robots import Robot
from softform_core.threads import one_thread
from softform_core.torch_device import checked_device
from softform_core.training.loop import cosine, remove_checkpoint, run_batches, run_name, train
from softform_core.training.recipe import TrainingRecipe
from softform_core.training.shapes import TrainingShapes, orbits, symmetric_images
from softform_core.training.split import Split, split_shapes


@dataclass(frozen=True)
class ForwardKinematicsRecipe(TrainingRecipe):
    """Settings of N_fk's training. Left open by the paper: optimiser (Adam here), batch size, input and output scales.

    Attributes:
        batch_norm: Batch norm before each activation, as printed in the paper.
        cosine: Whether the learning rate falls to zero along a cosine.
        images: Whether the symmetric images of the training shapes are trained on, too.
        components: Principal components of the offsets that the network learns to predict, None for the offsets
            themselves. The last layer is linear, so both are the same network; components are faster.
        activation: Activation between the layers.
        hidden: Widths of the hidden layers.
    """

    batch_norm: bool
    cosine: bool
    images: bool
    components: int | None
    activation: str = "relu"
    hidden: tuple[int, ...] = (128, 128)


PAPER = ForwardKinematicsRecipe(
    "paper", 150, 300, 1e-3, 32, batch_norm=True, cosine=False, images=False, components=None
)
DEFAULT = ForwardKinematicsRecipe(
    "default", 2400, 300, 3e-3, 128, batch_norm=False, cosine=True, images=True, components=256
)
RECIPES = {recipe.name: recipe for recipe in (DEFAULT, PAPER)}

_VALIDATION_EPOCHS = 5


@dataclass(frozen=True)
class Trained:
    """A trained network with what a card says about it.

    Attributes:
        network: Network in evaluation mode, with the weights of the best epoch.
        split: Shapes of each part.
        errors: Distances (n, C) mm between predicted and true control points of all shapes.
        epochs: Epochs run.
        best_epoch: Epoch of least validation error.
        seconds: Time spent, interrupted runs included.
        images: Symmetric images of each training shape, itself included.
    """

    network: ForwardKinematics
    split: Split
    errors: Array
    epochs: int
    best_epoch: int
    seconds: float
    images: int


def train_forward_kinematics(
    robot: Robot,
    shapes: TrainingShapes,
    recipe: ForwardKinematicsRecipe,
    seed: int,
    folder: Path,
    *,
    device: str = "cpu",
    progress: bool = True,
) -> Trained:
    """Train N_fk, or go on with an interrupted run of the same recipe, seed and shapes.

    The seed decides the split, the first weights and the order of the batches. `folder` holds TensorBoard logs and the
    checkpoint; runs of different settings use folders of their own in it. On another `device` than the CPU the first
    weights and batches are the same, the rounding is not.

    Raises:
        DivergedError: If the loss is not finite; the last good state stays in the checkpoint.
        SoftformError: If the shapes hold NaN, PyTorch cannot compute on the device, or the checkpoint cannot be read or
            written.
    """
    if not (np.isfinite(shapes.actuation).all() and np.isfinite(shapes.control_points).all()):
        raise SoftformError("The training shapes hold NaN or infinity.", "Simulate them again.")
    split = split_shapes(orbits(robot, shapes.actuation), seed)
    actuation, control_points = shapes.actuation[split.train], shapes.control_points[split.train]
    images = symmetric_images(robot, actuation, control_points) if recipe.images else [(actuation, control_points)]
    targets = _Targets.of(np.concatenate([image for _, image in images]), recipe.components)
    inputs = np.concatenate([image for image, _ in images])
    task = _Regression(robot, shapes, recipe, seed, split, inputs, targets, checked_device(device))
    place = folder / _run_name(shapes, recipe, seed)
    with one_thread():
        done = train(
            task, "N_fk", place, epochs=recipe.epochs, patience=recipe.patience,
            validation_epochs=_VALIDATION_EPOCHS, progress=progress,
        )  # fmt: skip
        network = task.network()
    predicted = extract_mlp(network).forward(shapes.actuation)
    errors = _distances(predicted, shapes.control_points)
    return Trained(network, split, errors, done.epochs, done.best_epoch, done.seconds, len(images))


@dataclass(frozen=True)
class _Targets:
    """Scaled outputs of the network: values = (control points - mean) @ basis.T / scale, (n, outputs)."""

    mean: Array
    basis: Array | None
    scale: float
    values: Array

    @classmethod
    def of(cls, control_points: Array, components: int | None) -> "_Targets":
        flat = control_points.reshape(len(control_points), -1)
        mean = flat.mean(axis=0)
        offsets = flat - mean
        basis = None if components is None else _principal_components(offsets, components)
        values = offsets if basis is None else offsets @ basis.T
        scale = max(float(np.sqrt((values**2).mean(axis=0).max())), 1e-9)
        return cls(mean, basis, scale, values / scale)


def _principal_components(offsets: Array, count: int) -> Array:
    """Return orthonormal directions of largest variance, (at most count, m)."""
    variance, directions = np.linalg.eigh(offsets.T @ offsets)
    count = min(count, len(offsets), int((variance > 1e-12 * variance[-1]).sum()))
    return directions[:, ::-1][:, :count].T.copy()


class _Regression:
    """N_fk's layers learn the targets at actuations (n, m); the `Task` of the training loop."""

    def __init__(
        self,
        robot: Robot,
        shapes: TrainingShapes,
        recipe: ForwardKinematicsRecipe,
        seed: int,
        split: Split,
        actuation: Array,
        targets: _Targets,
        device: torch.device,
    ) -> None:
        self._robot, self._recipe, self._targets, self._device = robot, recipe, targets, device
        self._validation = shapes.actuation[split.validation], shapes.control_points[split.validation]
        self.generator = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.nets = perceptron(
                (robot.degrees_of_freedom, *recipe.hidden, targets.values.shape[1]),
                recipe.activation,
                recipe.batch_norm,
            ).to(device)
        self.optimiser = torch.optim.Adam(self.nets.parameters(), lr=recipe.learning_rate)
        self._y = torch.from_numpy(targets.values).float().to(device)
        self._x = self._normalised(actuation)

    def run_epoch(self, epoch: int) -> float:
        """Run one pass in random batches; returns the mean loss."""
        recipe = self._recipe
        order = torch.randperm(len(self._x), generator=self.generator)
        batches = order.tensor_split(max(1, len(self._x) // recipe.batch_size))
        self.nets.train()

        def rate(share: float) -> float:
            done = (epoch + share) / recipe.epochs
            return cosine(recipe.learning_rate, done) if recipe.cosine else recipe.learning_rate

        return run_batches(self.optimiser, self._loss, batches, rate)

    def validate(self) -> dict[str, float]:
        """Return the mean and largest error on the validation part, mm."""
        actuation, control_points = self._validation
        self.nets.eval()
        with torch.no_grad():
            values = self.nets(self._normalised(actuation)).double().cpu().numpy() * self._targets.scale
        if self._targets.basis is not None:
            values = values @ self._targets.basis
        errors = _distances(values + self._targets.mean, control_points)
        return {"error_mm/validation_mean": float(errors.mean()), "error_mm/validation_max": float(errors.max())}

    def network(self) -> ForwardKinematics:
        """Return the layers between their normalisations, components folded into the last layer (exact)."""
        network = ForwardKinematics(
            torch.from_numpy(self._robot.actuation_min),
            torch.from_numpy(self._robot.actuation_max),
            torch.from_numpy(self._targets.mean).reshape(-1, 3),
            self._targets.scale,
            self._recipe.hidden,
            self._recipe.activation,
            self._recipe.batch_norm,
        )
        state = {name: values.cpu() for name, values in self.nets.state_dict().items()}
        if self._targets.basis is not None:
            basis = torch.from_numpy(self._targets.basis)
            last = f"{len(self.nets) - 1}."
            state[last + "weight"] = (basis.T @ state[last + "weight"].double()).float()
            state[last + "bias"] = (basis.T @ state[last + "bias"].double()).float()
        network.layers.load_state_dict(state)
        return network.eval()

    def _loss(self, batch: Tensor) -> Tensor:
        return (self.nets(self._x[batch]) - self._y[batch]).square().sum(dim=1).mean()

    def _normalised(self, actuation: Array) -> Tensor:
        lowest, highest = self._robot.actuation_min, self._robot.actuation_max
        return torch.from_numpy((2.0 * actuation - highest - lowest) / (highest - lowest)).float().to(self._device)


def forget_run(shapes: TrainingShapes, recipe: ForwardKinematicsRecipe, seed: int, folder: Path) -> None:
    """Remove the checkpoint of a run whose model has been saved, so that the next one begins anew."""
    remove_checkpoint(folder / _run_name(shapes, recipe, seed))


def _run_name(shapes: TrainingShapes, recipe: ForwardKinematicsRecipe, seed: int) -> str:
    arrays = shapes.actuation, shapes.control_points
    return run_name(recipe.name, (sorted(asdict(recipe).items()), seed), arrays)


def _distances(predicted: Array, control_points: Array) -> Array:
    """Return distances (n, C) mm between control points given in any layout of the same order."""
    difference = predicted.reshape(len(control_points), -1, 3) - control_points.reshape(len(control_points), -1, 3)
    return np.linalg.norm(difference, axis=2)
