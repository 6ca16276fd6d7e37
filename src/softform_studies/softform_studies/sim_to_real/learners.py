"""Every way of learning that benchmark and studies compare: ours and the paper's baselines (paper 000, Sec. V-C).

Several trainings may go on at once: they share nothing, and one of them keeps one core busy.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from softform_core.executors import Executor, InProcess
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.frames.frames import Frames, MarkerFrames
from softform_core.networks.mlp_weights import MlpWeights, extract_mlp
from softform_core.networks.saved_network import SavedNetwork
from softform_core.networks.store import load_forward_kinematics
from softform_core.networks.surface_card import SurfaceKinematicsCard
from softform_core.robots import Robot
from softform_core.surface.patch_set import PatchSet
from softform_core.threads import one_thread
from softform_core.training.displacement_prior import DisplacementPrior, load_displacement_prior
from softform_core.training.ensemble import TrainingRun
from softform_core.training.marker_learning import MARKERS, train_sim_to_real_from_markers, unfit_markers
from softform_core.training.recipe import DEFAULT, Recipe
from softform_core.training.scan_checks import unfit_scans
from softform_core.training.sim_to_real import train_sim_to_real
from softform_core.training.trained_sim_to_real import FrameFlag, TrainedSimToReal
from softform_core.units import MM_PER_M
from softform_studies.sim_to_real.direct_learning import AS_PRINTED, DirectLearning, DirectRecipe, train_direct
from softform_studies.sim_to_real.make_frames import wears_many_markers
from softform_studies.sim_to_real.warp_fit import register_surface


def recipe_for(robot: Robot, recipe: Recipe) -> Recipe:
    """Return the recipe as `train s2r` takes it: for the robot's frames, with the layers of its description."""
    if recipe.name == DEFAULT.name and wears_many_markers(robot):
        recipe = MARKERS
    hidden = robot.networks.sim_to_real
    return recipe if hidden is None else replace(recipe, hidden=tuple(hidden))


