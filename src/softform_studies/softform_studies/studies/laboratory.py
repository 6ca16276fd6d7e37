"""Performs the runs of a study: captures frames from a reality, trains, and judges at the same held-out actuations."""

import time
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from softform_core.arrays import Array
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.rbf_warp import SimToReal, gaussians, warp
from softform_core.forward.robot_pipeline import pipeline_of
from softform_core.frames.frames import Frames
from softform_core.kept import Ledger, digest_of
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.saved_network import SavedNetwork
from softform_core.networks.store import FORWARD_KINEMATICS, load_forward_kinematics
from softform_core.networks.surface_card import SurfaceKinematicsCard
from softform_core.robots import Robot
from softform_core.robots.body import Body
from softform_core.simulation.generate import generate
from softform_core.simulation.sampling import inflations
from softform_core.simulation.simulated_body import equilibrium_points, rest_points
from softform_core.training.learn_forward_kinematics import learn_forward_kinematics
from softform_core.training.learn_forward_kinematics import recipe_for as recipe_of_kinematics
from softform_core.training.recipe import DEFAULT
from softform_core.training.shapes import load_training_shapes
from softform_core.training.trained_sim_to_real import TrainedSimToReal
from softform_core.units import MM_PER_M
from softform_studies.sim_to_real.judge import Judge
from softform_studies.sim_to_real.learners import Learners, recipe_for
from softform_studies.sim_to_real.make_frames import (
    FRAMES_VERSION,
    TrueSurfaces,
    kept_true_surfaces,
    make_captured,
    make_frames,
    make_marker_frames,
)
from softform_studies.studies.catalogue import Run, Setting

DISTANCE_EDGES = np.linspace(0.0, 8.0, 161)
"""Bins of the histograms of distances, mm."""

NORMAL_EDGES = np.linspace(0.0, 0.06, 61)
"""Bins of the histograms of normal errors (Eq. 21), capped at 0.06 as in Fig. 15: about 20 degrees."""

_TIMED_WARPS = 100_000
_REPEATS = 3
_SECOND_SHAPES = 400
"""Shapes of a second simulator: as many as the soft manipulator's own N_fk was given."""


@dataclass(frozen=True)
class Captured:
    """Frames of one scanner setting with the judge of the held-out actuations."""

    frames: Frames
    missing: float
    judge: Judge


