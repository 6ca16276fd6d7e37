"""How much of one reality's gap sim-to-real learning closes, beside its floors and the paper's baselines.

Trained on frames only; judged by the distance of the predicted surface's points from the reality's true surface at
held-out actuations. Settings come from the recipe, which was chosen on validation frames.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from softform_core.executors import Executor, InProcess
from softform_core.frames.frames import Frames
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.robots import Robot
from softform_core.training.displacement_prior import load_displacement_prior
from softform_core.training.recipe import Recipe
from softform_core.training.sim_to_real_recipes import DEFAULT
from softform_core.training.trained_sim_to_real import TrainedSimToReal
from softform_core.units import MM_PER_M
from softform_rig.reality import Reality
from softform_studies.sim_to_real.confidence import confidence_map, holes_auc
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

Say = Callable[[str], None]
Figures = dict[str, dict[str, float]]

MARKERS_MISSING_PERCENT = (2, 20)

_ALL_POINTS = 10**9


@dataclass(frozen=True)
class BenchSettings:
    """What is measured.

    Attributes:
        frames: Number of captured frames to learn from.
        held_out: Number of other actuations to judge at.
        points: Points of each scan.
        seed: Seed of actuations, scanner and training.
        recipe: Recipe of the training.
        baselines: Whether the paper's baselines and markers are learned from too, of a robot that is scanned.
        executor: Where baselines and markers are trained; ours is trained first and here, so that its time counts.
        progress: Whether progress bars are shown, on standard error.
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
    network, _ = load_forward_kinematics(robot)
    forward_kinematics = extract_mlp(network)
    say(f"{reality.name}: {settings.frames} frames and {settings.held_out} held-out shapes")
    shapes = true_surfaces(robot, reality, settings.frames + settings.held_out, settings.seed)
    frames, held_out, missing = make_captured(
        robot, reality, settings.frames, settings.held_out, settings.points, settings.seed, shapes
    )
    judge = Judge(robot, forward_kinematics, held_out)
    recipe, seed = recipe_for(robot, settings.recipe), settings.seed
    prior = load_displacement_prior(robot)
    learners = Learners(
        forward_kinematics, judge.patches, seed, settings.progress, prior=prior, alike=robot.alike_actuations
    )
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
        "seed": seed,
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
    """How well w_c finds the holes of the scans it was learned from; the same scans are taken again, not thinned."""
    scans, _, _ = make_frames(robot, reality, settings.frames, 0, _ALL_POINTS, settings.seed, shapes)
    simulated = judge.pipeline(None)
    control_points = simulated.control_points(scans.actuation).reshape(len(scans), -1)
    confidence = confidence_map(trained, control_points, simulated.points(scans.actuation))
    felt = scans.felt(trained.sim_to_real.play).actuation
    surface = judge.pipeline(trained.sim_to_real).points(felt) / MM_PER_M
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
    """The paper's baselines from the same frames, and markers at the same actuations."""
    recipe = settings.recipe
    lessons = {
        "direct_learning": Lesson("directly", (frames,)),
        "static_correspondences": Lesson("from_static_correspondences", (frames, recipe, False)),
        "static_correspondences_without_holes": Lesson("from_static_correspondences", (frames, recipe, True)),
        "fixed_confidence": Lesson("with_fixed_confidence", (frames, recipe)),
    }
    shares = {}
    for percent in MARKERS_MISSING_PERCENT:
        name = f"markers_{percent}_percent"
        marked, _, shares[name] = make_marker_frames(
            robot, reality, settings.frames, 0, missing=percent / 100.0, seed=settings.seed, shapes=shapes
        )
        lessons[name] = Lesson("from_markers", (marked,))
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
