"""Training of an ensemble: each member learns from all frames but one fold, which decides when it stops.

Subclasses of `WarpProblem` say what it is learned from: scans or markers.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from tqdm import tqdm

from softform_core.errors import SoftformError
from softform_core.executors import Executor, InProcess
from softform_core.forward.rbf_warp import SimToReal
from softform_core.geometry.rigid import RigidTransform
from softform_core.networks.mlp_weights import MlpWeights
from softform_core.networks.sim_to_real import FunctionPrediction
from softform_core.surface.patch_set import SHEET, PatchSet
from softform_core.threads import one_thread
from softform_core.torch_device import checked_device, move_parts
from softform_core.training.displacement_prior import DisplacementPrior
from softform_core.training.loop import (
    FINISHED_FILE,
    cosine,
    load_checkpoint,
    remove_checkpoint,
    run_batches,
    run_name,
    save_checkpoint,
    train,
)
from softform_core.training.recipe import Recipe
from softform_core.training.sim_to_real_losses import geometric_regularization, surface_normals
from softform_core.training.warp_data import WarpData

__all__ = ["TrainingRun"]


class WarpProblem(ABC):
    """Problem of one member: learn N_rbf by a loss of chosen frames, and stop by a validation error.

    It goes on from the N_rbf `start`, or begins with the warp of a `motion`, mm, by default with the identity.
    """

    def __init__(
        self, data: WarpData, recipe: Recipe, start: MlpWeights | None, motion: RigidTransform | None = None
    ) -> None:
        """Make the network; torch's seed decides its first weights."""
        self._data, self._recipe = data, recipe
        inputs = data.shape.shape[1]
        self.network = FunctionPrediction(
            inputs, data.directions, recipe.hidden, recipe.activation, data.scaling, motion
        )
        self.nets: nn.Module = self.network  # all that is trained; a checkpoint holds their state
        if start is not None:
            self.network.load_weights(start, data.shape_input)

    @abstractmethod
    def refresh(self, validation: Tensor) -> float:
        """Renew what depends on the weights but is held between refreshes; error in the frames of these numbers, mm."""

    @abstractmethod
    def loss(self, batch: Tensor) -> Tensor:
        """Return the mean loss of the frames of these numbers, differentiable in the networks' weights."""

    def surfaces(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return points (n, P, 3) mm and both tangents of the predicted surfaces of all frames, no gradient."""
        data = self._data
        with torch.no_grad():
            gamma = self.network(data.shape)
            return data.basis @ gamma, data.slope_u @ gamma, data.slope_v @ gamma

    def predicted(self) -> tuple[Tensor, Tensor]:
        """Return points (n, P, 3) mm and unit normals (n, P, 3) of all frames' predicted surfaces, no gradient."""
        points, slope_u, slope_v = self.surfaces()
        return points, surface_normals(slope_u, slope_v)

    def warps(self, batch: Tensor) -> tuple[Tensor, Tensor]:
        """Return amplitudes (b, d, 3) along the directions and gamma (b, N + 4, 3) of the frames of a batch."""
        amplitudes = self.network.amplitudes(self._data.shape[batch])
        return amplitudes, self.network.identity + self.network.directions @ amplitudes

    def regularised(self, loss: Tensor, amplitudes: Tensor, gamma: Tensor, batch: Tensor) -> Tensor:
        """Return a loss (b,) with what scans and markers have in common: Eq. 11 and the penalty on the amplitudes."""
        loss = loss + self._recipe.geometric_weight * geometric_regularization(gamma, self._data.centers[batch])
        return loss + self._recipe.amplitude_weight * amplitudes.square().mean(dim=(1, 2))


P_co = TypeVar("P_co", bound=WarpProblem, covariant=True)


@dataclass(frozen=True)
class TrainingRun:
    """Settings of how networks are trained.

    Attributes:
        seed: Seed of the folds, the first weights and the batches.
        patches: The robot's surface.
        folder: Folder of the checkpoints from which an interrupted training resumes; None: no checkpoints.
        progress: Show a progress bar.
        start: Members of an earlier model of the same recipe to go on from; None to start as identity.
        prior: Prior of the displacements in realities of the robot, for learning from scans; None if not known.
        executor: Executor that trains the members.
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
        """Return N_rbf that the member of this number goes on from."""
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
    """Return the number (frames,) of the fold that each frame is in, folds of equal size at random.

    Raises:
        SoftformError: If there are too few frames.
    """
    if frames < max(2, folds):
        raise SoftformError(f"{frames} frames cannot be split into {folds} folds.", "Capture more frames.")
    return np.random.default_rng(seed).permutation(frames) % folds


def train_ensemble(
    make: Callable[[int], P_co], frames: int, recipe: Recipe, run: TrainingRun, arrays: Iterable[NDArray[Any]]
) -> list[Member[P_co]]:
    """Train each member of an ensemble.

    `make` makes the problem of the member of a number, its networks at their start; it is called under the member's own
    seed, and picklable. A checkpoint is resumed only on the same training data `arrays`.

    Raises:
        SoftformError: If there are too few frames, training diverges, a worker is lost, or PyTorch cannot compute on
            the device.
    """
    folds = fold_of(frames, recipe.folds, run.seed)
    folders: list[Path | None] = [None] * recipe.members
    if run.folder is not None:
        earlier = [weight for member in run.start or () for weight in member.coefficients.weights]
        name = run_name(recipe.name, (recipe, run.seed), (*arrays, *earlier))
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
    members = []
    for number in range(recipe.members):
        problem, state = _problem(make, number, run.seed), finished[number]
        problem.nets.load_state_dict(state.pop("nets"))
        members.append(Member(problem, np.flatnonzero(folds == number % recipe.folds), **state))
    for folder in filter(None, folders):  # not before all of them are there
        remove_checkpoint(folder)
    return members


def _trainer(
    make: Callable[[int], WarpProblem],
    recipe: Recipe,
    seed: int,
    folds: NDArray[np.int64],
    folders: Sequence[Path | None],
    progress: bool,
    device: str,
) -> Callable[[int], tuple[int, dict[str, Any]]]:
    """Return the trainer of the numbered member, which gives its best weights and how it came by them."""

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


def _problem(make: Callable[[int], P_co], number: int, seed: int) -> P_co:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed + 1000 * number)
        return make(number)


class _MemberTask:
    """The `Task` of the training loop that one member is."""

    def __init__(self, problem: WarpProblem, recipe: Recipe, seed: int, validation: NDArray[np.bool_]) -> None:
        self.problem, self.nets, self._recipe = problem, problem.nets, recipe
        self._training, self.validation = (torch.from_numpy(np.flatnonzero(part)) for part in (~validation, validation))
        self.generator = torch.Generator().manual_seed(seed)
        self.optimiser = torch.optim.AdamW(
            self.nets.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
        )

    def run_epoch(self, epoch: int) -> float:
        """Run one pass over the training frames in random batches; returns the mean loss."""
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
