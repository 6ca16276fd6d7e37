"""Training of an ensemble: each member learns from all frames but one fold, which decides when it stops.

What is learned, and from what, is a `Problem`: networks, a loss of chosen frames, a validation error.
"""

import hashlib
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from tqdm import tqdm

from softform_core.errors import SoftformError
from softform_core.networks.layers import MlpWeights
from softform_core.surface.patch import SHEET, Patch
from softform_core.training.checkpoint import load_checkpoint, remove_checkpoint, save_checkpoint
from softform_core.training.sim_to_real_recipes import Schedule

_CHECKPOINT_EPOCHS = 25


class Problem(Protocol):
    """What one member learns.

    Attributes:
        nets: All that is trained; a checkpoint holds their state.
    """

    nets: nn.Module

    def refresh(self, validation: Tensor) -> float:
        """Renew what depends on the weights but is held between refreshes; error in the frames of these numbers."""
        ...

    def loss(self, batch: Tensor) -> Tensor:
        """Mean loss of the frames of these numbers, differentiable in the networks' weights."""
        ...


P = TypeVar("P", bound=Problem)
P_co = TypeVar("P_co", bound=Problem, covariant=True)


@dataclass(frozen=True)
class TrainingRun:
    """How networks are trained, whatever they learn from.

    Attributes:
        seed: Of the folds, the first weights and the batches.
        patch: The robot's surface.
        folder: Where checkpoints are kept, from which the same training goes on after an interruption; None for none.
        progress: Show a progress bar.
        start: N_rbf of each member of an earlier model of the same recipe to go on from; None to start as identity.
    """

    seed: int = 0
    patch: Patch = SHEET
    folder: Path | None = None
    progress: bool = False
    start: Sequence[MlpWeights] | None = None

    def start_of(self, member: int) -> MlpWeights | None:
        """N_rbf that the member of this number goes on from."""
        return None if self.start is None else self.start[member % len(self.start)]


@dataclass(frozen=True)
class Member(Generic[P_co]):
    """A trained member of an ensemble.

    Attributes:
        problem: Its networks hold the best weights.
        validation: Numbers of the frames that it was stopped by and not trained on.
        error: Validation error of its weights.
        best_epoch: Epoch of its weights.
        seconds: Time spent, interrupted runs included.
    """

    problem: P_co
    validation: NDArray[np.int64]
    error: float
    best_epoch: int
    seconds: float


def fold_of(frames: int, folds: int, seed: int) -> NDArray[np.int64]:
    """Number (frames,) of the fold that each frame is in, folds of equal size at random.

    Raises:
        SoftformError: If there are too few frames.
    """
    if frames < max(2, folds):
        raise SoftformError(f"{frames} frames cannot be split into {folds} folds.", "Capture more frames.")
    return np.random.default_rng(seed).permutation(frames) % folds


def _run_name(schedule: Schedule, run: TrainingRun, arrays: Iterable[NDArray[Any]]) -> str:
    """A name that only runs of the same settings on the same data share."""
    digest = hashlib.sha256(repr((schedule, run.seed)).encode())
    earlier = [weight for member in run.start or () for weight in member.weights]
    for part in (*arrays, *earlier):
        digest.update(np.ascontiguousarray(part).tobytes())
    return f"{schedule.name}-{digest.hexdigest()[:12]}"


def train_ensemble(
    make: Callable[[int], P],
    frames: int,
    schedule: Schedule,
    run: TrainingRun,
    arrays: Iterable[NDArray[Any]],
) -> list[Member[P]]:
    """Train each member of an ensemble.

    Args:
        make: Problem of the member of this number, its networks at their start; called under the member's own seed.
        frames: Number of frames.
        schedule: Settings.
        run: Seed, checkpoints and the earlier model.
        arrays: What is learned from: only a run on the same goes on from its checkpoint.

    Raises:
        SoftformError: If there are too few frames, or training diverges.
    """
    folds = fold_of(frames, schedule.folds, run.seed)
    folders: list[Path | None] = [None] * schedule.members
    if run.folder is not None:
        name = _run_name(schedule, run, arrays)
        folders = [run.folder / f"{name}-{number}" for number in range(schedule.members)]
    members = []
    for number, folder in enumerate(folders):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(run.seed + 1000 * number)
            problem = make(number)
        learner = _MemberRun(problem, schedule, run.seed + 1000 * number, folds == number % schedule.folds, folder)
        members.append(learner.train(f"member {number + 1} of {schedule.members}", run.progress))
    for folder in folders:
        if folder is not None:
            remove_checkpoint(folder)
    return members