class Laboratory:
    """One setting; results of finished runs are looked up in the ledger.

    Args:
        setting: Robot, reality, seed and folder.
        frames: Captured frames; every run learns from the first of them.
        held_out: Actuations to judge at, the same for all runs.
        learned: N_fk and its card; the robot's own by default.
    """

    def __init__(
        self,
        setting: Setting,
        frames: int,
        held_out: int,
        learned: tuple[SavedNetwork, SurfaceKinematicsCard] | None = None,
    ) -> None:
        self._setting, self._frames, self._held_out = setting, frames, held_out
        self.learners = _learners(replace(setting, progress=False), learned)
        self._ledger = Ledger(setting.folder / "runs.jsonl")
        # Of the last run only: frames and models of a whole study would fill the memory.
        self._captured: dict[str, Captured] = {}
        self._trained: tuple[str, TrainedSimToReal] | None = None
        self._common = {
            **self.learners.identity,
            "reality": setting.reality.model_dump(mode="json"),
            "frames_version": FRAMES_VERSION,
            "captured": frames,
            "held_out": held_out,
            "seed": setting.seed,
        }

    def perform(self, run: Run) -> dict[str, Any]:
        """Return the result of a run: from the ledger, or trained now and written there.

        Returns:
            The figures of `Judge.figures`, `train_s`, `missing` (share of the surface), `warp_s` (seconds for 1e5
            warps) where there is a warp, and counts of the histograms of distances and of normal errors.

        Raises:
            SoftformError: If the reality has no shape at an actuation, or training fails.
        """
        return self._ledger.kept({**self._common, **run.settings()}, lambda: self._measure(run))

    def _measure(self, run: Run) -> dict[str, Any]:
        captured = self._capture(run)
        judge = captured.judge
        if run.method == "simulation_only":
            return self._result(captured, judge.predicted(None), None, 0.0)
        if run.method == "direct_learning":
            direct = self.learners.directly(captured.frames.part(np.arange(run.frames)), run.direct)
            return self._result(captured, direct.points(judge.held_out.actuation, judge.uv), None, direct.seconds)
        trained = self._train(run, captured)
        if run.method == "direct_simulation":
            predicted = self._from_simulated_shapes(judge, trained.sim_to_real)
        else:
            predicted = judge.predicted(trained.sim_to_real)
        return self._result(captured, predicted, trained.sim_to_real, trained.seconds)

    @cached_property
    def _shapes(self) -> TrueSurfaces:
        """Return the shapes that all scanners and cameras of the study look at."""
        return _true_surfaces(self._setting, self._frames + self._held_out)

    def _train(self, run: Run, captured: Captured) -> TrainedSimToReal:
        """Train, unless the run before was trained just so and only judged otherwise."""
        method = "sim_to_real" if run.method == "direct_simulation" else run.method
        key = repr({**run.settings(), "method": method})
        if self._trained is not None and self._trained[0] == key:
            return self._trained[1]
        learners, setting = self.learners, self._setting
        frames, _ = learners.fit_frames(captured.frames.part(np.arange(run.frames)), run.recipe)
        assert isinstance(frames, Frames)
        if method == "markers":
            given = setting.robot, setting.reality, run.frames, 0
            marked, _, _ = make_marker_frames(*given, missing=run.missing, seed=setting.seed, shapes=self._shapes)
            trained = learners.from_markers(marked, run.recipe)
        elif method == "fixed_confidence":
            trained = learners.with_fixed_confidence(frames, run.recipe)
        elif method in ("static_correspondences", "static_visible"):
            trained = learners.from_static_correspondences(frames, run.recipe, method == "static_visible")
        else:
            trained = learners.from_scans(frames, run.recipe)
        self._trained = key, trained
        return trained

    def _capture(self, run: Run) -> Captured:
        key = repr((run.points, sorted(run.scanner.items())))
        if key not in self._captured:
            setting = self._setting
            scanner = setting.reality.scanner.model_copy(update=dict(run.scanner))
            reality = setting.reality.model_copy(update={"scanner": scanner})
            sizes = self._frames, self._held_out, run.points, setting.seed
            frames, held_out, missing = make_frames(setting.robot, reality, *sizes, self._shapes)
            judge = Judge(setting.robot, self.learners.forward_kinematics, held_out)
            self._captured = {key: Captured(frames, missing, judge)}
        return self._captured[key]

    def _from_simulated_shapes(self, judge: Judge, sim_to_real: SimToReal) -> Array:
        """Eq. 4 with control points fitted to the simulator's own shapes (Sec. V-C5), (n, P, 3) mm."""
        robot, patches = self._setting.robot, judge.patches
        simulator = robot.body.simulator()
        actuation, correction = judge.effective(sim_to_real), sim_to_real.actuation
        corrected = actuation if correction is None else correction.effective(actuation)
        shapes = equilibrium_points(simulator, robot.actuators_of(corrected))
        control = robot.parametrised(rest_points(simulator), simulator.faces).fit(MM_PER_M * shapes)
        points, centers = patches.evaluate(control, judge.uv), patches.evaluate(control, sim_to_real.kernel_uv)
        gamma = sim_to_real.coefficients.forward(control.reshape(len(control), -1)).reshape(len(control), -1, 3)
        return warp(points, gaussians(points, centers, sim_to_real.width), gamma)

    def _result(
        self, captured: Captured, predicted: Array, sim_to_real: SimToReal | None, seconds: float
    ) -> dict[str, Any]:
        judge = captured.judge
        errors, normal_errors = judge.errors(predicted), judge.normal_errors(predicted)
        return {
            **judge.figures(errors),
            "train_s": round(seconds, 1),
            "missing": round(captured.missing, 4),
            "warp_s": None if sim_to_real is None else _seconds_of_warps(judge, sim_to_real),
            "mean_normal_error": round(float(normal_errors.mean()), 6),
            "judged": errors.distances.size,
            "distances": np.histogram(errors.distances, DISTANCE_EDGES)[0].tolist(),
            "normal_errors": np.histogram(normal_errors, NORMAL_EDGES)[0].tolist(),
        }


def _learners(setting: Setting, learned: tuple[SavedNetwork, SurfaceKinematicsCard] | None = None) -> Learners:
    return Learners.of(setting.robot, setting.seed, setting.progress, setting.folder / "checkpoints", learned)


