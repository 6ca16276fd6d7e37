"""The training loop of all networks: epochs, validation, early stop, checkpoints, curves and a progress bar."""

import hashlib
import io
import math
import pickle
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from tqdm import tqdm

from softform_core.errors import SoftformError
from softform_core.files import write_atomically

_CHECKPOINT_EPOCHS = 25
CHECKPOINT_FILE = "checkpoint.pt"
FINISHED_FILE = "finished.pt"
"""File of a network that was trained to its end, while others of the same run were not."""


class DivergedError(SoftformError):
    """The loss is not a finite number any more."""


class Task(Protocol):
    """A network to be trained, with its data."""

    @property
    def nets(self) -> nn.Module:
        """All networks whose weights change."""

    @property
    def optimiser(self) -> torch.optim.Optimizer:
        """Optimiser of the weights."""

    @property
    def generator(self) -> torch.Generator:
        """Random generator of the order of the batches."""

    def run_epoch(self, epoch: int) -> float:
        """Take the steps of one epoch; mean loss."""

    def validate(self) -> dict[str, float]:
        """Return errors of the weights as they are; the first decides which weights are kept."""


@dataclass(frozen=True)
class Outcome:
    """Result of training.

    Attributes:
        epochs: Number of epochs that were run.
        best_epoch: Epoch of the weights that the networks have now.
        best_error: Validation error of these weights.
        seconds: Duration of the training, interrupted runs included.
    """

    epochs: int
    best_epoch: int
    best_error: float
    seconds: float


def train(
    task: Task,
    title: str,
    folder: Path | None = None,
    *,
    epochs: int,
    patience: int,
    validation_epochs: int = 1,
    progress: bool = True,
    keeps_best: bool = True,
) -> Outcome:
    """Train until the epochs or the patience are at their end.

    Args:
        task: Task with its networks in their initial state.
        title: Title of the progress bar.
        folder: Holds TensorBoard logs and the checkpoint, from which an interrupted run goes on; None keeps neither.
        epochs: Largest number of epochs.
        patience: Training stops after so many epochs without a better validation error.
        validation_epochs: Epochs between validations.
        progress: Whether to show a progress bar on stderr.
        keeps_best: Whether the networks end with the weights of the least validation error, not with the last.

    Raises:
        DivergedError: If the loss is not finite; the last good state stays in the checkpoint.
        SoftformError: If the checkpoint cannot be read or written.
    """
    state = _State(task, folder)
    state.resume()
    state.save()
    begin = time.perf_counter() - state.seconds
    errors = state.validate()
    with (
        _curves(folder, state.epoch) as log,
        tqdm(total=epochs, initial=state.epoch, unit="epoch", desc=title, disable=not progress) as bar,
    ):
        while state.epoch < epochs and state.epoch - state.best_epoch < patience:
            loss = task.run_epoch(state.epoch)
            if not math.isfinite(loss):
                kept = f"The good state of epoch {state.saved_epoch} is kept in {folder}. " if folder else ""
                raise DivergedError(
                    f"{title}: the loss became {loss} in epoch {state.epoch + 1}; training cannot go on.",
                    f"{kept}Check the data; with a recipe of your own, lower its learning rate.",
                )
            state.epoch += 1
            state.seconds = time.perf_counter() - begin
            if log is not None:
                log.add_scalar("loss/train", loss, state.epoch)
            if state.epoch % _CHECKPOINT_EPOCHS == 0:
                if log is not None:
                    log.flush()  # first, so that a run that goes on from here finds its curves whole
                state.save()
            if state.epoch % validation_epochs == 0 or state.epoch == epochs:
                errors = state.validate()
                for name, error in errors.items() if log is not None else ():
                    log.add_scalar(name, error, state.epoch)
            shown = ", ".join(f"{name.rpartition('/')[2]} {error:.3g}" for name, error in errors.items())
            bar.set_postfix_str(f"loss {loss:.3g}, {shown}", refresh=False)
            bar.update()
    if not keeps_best:
        return Outcome(state.epoch, state.epoch, next(iter(errors.values())), state.seconds)
    task.nets.load_state_dict(state.best)
    return Outcome(state.epoch, state.best_epoch, state.best_error, state.seconds)