class _MemberRun(Generic[P]):
    """Training of one member, whose state a checkpoint holds."""

    def __init__(
        self, problem: P, schedule: Schedule, seed: int, validation: NDArray[np.bool_], folder: Path | None
    ) -> None:
        self._problem, self._nets, self._schedule, self._folder = problem, problem.nets, schedule, folder
        self._training, self._validation = (
            torch.from_numpy(np.flatnonzero(part)) for part in (~validation, validation)
        )
        self._generator = torch.Generator().manual_seed(seed)
        self._optimiser = torch.optim.AdamW(
            self._nets.parameters(), lr=schedule.learning_rate, weight_decay=schedule.weight_decay
        )
        self.epoch, self._best_epoch, self._best_error, self._seconds = 0, 0, math.inf, 0.0
        self._best: dict[str, Tensor] = _copied(self._nets)

    def train(self, title: str, progress: bool) -> Member[P]:
        """Run epochs until the schedule or the patience is at its end."""
        schedule = self._schedule
        self._resume()
        begin = time.perf_counter() - self._seconds
        resumed = self.epoch > 0
        with tqdm(total=schedule.epochs, initial=self.epoch, unit="epoch", desc=title, disable=not progress) as bar:
            while self.epoch < schedule.epochs and self.epoch - self._best_epoch < schedule.patience:
                if resumed or self.epoch % schedule.refresh == 0:
                    self._refresh()
                    resumed = False
                loss = self._run_epoch()
                if not math.isfinite(loss):
                    raise SoftformError(
                        f"The loss became {loss} in epoch {self.epoch + 1}.",
                        "Check the frames; with a recipe of your own, lower its learning rate.",
                    )
                self.epoch += 1
                self._seconds = time.perf_counter() - begin
                if self.epoch % _CHECKPOINT_EPOCHS == 0:
                    self._save()
                bar.set_postfix_str(f"loss {loss:.3f}, validation {self._best_error:.3f} mm", refresh=False)
                bar.update()
            self._refresh()
        self._nets.load_state_dict(self._best)
        validation = self._validation.numpy()
        return Member(self._problem, validation, self._best_error, self._best_epoch, self._seconds)

    def _refresh(self) -> None:
        error = self._problem.refresh(self._validation)
        if error < self._best_error:
            self._best_error, self._best_epoch, self._best = error, self.epoch, _copied(self._nets)

    def _run_epoch(self) -> float:
        """One pass over the training frames in random batches; mean loss."""
        schedule = self._schedule
        order = self._training[torch.randperm(len(self._training), generator=self._generator)]
        batches = order.tensor_split(max(1, round(len(order) / schedule.batch_size)))
        total = 0.0
        for step, batch in enumerate(batches):
            done = (self.epoch + step / len(batches)) / schedule.epochs
            self._optimiser.param_groups[0]["lr"] = 0.5 * schedule.learning_rate * (1.0 + math.cos(math.pi * done))
            loss = self._problem.loss(batch)
            self._optimiser.zero_grad(set_to_none=True)
            loss.backward()
            self._optimiser.step()
            total += loss.item()
        return total / len(batches)

    def _save(self) -> None:
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        state: dict[str, Any] = {
            "nets": self._nets.state_dict(),
            "optimiser": self._optimiser.state_dict(),
            "generator": self._generator.get_state(),
            "epoch": self.epoch,
            "seconds": self._seconds,
            "best_error": self._best_error,
            "best_epoch": self._best_epoch,
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
        self.epoch, self._seconds = state["epoch"], state["seconds"]
        self._best_error, self._best_epoch, self._best = state["best_error"], state["best_epoch"], state["best"]


def _copied(nets: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in nets.state_dict().items()}
