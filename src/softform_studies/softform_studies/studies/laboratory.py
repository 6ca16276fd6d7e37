"""Performs the runs of a study: captures frames from a reality, trains, and judges at the same held-out actuations."""

import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from softform_core.arrays import Array
from softform_core.forward.rbf_warp import SimToReal, gaussians, warp
from softform_core.frames.frames import Frames
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.saved_network import SavedNetwork
from softform_core.networks.store import load_forward_kinematics
from softform_core.networks.surface_card import SurfaceKinematicsCard
from softform_core.robots import Robot
from softform_core.simulation.simulated_body import equilibrium_points, rest_points
from softform_core.training.displacement_prior import load_displacement_prior
from softform_core.training.trained_sim_to_real import TrainedSimToReal
from softform_core.units import MM_PER_M
from softform_rig.reality import Reality
from softform_studies.sim_to_real.judge import Judge
from softform_studies.sim_to_real.kept_arrays import kept_true_surfaces
from softform_studies.sim_to_real.learners import Learners
from softform_studies.sim_to_real.ledger import Ledger
from softform_studies.sim_to_real.make_frames import (
    FRAMES_VERSION,
    TrueSurfaces,
    make_frames,
    make_marker_frames,
)
from softform_studies.studies.catalogue import Run

DISTANCE_EDGES = np.linspace(0.0, 8.0, 161)
"""Bins of the histograms of distances, mm."""

NORMAL_EDGES = np.linspace(0.0, 0.06, 61)
"""Bins of the histograms of normal errors (Eq. 21), capped at 0.06 as in Fig. 15: about 20 degrees."""

_TIMED_WARPS = 100_000
_REPEATS = 3


@dataclass(frozen=True)
class Captured:
    """Frames of one scanner setting with the judge of the held-out actuations."""

    frames: Frames
    missing: float
    judge: Judge


class Laboratory:
    """One robot, one reality, one seed; results of finished runs are looked up in the ledger.

    Args:
        robot: The robot.
        reality: Reality of the robot.
        frames: Captured frames; every run learns from the first of them.
        held_out: Actuations to judge at, the same for all runs.
        seed: Seed of actuations, scanner and training.
        folder: Folder of the ledger, of checkpoints and of true shapes.
        learned: N_fk and its card; the robot's own by default.
    """

    def __init__(
        self,
        robot: Robot,
        reality: Reality,
        frames: int,
        held_out: int,
        seed: int,
        folder: Path,
        learned: tuple[SavedNetwork, SurfaceKinematicsCard] | None = None,
    ) -> None:
        network, card = learned or load_forward_kinematics(robot)
        self._robot, self._reality = robot, reality
        self._frames, self._held_out, self._seed = frames, held_out, seed
        self._forward_kinematics = extract_mlp(network)
        self._ledger = Ledger(folder / "runs.jsonl")
        self._checkpoints, self._kept = folder / "checkpoints", folder / "shapes"
        self._prior = load_displacement_prior(robot)
        # Of the last run only: frames and models of a whole study would fill the memory.
        self._captured: dict[str, Captured] = {}
        self._trained: tuple[str, TrainedSimToReal] | None = None
        self._common = {
            "robot": robot.fingerprint(),
            "forward_kinematics": card.weights_sha256,
            "prior": None if self._prior is None else self._prior.sha256,
            "reality": reality.model_dump(mode="json"),
            "frames_version": FRAMES_VERSION,
            "captured": frames,
            "held_out": held_out,
            "seed": seed,
        }

    def perform(self, run: Run) -> dict[str, Any]:
        """The result of a run: from the ledger, or trained now and written there.

        Returns:
            The figures of `Judge.figures`, `train_s`, `missing` (share of the surface), `warp_s` (seconds for 1e5
            warps) where there is a warp, and counts of the histograms of distances and of normal errors.

        Raises:
            SoftformError: If the reality has no shape at an actuation, or training fails.
        """
        settings = {**self._common, **run.settings()}
        result = self._ledger.find(settings)
        if result is None:
            result = self._measure(run)
            self._ledger.keep(settings, result)
        return result

    def _measure(self, run: Run) -> dict[str, Any]:
        captured = self._capture(run)
        judge = captured.judge
        if run.method == "simulation_only":
            return self._result(captured, judge.predicted(None), None, 0.0)
        if run.method == "direct_learning":
            direct = self._learners(judge).directly(captured.frames.part(np.arange(run.frames)), run.direct)
            return self._result(captured, direct.points(judge.held_out.actuation, judge.uv), None, direct.seconds)
        trained = self._train(run, captured)
        if run.method == "direct_simulation":
            predicted = self._from_simulated_shapes(judge, trained.sim_to_real)
        else:
            predicted = judge.predicted(trained.sim_to_real)
        return self._result(captured, predicted, trained.sim_to_real, trained.seconds)

    @cached_property
    def _shapes(self) -> TrueSurfaces:
        """What all scanners and cameras of the study look at."""
        count = self._frames + self._held_out
        return kept_true_surfaces(self._robot, self._reality, count, self._seed, self._kept)

    def _learners(self, judge: Judge) -> Learners:
        return Learners(
            self._forward_kinematics,
            judge.patches,
            self._seed,
            checkpoints=self._checkpoints,
            prior=self._prior,
            alike=self._robot.alike_actuations,
        )

    def _train(self, run: Run, captured: Captured) -> TrainedSimToReal:
        """Train, unless the run before was trained just so and only judged otherwise."""
        method = "sim_to_real" if run.method == "direct_simulation" else run.method
        key = repr({**run.settings(), "method": method})
        if self._trained is not None and self._trained[0] == key:
            return self._trained[1]
        learners = self._learners(captured.judge)
        frames, _ = learners.fit_frames(captured.frames.part(np.arange(run.frames)), run.recipe)
        assert isinstance(frames, Frames)
        if method == "markers":
            marked, _, _ = make_marker_frames(
                self._robot, self._reality, run.frames, 0, missing=run.missing, seed=self._seed, shapes=self._shapes
            )
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
            scanner = self._reality.scanner.model_copy(update=dict(run.scanner))
            reality = self._reality.model_copy(update={"scanner": scanner})
            frames, held_out, missing = make_frames(
                self._robot, reality, self._frames, self._held_out, run.points, self._seed, self._shapes
            )
            judge = Judge(self._robot, self._forward_kinematics, held_out)
            self._captured = {key: Captured(frames, missing, judge)}
        return self._captured[key]

    def _from_simulated_shapes(self, judge: Judge, sim_to_real: SimToReal) -> Array:
        """Eq. 4 with control points fitted to the simulator's own shapes (Sec. V-C5), (n, P, 3) mm."""
        simulator, patches = self._robot.body.simulator(), judge.patches
        actuation, correction = judge.felt(sim_to_real), sim_to_real.actuation
        corrected = actuation if correction is None else correction.felt(actuation)
        shapes = equilibrium_points(simulator, self._robot.actuators_of(corrected))
        control = self._robot.parametrised(rest_points(simulator), simulator.faces).fit(MM_PER_M * shapes)
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


def _seconds_of_warps(judge: Judge, sim_to_real: SimToReal) -> float:
    """Seconds for 1e5 evaluations of Eq. 2 on one core, the best of three (Fig. 14)."""
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
