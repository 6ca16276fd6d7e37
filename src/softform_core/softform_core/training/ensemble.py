"""Training of an ensemble: each member learns from all frames but one fold, which decides when it stops.

What is learned, and from what, is a `Problem`: networks, a loss of chosen frames, a validation error.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from tqdm import tqdm

from softform_core.errors import SoftformError
from softform_core.executors import Executor, InProcess
from softform_core.forward.rbf_warp import SimToReal
from softform_core.networks.mlp_weights import MlpWeights
from softform_core.surface.patch_set import SHEET, PatchSet
from softform_core.threads import one_thread
from softform_core.torch_device import checked_device, move_parts
from softform_core.training.checkpoint import FINISHED_FILE, load_checkpoint, remove_checkpoint, save_checkpoint
from softform_core.training.displacement_prior import DisplacementPrior
from softform_core.training.loop import cosine, run_batches, train
from softform_core.training.recipe import EnsembleRecipe


class Problem(Protocol):
    """What one member learns."""

    @property
    def nets(self) -> nn.Module:
        """All that is trained; a checkpoint holds their state."""
        ...

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
    """How networks are trained.

    Attributes:
        seed: Seed of the folds, the first weights and the batches.
        patches: The robot's surface.
        folder: Folder of the checkpoints from which an interrupted training resumes; None: no checkpoints.
        progress: Show a progress bar.
        start: Members of an earlier model of the same recipe to go on from; None to start as identity.
        prior: How realities of the robot displace its surface, for learning from scans; None if that is not known.
        executor: Where the members are trained.
        alike: `Robot.alike_actuations`, for learning from scans; None if that is not known.
        device: Where PyTorch computes while a member is trained, such as `cuda`: the same first weights and batches,
            other rounding. Trained networks are on the CPU.
    """

    seed: int = 0
    patches: PatchSet = SHEET
    folder: Path | None = None
    progress: bool = False
    start: Sequence[SimToReal] | None = None
    prior: DisplacementPrior | None = None
    executor: Executor = InProcess()
    alike: NDArray[np.int64] | None = None
    device: str = "cpu"

    def start_of(self, member: int) -> MlpWeights | None:
        """N_rbf that the member of this number goes on from."""
        return None if self.start is None else self.start[member % len(self.start)].coefficients


@dataclass(frozen=True)
class Member(Generic[P_co]):
    """A trained member of an ensemble.

    Attributes:
        problem: Problem whose networks hold the best weights.
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


def _run_name(recipe: EnsembleRecipe, run: TrainingRun, arrays: Iterable[NDArray[Any]]) -> str:
    """A name that only runs of the same settings on the same data share."""
    digest = hashlib.sha256(repr((recipe, run.seed)).encode())
    earlier = [weight for member in run.start or () for weight in member.coefficients.weights]
    for part in (*arrays, *earlier):
        digest.update(np.ascontiguousarray(part).tobytes())
    return f"{recipe.name}-{digest.hexdigest()[:12]}"


