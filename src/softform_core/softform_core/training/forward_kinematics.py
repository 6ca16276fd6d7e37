"""Training of N_fk (paper 000, Eq. 14 and Sec. V-B1)."""

import hashlib
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from softform_core.errors import SoftformError
from softform_core.networks.forward_kinematics import ForwardKinematics
from softform_core.networks.layers import extract_mlp, perceptron
from softform_core.robots import Robot
from softform_core.training.checkpoint import load_checkpoint, remove_checkpoint, save_checkpoint
from softform_core.training.shapes import TrainingShapes
from softform_core.training.split import Split, split_shapes
from softform_core.training.symmetry import orbits, symmetric_images

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Recipe:
    """How N_fk is trained. Left open by the paper: optimiser (Adam here), batch size, input and output scales.

    Attributes:
        name: For logs and cards.
        epochs: Passes over the training shapes and their images.
        learning_rate: Of Adam; at the beginning, if it falls.
        batch_size: Shapes a step.
        batch_norm: As printed in the paper.
        cosine: Whether the learning rate falls to zero along a cosine.
        images: Whether the symmetric images of the training shapes are trained on, too.
        components: Principal components of the offsets that the network learns to predict, None for the offsets
            themselves. The last layer is linear, so both are the same network; components are faster.
        activation: Between the layers.
        hidden: Widths of the hidden layers.
        patience: Training stops after so many epochs without a better validation error.
    """

    name: str
    epochs: int
    learning_rate: float
    batch_size: int
    batch_norm: bool
    cosine: bool
    images: bool
    components: int | None
    activation: str = "relu"
    hidden: tuple[int, ...] = (128, 128)
    patience: int = 300


PAPER = Recipe("paper", 150, 1e-3, 32, batch_norm=True, cosine=False, images=False, components=None)
DEFAULT = Recipe("default", 2400, 3e-3, 128, batch_norm=False, cosine=True, images=True, components=256)
RECIPES = {recipe.name: recipe for recipe in (DEFAULT, PAPER)}

_CHECK_EPOCHS = 5
_CHECKPOINT_EPOCHS = 25


class DivergedError(SoftformError):
    """The loss is not a finite number any more."""


@dataclass(frozen=True)
class Trained:
    """A trained network with what a card says about it.

    Attributes:
        network: In evaluation mode, with the weights of the best epoch.
        split: Shapes of each part.
        errors: Distances (n, rows * cols) mm between predicted and true control points of all shapes.
        epochs: Epochs run.
        best_epoch: Epoch of least validation error.
        seconds: Time spent, interrupted runs included.
        threads: Processor threads used.
        images: Symmetric images of each training shape, itself included.
    """

    network: ForwardKinematics
    split: Split
    errors: Array
    epochs: int
    best_epoch: int
    seconds: float
    threads: int
    images: int


def train_forward_kinematics(
    robot: Robot, shapes: TrainingShapes, recipe: Recipe, seed: int, folder: Path, *, progress: bool = True
) -> Trained:
    """Train N_fk, or go on with an interrupted run of the same recipe, seed and shapes.

    Args:
        robot: Robot whose shapes they are.
        shapes: From `load_training_shapes`.
        recipe: One of `RECIPES`, or a variation.
        seed: Of the split, the first weights and the order of the batches.
        folder: Holds TensorBoard logs and the checkpoint; runs of different settings use folders of their own in it.
        progress: Whether to show a progress bar on stderr.

    Raises:
        DivergedError: If the loss is not finite; the last good state stays in the checkpoint.
        SoftformError: If the shapes hold NaN, or the checkpoint cannot be read or written.
    """
    if not (np.isfinite(shapes.actuation).all() and np.isfinite(shapes.control_points).all()):
        raise SoftformError("The training shapes hold NaN or infinity.", "Simulate them again.")
    split = split_shapes(orbits(robot, shapes.actuation), seed)
    actuation, control_points = shapes.actuation[split.train], shapes.control_points[split.train]
    images = symmetric_images(robot, actuation, control_points) if recipe.images else [(actuation, control_points)]
    targets = _Targets.of(np.concatenate([image for _, image in images]), recipe.components)
    run = _Run(robot, shapes, recipe, seed, folder / _run_name(shapes, recipe, seed), split, targets)
    with _threads() as threads:
        run.train(np.concatenate([image for image, _ in images]), targets.values, progress)
        network = run.network()
    predicted = extract_mlp(network).forward(shapes.actuation)
    errors = _distances(predicted, shapes.control_points)
    return Trained(network, split, errors, run.epoch, run.best_epoch, run.seconds, threads, len(images))