def _true_surfaces(setting: Setting, count: int) -> TrueSurfaces:
    return kept_true_surfaces(setting.robot, setting.reality, count, setting.seed, setting.folder / "shapes")


def _seconds_of_warps(judge: Judge, sim_to_real: SimToReal) -> float:
    """Return seconds for 1e5 evaluations of Eq. 2 on one core, the best of three (Fig. 14)."""
    actuation = judge.held_out.actuation[:1]
    pipeline = judge.pipeline(sim_to_real)
    uv = judge.patches.samples(_TIMED_WARPS)
    control = pipeline.control_points(actuation)
    points = judge.patches.evaluate(control, uv)
    centers, gamma = pipeline.kernel_centers(actuation), pipeline.warp_coefficients(actuation)
    taken = []
    for _ in range(_REPEATS):
        begin = time.perf_counter()
        warp(points, gaussians(points, centers, sim_to_real.width), gamma)
        taken.append(time.perf_counter() - begin)
    return round(min(taken) * _TIMED_WARPS / len(uv), 5)


def learned_from(setting: Setting, model: Body) -> tuple[SavedNetwork, SurfaceKinematicsCard]:
    """Return N_fk of the robot with another model of its body (Fig. 15), and its card; learned once by its recipe.

    Raises:
        SoftformError: If shapes cannot be simulated, or training fails.
    """
    scale, robot = setting.scale, setting.robot.model_copy(update={"body": model})
    recipe, shapes = recipe_of_kinematics(robot), scale.pick(_SECOND_SHAPES, 32)
    recipe = replace(recipe, epochs=scale.pick(recipe.epochs, 2))
    settings = {"robot": robot.fingerprint(), "recipe": asdict(recipe), "shapes": shapes, "seed": setting.seed}
    folder = setting.folder / model.kind / digest_of(settings)
    if not (folder / FORWARD_KINEMATICS.card_file).is_file():
        store, sampling = folder / "simulation.zarr", inflations(robot, shapes, setting.seed)
        generate(robot, sampling, store, jobs=1, progress=setting.progress)
        given = robot, load_training_shapes(robot, store), recipe, setting.seed
        learn_forward_kinematics(*given, folder / "checkpoints", folder, progress=setting.progress)
    return load_forward_kinematics(robot, folder)


@dataclass(frozen=True)
class Learned:
    """Held-out shapes, true and predicted.

    Attributes:
        judge: The true shapes.
        before: (n, P, 3) mm, by N_fk alone.
        after: (n, P, 3) mm, with sim-to-real.
        trained: The sim-to-real model.
    """

    judge: Judge
    before: Array
    after: Array
    trained: TrainedSimToReal

    def pipeline(self, robot: Robot, points: int) -> ForwardPipeline:
        """Return the learned surface at about so many points."""
        network, _ = load_forward_kinematics(robot)
        return pipeline_of(robot, extract_mlp(network), robot.patches.samples(points), self.trained.sim_to_real)


def learn(setting: Setting, frames: int, held_out: int) -> Learned:
    """Capture frames as the robot is captured, learn from them as `train s2r` does, and predict other shapes.

    Raises:
        SoftformError: If a model is missing, the reality has no shape at an actuation, or training fails.
    """
    robot, scale = setting.robot, setting.scale
    learners, shapes = _learners(setting), _true_surfaces(setting, frames + held_out)
    captured, true, _ = make_captured(robot, setting.reality, frames, held_out, scale.points, setting.seed, shapes)
    judge, recipe = Judge(robot, learners.forward_kinematics, true), scale.shrunk(recipe_for(robot, DEFAULT))
    fit, _ = learners.fit_frames(captured, recipe)
    trained = learners.learn(fit, recipe)
    return Learned(judge, judge.predicted(None), judge.predicted(trained.sim_to_real), trained)


def identity(setting: Setting, frames: int | None) -> dict[str, Any]:
    """Return what decides a prediction: N_fk alone if `frames` is None, else also what is learned from so many."""
    found: dict[str, Any] = {**_learners(setting).identity, "reality": setting.reality.model_dump(mode="json")}
    prior = found.pop("prior")
    if frames is not None:
        found["learned"] = {
            "frames": frames,
            "points": setting.scale.points,
            "frames_version": FRAMES_VERSION,
            "recipe": asdict(setting.scale.shrunk(recipe_for(setting.robot, DEFAULT))),
            "prior": prior,
            "seed": setting.seed,
        }
    return found