def run_batches(
    optimiser: torch.optim.Optimizer,
    loss_of: Callable[[Tensor], Tensor],
    batches: Sequence[Tensor],
    learning_rate: Callable[[float], float],
) -> float:
    """Run one optimiser step a batch of row numbers, at the rate for its share of the epoch; returns the mean loss."""
    total = 0.0
    for step, batch in enumerate(batches):
        optimiser.param_groups[0]["lr"] = learning_rate(step / len(batches))
        loss = loss_of(batch)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        total += loss.item()
    return total / len(batches)


def cosine(rate: float, done: float) -> float:
    """Return the learning rate that falls from `rate` to zero along a cosine, after the share `done` of training."""
    return 0.5 * rate * (1.0 + math.cos(math.pi * done))


def run_name(name: str, settings: object, arrays: Iterable[NDArray[Any]]) -> str:
    """Return a name that only runs of the same settings on the same data share."""
    digest = hashlib.sha256(repr(settings).encode())
    for part in arrays:
        digest.update(np.ascontiguousarray(part).tobytes())
    return f"{name}-{digest.hexdigest()[:12]}"


def save_checkpoint(folder: Path, state: dict[str, Any], name: str = CHECKPOINT_FILE) -> None:
    """Replace the checkpoint of this name in `folder`.

    Raises:
        SoftformError: If it cannot be written.
    """
    buffer = io.BytesIO()
    torch.save(state, buffer)
    try:
        write_atomically(folder / name, buffer.getvalue())
    except SoftformError as error:
        raise SoftformError(
            f"The checkpoint in {folder} could not be written: {error.message}",
            "The last one is kept. Free disk space and run the same command again.",
        ) from error


def load_checkpoint(folder: Path, name: str = CHECKPOINT_FILE) -> dict[str, Any] | None:
    """Return the checkpoint of this name in `folder`, None if there is none.

    Raises:
        SoftformError: If it is unreadable.
    """
    path = folder / name
    if not path.exists():
        return None
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, KeyError, pickle.UnpicklingError) as error:
        raise SoftformError(f"The checkpoint {path} is damaged.", f"Delete {folder} to begin anew.") from error


def remove_checkpoint(folder: Path) -> None:
    """Remove what a finished run was kept by."""
    for name in (CHECKPOINT_FILE, FINISHED_FILE):
        (folder / name).unlink(missing_ok=True)


class _State:
    """Contents of a checkpoint."""

    _KEPT = ("epoch", "seconds", "best_error", "best_epoch", "best")

    def __init__(self, task: Task, folder: Path | None) -> None:
        self._task, self._folder = task, folder
        self.epoch, self.saved_epoch, self.best_epoch = 0, 0, 0
        self.best_error, self.seconds = math.inf, 0.0
        self.best = _copied(task.nets)

    def validate(self) -> dict[str, float]:
        errors = self._task.validate()
        error = next(iter(errors.values()))
        if error < self.best_error:
            self.best_error, self.best_epoch, self.best = error, self.epoch, _copied(self._task.nets)
        return errors

    def save(self) -> None:
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        state: dict[str, Any] = {
            "nets": self._task.nets.state_dict(),
            "optimiser": self._task.optimiser.state_dict(),
            "generator": self._task.generator.get_state(),
        }
        save_checkpoint(self._folder, state | {name: getattr(self, name) for name in self._KEPT})
        self.saved_epoch = self.epoch

    def resume(self) -> None:
        state = None if self._folder is None else load_checkpoint(self._folder)
        if state is None:
            return
        self._task.nets.load_state_dict(state["nets"])
        self._task.optimiser.load_state_dict(state["optimiser"])
        self._task.generator.set_state(state["generator"])
        for name in self._KEPT:
            setattr(self, name, state[name])


def _curves(folder: Path | None, epoch: int) -> Any:
    if folder is None:
        return nullcontext()
    from torch.utils.tensorboard import SummaryWriter  # takes a second to load

    return SummaryWriter(str(folder), purge_step=epoch + 1)


def _copied(nets: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in nets.state_dict().items()}
