"""How much of one reality's gap sim-to-real learning closes, beside its floors and the paper's baselines.

Trained on frames only; judged by the distance of the predicted surface's points from the reality's true surface at
held-out actuations. Settings come from the recipe, which was chosen on validation frames.
"""

from collections.abc import Callable
from dataclasses import dataclass

from softform_core.networks.layers import MlpWeights, extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.robots import Robot
from softform_core.training.frames import Frames
from softform_core.training.sim_to_real import train_sim_to_real
from softform_core.training.sim_to_real_recipes import DEFAULT, Recipe
from softform_rig.baselines import direct_learning, fixed_confidence
from softform_rig.floors import floors
from softform_rig.judge import Judge
from softform_rig.make_frames import make_frames
from softform_rig.reality import Reality

Say = Callable[[str], None]


@dataclass(frozen=True)
class BenchSettings:
    """What is measured.

    Attributes:
        frames: Number of captured frames to learn from.
        held_out: Number of other actuations to judge at.
        points: Points of each scan.
        seed: Of actuations, scanner and training.
        recipe: Of our training.
        baselines: Whether the paper's baselines are trained too.
        progress: Whether progress bars are shown, on standard error.
    """

    frames: int = 40
    held_out: int = 20
    points: int = 1000
    seed: int = 0
    recipe: Recipe = DEFAULT
    baselines: bool = True
    progress: bool = False


def bench(robot: Robot, reality: Reality, settings: BenchSettings, say: Say) -> dict[str, object]:
    """Train on scans of a reality and judge at other actuations.

    Args:
        robot: The robot; its trained N_fk must be there.
        reality: What the frames are captured from.
        settings: What is measured.
        say: Told of each step.

    Returns:
        JSON-ready figures in mm, seconds, and shares by which the mean error and each shape's largest error fall.

    Raises:
        SoftformError: If the reality has no shape at an actuation, or training fails.
    """
    network, _ = load_forward_kinematics(robot)
    forward_kinematics = extract_mlp(network)
    say(f"{reality.name}: {settings.frames} frames and {settings.held_out} held-out shapes")
    frames, held_out, missing = make_frames(
        robot, reality, settings.frames, settings.held_out, settings.points, settings.seed
    )
    judge = Judge(robot, forward_kinematics, held_out)
    grid, recipe, seed = judge.grid, settings.recipe, settings.seed
    say(f"{reality.name}: training, recipe {recipe.name}")
    trained = train_sim_to_real(
        forward_kinematics, frames, recipe, seed, grid.rows, grid.cols, grid.degree, progress=settings.progress
    )
    after = judge.errors(judge.predicted(trained.sim_to_real))
    reduction = judge.figures(after)
    say(f"{reality.name}: floors")
    measured_floors = floors(robot, reality, judge, trained.sim_to_real)
    baselines: dict[str, dict[str, float]] = {"simulation_only": judge.figures(judge.before)}
    if settings.baselines:
        say(f"{reality.name}: baselines")
        baselines |= _baselines(judge, forward_kinematics, frames, settings)
    return {
        "reality": reality.name,
        "robot": robot.name,
        "recipe": recipe.name,
        "seed": seed,
        "frames": settings.frames,
        "held_out": settings.held_out,
        "points": settings.points,
        "missing": round(missing, 3),
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
        "floors": measured_floors.figures,
        "baselines": baselines,
    }


def _baselines(
    judge: Judge, forward_kinematics: MlpWeights, frames: Frames, settings: BenchSettings
) -> dict[str, dict[str, float]]:
    seed, progress = settings.seed, settings.progress
    found = {
        "direct_learning": direct_learning(judge, forward_kinematics, frames, seed, progress=progress),
        "fixed_confidence": fixed_confidence(judge, forward_kinematics, frames, settings.recipe, seed, progress),
    }
    return {name: baseline.figures(judge) for name, baseline in found.items()}