def train_ensemble(
    make: Callable[[int], P], frames: int, recipe: EnsembleRecipe, run: TrainingRun, arrays: Iterable[NDArray[Any]]
) -> list[Member[P]]:
    """Train each member of an ensemble.

    Args:
        make: Problem of the member of this number, its networks at their start; called under the member's own seed, and
            picklable.
        frames: Number of frames.
        recipe: Settings.
        run: Seed, checkpoints, the earlier model, the executor and the device of each of its workers.
        arrays: Training data; a checkpoint is resumed only on the same data.

    Raises:
        SoftformError: If there are too few frames, training diverges, a worker is lost, or PyTorch cannot compute on
            the device.
    """
    folds = fold_of(frames, recipe.folds, run.seed)
    folders: list[Path | None] = [None] * recipe.members
    if run.folder is not None:
        name = _run_name(recipe, run, arrays)
        folders = [run.folder / f"{name}-{number}" for number in range(recipe.members)]
    kept = {number: load_checkpoint(folder, FINISHED_FILE) for number, folder in enumerate(folders) if folder}
    finished = {number: state for number, state in kept.items() if state is not None}
    alone = isinstance(run.executor, InProcess)
    prepare = partial(_trainer, make, recipe, run.seed, folds, folders, run.progress and alone, run.device)
    missing = [number for number in range(recipe.members) if number not in finished]
    bar = tqdm(missing, unit="member", desc="members", disable=not run.progress or alone)
    with bar:
        for number, state in run.executor.run(prepare, missing):
            finished[number] = state
            if (folder := folders[number]) is not None:
                folder.mkdir(parents=True, exist_ok=True)
                save_checkpoint(folder, state, FINISHED_FILE)
            bar.update()
    members = [_member(make, number, run.seed, finished[number], folds, recipe) for number in range(recipe.members)]
    for folder in folders:
        if folder is not None:
            remove_checkpoint(folder)
    return members


def _trainer(
    make: Callable[[int], Problem],
    recipe: EnsembleRecipe,
    seed: int,
    folds: NDArray[np.int64],
    folders: Sequence[Path | None],
    progress: bool,
    device: str,
) -> Callable[[int], tuple[int, dict[str, Any]]]:
    """What trains the member of a number, and says its best weights and how it came by them."""

    def work(number: int) -> tuple[int, dict[str, Any]]:
        with one_thread():
            problem = _problem(make, number, seed)
            move_parts(problem, checked_device(device))
            task = _MemberTask(problem, recipe, seed + 1000 * number, folds == number % recipe.folds)
            title = f"member {number + 1} of {recipe.members}"
            done = train(
                task, title, folders[number], epochs=recipe.epochs, patience=recipe.patience,
                validation_epochs=recipe.refresh, progress=progress, keeps_best=recipe.keeps_best,
            )  # fmt: skip
        nets = {name: values.cpu() for name, values in task.nets.state_dict().items()}
        state = {"nets": nets, "error": done.best_error, "best_epoch": done.best_epoch}
        return number, state | {"seconds": done.seconds}

    return work


def _problem(make: Callable[[int], P], number: int, seed: int) -> P:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed + 1000 * number)
        return make(number)


def _member(
    make: Callable[[int], P],
    number: int,
    seed: int,
    state: dict[str, Any],
    folds: NDArray[np.int64],
    recipe: EnsembleRecipe,
) -> Member[P]:
    problem = _problem(make, number, seed)
    problem.nets.load_state_dict(state["nets"])
    validation = np.flatnonzero(folds == number % recipe.folds)
    return Member(problem, validation, state["error"], state["best_epoch"], state["seconds"])


class _MemberTask(Generic[P]):
    """The `Task` of the training loop that one member is."""

    def __init__(self, problem: P, recipe: EnsembleRecipe, seed: int, validation: NDArray[np.bool_]) -> None:
        self.problem, self.nets, self._recipe = problem, problem.nets, recipe
        self._training, self.validation = (torch.from_numpy(np.flatnonzero(part)) for part in (~validation, validation))
        self.generator = torch.Generator().manual_seed(seed)
        self.optimiser = torch.optim.AdamW(
            self.nets.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
        )

    def run_epoch(self, epoch: int) -> float:
        """One pass over the training frames in random batches; mean loss."""
        recipe = self._recipe
        order = self._training[torch.randperm(len(self._training), generator=self.generator)]
        batches = order.tensor_split(max(1, round(len(order) / recipe.batch_size)))
        return run_batches(
            self.optimiser,
            self.problem.loss,
            batches,
            lambda share: cosine(recipe.learning_rate, (epoch + share) / recipe.epochs),
        )

    def validate(self) -> dict[str, float]:
        """Renew what is held between refreshes; error in the validation frames."""
        return {"error_mm/validation": self.problem.refresh(self.validation)}