@dataclass(frozen=True)
class Learners:
    """All of them, on one robot with one seed.

    Attributes:
        forward_kinematics: N_fk.
        patches: Patches of the surface.
        seed: Seed of folds, first weights and batches.
        progress: Show progress bars.
        checkpoints: Folder from which an interrupted training goes on, or None.
        prior: Prior of the surface's displacements in realities of the robot, or None.
        alike: `Robot.alike_actuations`, or None.
        identity: Digests of robot, N_fk and prior, for what is kept of the results.
    """

    forward_kinematics: MlpWeights
    patches: PatchSet
    seed: int
    progress: bool = False
    checkpoints: Path | None = None
    prior: DisplacementPrior | None = None
    alike: NDArray[np.int64] | None = None
    identity: Mapping[str, str | None] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        robot: Robot,
        seed: int,
        progress: bool = False,
        checkpoints: Path | None = None,
        learned: tuple[SavedNetwork, SurfaceKinematicsCard] | None = None,
    ) -> Self:
        """Make the learners of a robot with its own N_fk, or with another one and its card, and its prior.

        Raises:
            SoftformError: If N_fk is missing.
        """
        network, card = learned or load_forward_kinematics(robot)
        prior = load_displacement_prior(robot)
        identity = {
            "robot": robot.fingerprint(),
            "forward_kinematics": card.weights_sha256,
            "prior": None if prior is None else prior.sha256,
        }
        given = seed, progress, checkpoints, prior, robot.alike_actuations, identity
        return cls(extract_mlp(network), robot.patches, *given)

    def fit_frames(
        self, frames: Frames | MarkerFrames, recipe: Recipe
    ) -> tuple[Frames | MarkerFrames, list[FrameFlag]]:
        """Return frames that can be learned from, and why the others are left out, as `train s2r` does."""
        if isinstance(frames, MarkerFrames):
            unfit = unfit_markers(self.forward_kinematics, frames, self.patches)
        else:
            # Over the points that training samples, so that its own check agrees.
            uv = self.patches.samples(recipe.surface_points)
            unfit = unfit_scans(frames, ForwardPipeline(self.forward_kinematics, uv, None, self.patches))
        return frames.part(np.setdiff1d(np.arange(len(frames)), [flag.frame for flag in unfit])), unfit

    def learn(self, frames: Frames | MarkerFrames, recipe: Recipe) -> TrainedSimToReal:
        """Learn by our method from whatever was captured."""
        if isinstance(frames, MarkerFrames):
            return self.from_markers(frames, recipe)
        return self.from_scans(frames, recipe)

    def from_scans(self, frames: Frames, recipe: Recipe) -> TrainedSimToReal:
        """Learn by our method from scans: no correspondences, learned confidence."""
        return train_sim_to_real(self.forward_kinematics, frames, recipe, self._run)

    def with_fixed_confidence(self, frames: Frames, recipe: Recipe) -> TrainedSimToReal:
        """Learn by our method with w_c = 1 everywhere."""
        return self.from_scans(frames, replace(recipe, name=f"{recipe.name}-w1", confidence="one"))

    def from_markers(self, frames: MarkerFrames, recipe: Recipe = MARKERS) -> TrainedSimToReal:
        """Learn from markers with known correspondences, Eq. 13."""
        return train_sim_to_real_from_markers(self.forward_kinematics, frames, recipe, self._run)

    def from_static_correspondences(self, frames: Frames, recipe: Recipe, leave_holes_out: bool) -> TrainedSimToReal:
        """Learn from a non-rigid registration of each frame, with fixed correspondences (Sec. V-C2).

        The registered surface points are virtual markers of Eq. 13. Kernels, networks and schedule are the recipe's.
        With `leave_holes_out` markers without captured points around them count as missing, which is more than the
        paper grants this baseline; else all points are markers, bridged holes too.
        """
        begin = time.perf_counter()
        uv, patches = self.patches.samples(recipe.surface_points), self.patches
        control_points = self.forward_kinematics.forward(frames.actuation).reshape(len(frames), -1, 3)
        registered = []
        for simulated, cloud, normals in zip(control_points, frames.clouds, frames.normals, strict=True):
            found = register_surface(simulated, uv, patches, MM_PER_M * cloud, normals)
            is_marker = found.is_supported | (not leave_holes_out)
            registered.append(np.where(is_marker[:, None], found.points, np.nan))
        names = [f"p{number}" for number in range(len(uv))]
        virtual = MarkerFrames(frames.actuation, names, uv, np.array(registered) / MM_PER_M)
        registration_s = time.perf_counter() - begin
        trained = train_sim_to_real_from_markers(
            self.forward_kinematics, virtual, recipe, self._run, patches.kernels(recipe.kernels), check_labels=False
        )
        return replace(trained, seconds=trained.seconds + registration_s)

    def directly(self, frames: Frames, recipe: DirectRecipe = AS_PRINTED) -> DirectLearning:
        """Learn from actuation to points without a simulation, Eqs. 18-20."""
        return train_direct(self.forward_kinematics, frames, recipe, self._run)

    @property
    def _run(self) -> TrainingRun:
        return TrainingRun(self.seed, self.patches, self.checkpoints, self.progress, prior=self.prior, alike=self.alike)


Lesson = Callable[[Learners], Any]
"""One training: what calls a method of `Learners`; it is pickled where others do the work (`operator.methodcaller`)."""


def learn_all(learners: Learners, lessons: Mapping[str, Lesson], executor: Executor) -> Iterator[tuple[str, Any]]:
    """Train everything where the executor works; yields names and what was learned as it is.

    Raises:
        SoftformError: If a training fails or its worker is lost; those that have not begun are dropped.
    """
    quiet = learners if isinstance(executor, InProcess) else replace(learners, progress=False)
    yield from executor.run(partial(_learner, quiet), list(lessons.items()))


def _learner(learners: Learners) -> Callable[[tuple[str, Lesson]], tuple[str, Any]]:
    def learn(named: tuple[str, Lesson]) -> tuple[str, Any]:
        name, lesson = named
        with one_thread():
            return name, lesson(learners)

    return learn