@dataclass(frozen=True)
class _Targets:
    """What the layers learn: values = (control points - mean) @ basis.T / scale, (n, outputs)."""

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
    """Orthonormal directions of largest variance, (at most count, m)."""
    variance, directions = np.linalg.eigh(offsets.T @ offsets)
    count = min(count, len(offsets), int((variance > 1e-12 * variance[-1]).sum()))
    return directions[:, ::-1][:, :count].T.copy()


class _Run:
    """One training run, whose state a checkpoint holds."""

    def __init__(
        self,
        robot: Robot,
        shapes: TrainingShapes,
        recipe: Recipe,
        seed: int,
        folder: Path,
        split: Split,
        targets: _Targets,
    ) -> None:
        self.robot, self.recipe, self.folder, self._targets = robot, recipe, folder, targets
        self._validation = shapes.actuation[split.validation], shapes.control_points[split.validation]
        self._generator = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._layers = perceptron(
                (robot.degrees_of_freedom, *recipe.hidden, targets.values.shape[1]),
                recipe.activation,
                recipe.batch_norm,
            )
        self._optimiser = torch.optim.Adam(self._layers.parameters(), lr=recipe.learning_rate)
        self.epoch, self.best_epoch, self.seconds = 0, 0, 0.0
        self._best_error = math.inf
        self._saved_epoch = 0
        self._best_layers = _copied(self._layers)

    def train(self, actuation: Array, values: Array, progress: bool) -> None:
        """Run epochs until the recipe or the patience is at its end."""
        x = self._normalised(actuation)
        y = torch.from_numpy(values).float()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._resume()
        self._save()
        begin = time.perf_counter() - self.seconds
        with (
            SummaryWriter(str(self.folder), purge_step=self.epoch + 1) as log,
            tqdm(total=self.recipe.epochs, initial=self.epoch, unit="epoch", disable=not progress) as bar,
        ):
            while self.epoch < self.recipe.epochs and self.epoch - self.best_epoch < self.recipe.patience:
                loss = self._run_epoch(x, y)
                if not math.isfinite(loss):
                    raise DivergedError(
                        f"The loss became {loss} in epoch {self.epoch + 1}; training cannot go on.",
                        f"The good state of epoch {self._saved_epoch} is kept in {self.folder}. Check the simulated "
                        "shapes; with a recipe of your own, lower its learning rate.",
                    )
                self.epoch += 1
                self.seconds = time.perf_counter() - begin
                log.add_scalar("loss/train", loss, self.epoch)
                if self.epoch % _CHECK_EPOCHS == 0 or self.epoch == self.recipe.epochs:
                    mean, largest = self._validate()
                    log.add_scalar("error_mm/validation_mean", mean, self.epoch)
                    log.add_scalar("error_mm/validation_max", largest, self.epoch)
                    bar.set_postfix_str(f"validation {mean:.3f} mm, largest {largest:.2f} mm", refresh=False)
                if self.epoch % _CHECKPOINT_EPOCHS == 0:
                    log.flush()  # first, so that a run that goes on from here finds its curves whole
                    self._save()
                bar.update()
        self._layers.load_state_dict(self._best_layers)

    def network(self) -> ForwardKinematics:
        """The layers between their normalisations, components folded into the last layer (exact)."""
        surface = self.robot.surface
        network = ForwardKinematics(
            torch.from_numpy(self.robot.actuation_min),
            torch.from_numpy(self.robot.actuation_max),
            torch.from_numpy(self._targets.mean).reshape(surface.rows, surface.columns, 3),
            self._targets.scale,
            self.recipe.hidden,
            self.recipe.activation,
            self.recipe.batch_norm,
        )
        state = self._layers.state_dict()
        if self._targets.basis is not None:
            basis = torch.from_numpy(self._targets.basis)
            last = f"{len(self._layers) - 1}."
            state[last + "weight"] = (basis.T @ state[last + "weight"].double()).float()
            state[last + "bias"] = (basis.T @ state[last + "bias"].double()).float()
        network.layers.load_state_dict(state)
        return network.eval()

    def _run_epoch(self, x: Tensor, y: Tensor) -> float:
        """One pass in random batches; mean loss."""
        batches = max(1, len(x) // self.recipe.batch_size)
        order = torch.randperm(len(x), generator=self._generator)
        total = 0.0
        self._layers.train()
        for step, batch in enumerate(order.tensor_split(batches)):
            if self.recipe.cosine:
                done = (self.epoch + step / batches) / self.recipe.epochs
                self._optimiser.param_groups[0]["lr"] = (
                    0.5 * self.recipe.learning_rate * (1.0 + math.cos(math.pi * done))
                )
            loss = (self._layers(x[batch]) - y[batch]).square().sum(dim=1).mean()
            self._optimiser.zero_grad(set_to_none=True)
            loss.backward()
            self._optimiser.step()
            total += loss.item()
        return total / batches

    def _validate(self) -> tuple[float, float]:
        """Mean and largest error on the validation part, mm; the best state is kept."""
        actuation, control_points = self._validation
        self._layers.eval()
        with torch.no_grad():
            values = self._layers(self._normalised(actuation)).double().numpy() * self._targets.scale
        if self._targets.basis is not None:
            values = values @ self._targets.basis
        errors = _distances(values + self._targets.mean, control_points)
        if errors.mean() < self._best_error:
            self._best_error, self.best_epoch = float(errors.mean()), self.epoch
            self._best_layers = _copied(self._layers)
        return float(errors.mean()), float(errors.max())

    def _normalised(self, actuation: Array) -> Tensor:
        lowest, highest = self.robot.actuation_min, self.robot.actuation_max
        return torch.from_numpy((2.0 * actuation - highest - lowest) / (highest - lowest)).float()

    def _save(self) -> None:
        state: dict[str, Any] = {
            "layers": self._layers.state_dict(),
            "optimiser": self._optimiser.state_dict(),
            "generator": self._generator.get_state(),
            "epoch": self.epoch,
            "seconds": self.seconds,
            "best_error": self._best_error,
            "best_epoch": self.best_epoch,
            "best_layers": self._best_layers,
        }
        save_checkpoint(self.folder, state)
        self._saved_epoch = self.epoch

    def _resume(self) -> None:
        state = load_checkpoint(self.folder)
        if state is None:
            return
        self._layers.load_state_dict(state["layers"])
        self._optimiser.load_state_dict(state["optimiser"])
        self._generator.set_state(state["generator"])
        self.epoch, self.seconds = state["epoch"], state["seconds"]
        self._best_error, self.best_epoch = state["best_error"], state["best_epoch"]
        self._best_layers = state["best_layers"]


def forget_run(shapes: TrainingShapes, recipe: Recipe, seed: int, folder: Path) -> None:
    """Remove the checkpoint of a run whose model has been saved, so that the next one begins anew."""
    remove_checkpoint(folder / _run_name(shapes, recipe, seed))


def _run_name(shapes: TrainingShapes, recipe: Recipe, seed: int) -> str:
    """A name that only runs of the same settings on the same shapes share."""
    digest = hashlib.sha256(repr((sorted(asdict(recipe).items()), seed)).encode())
    digest.update(np.ascontiguousarray(shapes.actuation).tobytes())
    digest.update(np.ascontiguousarray(shapes.control_points).tobytes())
    return f"{recipe.name}-{digest.hexdigest()[:12]}"


def _copied(layers: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in layers.state_dict().items()}


def _distances(predicted: Array, control_points: Array) -> Array:
    """(n, rows * cols) mm between control points given in any layout of the same order."""
    difference = predicted.reshape(len(control_points), -1, 3) - control_points.reshape(len(control_points), -1, 3)
    return np.linalg.norm(difference, axis=2)


@contextmanager
def _threads() -> Iterator[int]:
    """One thread: the network is so small that sharing a step between threads costs more than it saves."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield 1
    finally:
        torch.set_num_threads(before)
