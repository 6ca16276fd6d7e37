"""How much of the gap sim-to-real learning closes: `python -m softform_rig.bench_sim_to_real REALITY` prints JSON.

Trained on scanner frames only; judged by the distance of the predicted surface's points to the reality's true surface
at held-out actuations. Settings come from the recipe, which was chosen on validation frames.
"""

import json
from pathlib import Path

import click
import numpy as np
import torch
import trimesh
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.kinematics.pipeline import ForwardPipeline, grid_uv
from softform_core.kinematics.rbf_warp import SimToReal
from softform_core.networks.layers import MlpWeights, extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.robots import Robot, load_robot
from softform_core.training.sim_to_real import train_sim_to_real
from softform_core.training.sim_to_real_recipes import RECIPES, Recipe
from softform_core.units import MM_PER_M
from softform_rig.make_frames import TrueSurfaces, make_frames
from softform_rig.reality import Reality, load_reality

Array = NDArray[np.float64]

_JUDGED_POINTS = 2500


def distances_to_truth(
    forward_kinematics: MlpWeights, sim_to_real: SimToReal | None, robot: Robot, held_out: TrueSurfaces
) -> Array:
    """Distances (n, P) mm from the points predicted at the held-out actuations to the true surfaces."""
    surface = robot.surface
    pipeline = ForwardPipeline(
        forward_kinematics, grid_uv(_JUDGED_POINTS), sim_to_real, surface.rows, surface.columns, surface.degree
    )
    predicted = pipeline.points(held_out.actuation)
    truths = (trimesh.Trimesh(MM_PER_M * shape, held_out.faces, process=False) for shape in held_out.vertices)
    pairs = zip(truths, predicted, strict=True)
    return np.array([trimesh.proximity.closest_point(truth, points)[1] for truth, points in pairs])


def bench(
    robot: Robot, reality: Reality, recipe: Recipe, frames: int, held_out: int, seed: int, progress: bool = False
) -> dict[str, object]:
    """Train on `frames` scans of a reality and judge at `held_out` other actuations.

    Returns:
        Figures in mm, seconds, and cuts as shares: of the mean error and of the largest error, each over all shapes.

    Raises:
        SoftformError: If the reality has no shape at an actuation, or training fails.
    """
    network, _ = load_forward_kinematics(robot)
    weights = extract_mlp(network)
    captured, truth, missing = make_frames(robot, reality, frames, held_out, seed=seed)
    surface = robot.surface
    trained = train_sim_to_real(
        weights, captured, recipe, seed, surface.rows, surface.columns, surface.degree, progress=progress
    )
    before = distances_to_truth(weights, None, robot, truth)
    after = distances_to_truth(weights, trained.sim_to_real, robot, truth)
    largest = after.max(axis=1).mean() / before.max(axis=1).mean()
    return {
        "reality": reality.name,
        "recipe": recipe.name,
        "seed": seed,
        "frames": frames,
        "held_out": held_out,
        "missing": round(missing, 3),
        "mean_before_mm": round(float(before.mean()), 4),
        "mean_after_mm": round(float(after.mean()), 4),
        "max_before_mm": round(float(before.max(axis=1).mean()), 3),
        "max_after_mm": round(float(after.max(axis=1).mean()), 3),
        "mean_reduction": round(1.0 - float(after.mean() / before.mean()), 4),
        "max_reduction": round(1.0 - float(largest), 4),
        "largest_before_mm": round(float(before.max()), 3),
        "largest_after_mm": round(float(after.max()), 3),
        "validation_mm": [round(error, 4) for error in trained.validation_mm],
        "train_s": round(trained.seconds, 1),
    }


@click.command()
@click.argument("reality")
@click.option("--robot", default="membrane", show_default=True, help="Robot, by name or path.")
@click.option("--recipe", type=click.Choice(sorted(RECIPES)), default="default", show_default=True)
@click.option("--frames", default=40, show_default=True, type=click.IntRange(min=5), help="Scans to learn from.")
@click.option("--held-out", default=20, show_default=True, type=click.IntRange(min=1), help="Actuations judged.")
@click.option("--seed", default=0, show_default=True, help="Of actuations, scanner and training.")
@click.option("--json", "report", type=click.Path(path_type=Path, dir_okay=False), help="Also write the figures here.")
def main(reality: str, robot: str, recipe: str, frames: int, held_out: int, seed: int, report: Path | None) -> None:
    """Print what sim-to-real learning does for REALITY (a name in config/realities or a file), as JSON."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        body = load_robot(robot)
        described = load_reality(reality, body)
        figures = bench(body, described, RECIPES[recipe], frames, held_out, seed, progress=True)
    except SoftformError as error:
        raise click.ClickException(str(error)) from error
    finally:
        torch.set_num_threads(threads)
    text = json.dumps(figures)
    if report is not None:
        report.write_text(text + "\n", encoding="utf-8")
    click.echo(text)


if __name__ == "__main__":
    main()
