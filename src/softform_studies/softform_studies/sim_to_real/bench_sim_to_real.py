"""Benchmark of how much of one reality's gap sim-to-real learning closes, beside floors and the paper's baselines.

Trained on frames only; judged by the distance of the predicted surface's points from the reality's true surface at
held-out actuations. Settings come from the recipe, which was chosen on validation frames.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import methodcaller

import numpy as np
import torch
from scipy.spatial import cKDTree
from scipy.stats import mannwhitneyu

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.executors import Executor, InProcess
from softform_core.frames.frames import Frames
from softform_core.robots import Robot
from softform_core.training.recipe import DEFAULT, Recipe
from softform_core.training.trained_sim_to_real import TrainedSimToReal
from softform_core.units import MM_PER_M
from softform_rig.reality import Reality
from softform_studies.sim_to_real.direct_learning import DirectLearning
from softform_studies.sim_to_real.judge import Judge
from softform_studies.sim_to_real.learners import Learners, Lesson, learn_all, recipe_for
from softform_studies.sim_to_real.make_frames import (
    MISSING_M,
    TrueSurfaces,
    make_captured,
    make_frames,
    make_marker_frames,
    true_surfaces,
)
from softform_studies.sim_to_real.reality_floors import floors


def confidence_map(trained: TrainedSimToReal, control_points: Array, points: Array) -> Array:
    """Return w_c(p) = N_conf(p, S^c), mean over the members, (n, P), 0 … 1.

    Args:
        trained: Learned from scans.
        control_points: (n, rows * cols * 3) mm, simulated.
        points: (n, P, 3) mm, simulated.

    Raises:
        SoftformError: If there is no N_conf, as after learning from markers.
    """
    if not trained.confidence:
        raise SoftformError("This model was learned from markers: it has no confidence map.", "Learn from scans.")
    shape = torch.from_numpy(trained.shape_input.normalised(control_points)).float()
    with torch.no_grad():
        members = [member(torch.from_numpy(points).float(), shape) for member in trained.confidence]
    return torch.stack(members).mean(dim=0).double().numpy()


def holes_auc(confidence: Array, surface: Array, scans: Sequence[Array], reach: float) -> float:
    """Return the area under the ROC curve of w_c as a detector of points that a scan does not show.

    Args:
        confidence: (n, P), from `confidence_map`, of the frames that were learned from.
        surface: (n, P, 3) where these points really are, or are predicted to a fraction of the reach.
        scans: n whole scans (m_j, 3), before they were thinned, in the unit of the surface.
        reach: A point further than this from every scanned one was not seen.

    Returns:
        0.5 for chance, 1 for a perfect detector; NaN if the scans have no holes.
    """
    seen = np.array([cKDTree(scan).query(points)[0] <= reach for points, scan in zip(surface, scans, strict=True)])
    return area_under_curve(confidence[seen], confidence[~seen])


def area_under_curve(shown: Array, hidden: Array) -> float:
    """Return how often a shown point has the higher confidence of a pair (Mann-Whitney; ties half); NaN if none."""
    if not len(shown) or not len(hidden):
        return float("nan")
    return float(mannwhitneyu(shown, hidden, method="asymptotic").statistic / (len(shown) * len(hidden)))


Say = Callable[[str], None]
Figures = dict[str, dict[str, float]]

MARKERS_MISSING_PERCENT = (2, 20)

_ALL_POINTS = 10**9


@dataclass(frozen=True)
class BenchSettings:
    """Numbers of frames, of points of a scan, and of other actuations at which the models are judged.

    Attributes:
        seed: Seed of actuations, scanner and training.
        baselines: Whether the paper's baselines and markers are learned from too, of a robot that is scanned.
        executor: Trains baselines and markers; ours is trained first in this process, so that its time counts.
    """

    frames: int = 40
    held_out: int = 20
    points: int = 1000
    seed: int = 0
    recipe: Recipe = DEFAULT
    baselines: bool = True
    executor: Executor = InProcess()
    progress: bool = False


def bench(robot: Robot, reality: Reality, settings: BenchSettings, say: Say) -> dict[str, object]:
    """Train on scans of a reality, or on markers where the robot wears many, and judge at other actuations.

    Returns:
        JSON-ready figures in mm, seconds, and shares by which the mean error and each shape's largest error fall.

    Raises:
        SoftformError: If N_fk is missing, the reality has no shape at an actuation, or training fails.
    """
    learners = Learners.of(robot, settings.seed, settings.progress)
    say(f"{reality.name}: {settings.frames} frames and {settings.held_out} held-out shapes")
    shapes = true_surfaces(robot, reality, settings.frames + settings.held_out, settings.seed)
    frames, held_out, missing = make_captured(
        robot, reality, settings.frames, settings.held_out, settings.points, settings.seed, shapes
    )
    judge = Judge(robot, learners.forward_kinematics, held_out)
    recipe = recipe_for(robot, settings.recipe)
    frames, unfit = learners.fit_frames(frames, recipe)
    for flag in unfit:
        say(f"  frame {flag.frame} is left out: {flag.reason}")
    say(f"  sim-to-real, recipe {recipe.name}")
    trained = learners.learn(frames, recipe)
    after = judge.errors(judge.predicted(trained.sim_to_real))
    reduction = judge.figures(after)
    auc = _confidence_auc(robot, reality, shapes, judge, trained, settings) if trained.confidence else math.nan
    say("  floors")
    measured_floors = floors(robot, reality, judge, trained.sim_to_real)
    baselines: Figures = {"simulation_only": judge.figures(judge.before)}
    markers: Figures = {}
    if settings.baselines and isinstance(frames, Frames):
        for name, figures in _compared(robot, reality, shapes, judge, learners, frames, settings, say).items():
            (markers if name.startswith("markers") else baselines)[name] = figures
    return {
        "reality": reality.name,
        "robot": robot.name,
        "recipe": recipe.name,
        "seed": settings.seed,
        "frames": settings.frames,
        "held_out": settings.held_out,
        "points": settings.points if isinstance(frames, Frames) else len(frames.uv),
        "missing": round(missing, 3),
        "left_out": [flag.frame for flag in unfit],
        "gap": measured_floors.gap,
        "mean_before_mm": round(judge.before.mean_mm, 4),
        "mean_after_mm": round(after.mean_mm, 4),
        "max_before_mm": round(judge.before.max_mm, 3),
        "max_after_mm": round(after.max_mm, 3),
        "mean_reduction": reduction["mean_reduction"],
        "max_reduction": reduction["max_reduction"],
        "largest_before_mm": round(judge.before.largest_mm, 3),
        "largest_after_mm": round(after.largest_mm, 3),
        "validation_mm": [round(error, 4) for error in trained.validation_mm],
        "train_s": round(trained.seconds, 1),
        "confidence_auc": None if math.isnan(auc) else round(auc, 3),
        "floors": measured_floors.figures,
        "baselines": baselines,
        **markers,
    }


def _confidence_auc(
    robot: Robot,
    reality: Reality,
    shapes: TrueSurfaces,
    judge: Judge,
    trained: TrainedSimToReal,
    settings: BenchSettings,
) -> float:
    """Return how well w_c finds the holes of its own training scans, which are taken again without thinning."""
    scans, _, _ = make_frames(robot, reality, settings.frames, 0, _ALL_POINTS, settings.seed, shapes)
    simulated = judge.pipeline(None)
    control_points = simulated.control_points(scans.actuation).reshape(len(scans), -1)
    confidence = confidence_map(trained, control_points, simulated.points(scans.actuation))
    effective = scans.effective(trained.sim_to_real.memory).actuation
    surface = judge.pipeline(trained.sim_to_real).points(effective) / MM_PER_M
    return holes_auc(confidence, surface, scans.clouds, MISSING_M)


def _compared(
    robot: Robot,
    reality: Reality,
    shapes: TrueSurfaces,
    judge: Judge,
    learners: Learners,
    frames: Frames,
    settings: BenchSettings,
    say: Say,
) -> Figures:
    """Return the paper's baselines from the same frames, and markers at the same actuations."""
    recipe = settings.recipe
    lessons: dict[str, Lesson] = {
        "direct_learning": methodcaller("directly", frames),
        "static_correspondences": methodcaller("from_static_correspondences", frames, recipe, False),
        "static_correspondences_without_holes": methodcaller("from_static_correspondences", frames, recipe, True),
        "fixed_confidence": methodcaller("with_fixed_confidence", frames, recipe),
    }
    shares = {}
    for percent in MARKERS_MISSING_PERCENT:
        name = f"markers_{percent}_percent"
        marked, _, shares[name] = make_marker_frames(
            robot, reality, settings.frames, 0, missing=percent / 100.0, seed=settings.seed, shapes=shapes
        )
        lessons[name] = methodcaller("from_markers", marked)
    found: Figures = {}
    for name, trained in learn_all(learners, lessons, settings.executor):
        say(f"  {name.replace('_', ' ')}")
        if isinstance(trained, DirectLearning):
            predicted = trained.points(judge.held_out.actuation, judge.uv)
        else:
            predicted = judge.predicted(trained.sim_to_real)
        found[name] = {**judge.figures(judge.errors(predicted)), "train_s": round(trained.seconds, 1)}
        if name in shares:
            found[name]["missing"] = round(shares[name], 4)
    return {name: found[name] for name in lessons}
