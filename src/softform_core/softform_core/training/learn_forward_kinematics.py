"""Train N_fk from simulated shapes and write it with its card."""

from dataclasses import replace
from pathlib import Path

from softform_core.networks.saved_network import export
from softform_core.networks.store import FORWARD_KINEMATICS
from softform_core.networks.surface_card import SurfaceKinematicsCard
from softform_core.robots import Robot
from softform_core.training.cards import make_card
from softform_core.training.forward_kinematics import (
    RECIPES,
    ForwardKinematicsRecipe,
    forget_run,
    train_forward_kinematics,
)
from softform_core.training.shapes import TrainingShapes

__all__ = ["learn_forward_kinematics", "recipe_for"]


def recipe_for(robot: Robot, name: str = "default") -> ForwardKinematicsRecipe:
    """Return a recipe of this name with what the robot's description says of its networks."""
    told, recipe = robot.networks, replace(RECIPES[name], hidden=tuple(robot.networks.forward_kinematics))
    if name == "default":
        recipe = replace(recipe, activation=told.activation, epochs=told.epochs or recipe.epochs)
    return recipe


def learn_forward_kinematics(
    robot: Robot,
    shapes: TrainingShapes,
    recipe: ForwardKinematicsRecipe,
    seed: int,
    checkpoints: Path,
    folder: Path,
    *,
    device: str = "cpu",
    progress: bool = True,
) -> SurfaceKinematicsCard:
    """Train N_fk and write it to `folder`; `checkpoints` and all others as of `train_forward_kinematics`.

    Raises:
        SoftformError: As there, or if the model cannot be written.
    """
    trained = train_forward_kinematics(robot, shapes, recipe, seed, checkpoints, device=device, progress=progress)
    weights = export(trained.network)
    card = make_card(robot, shapes, recipe, seed, trained, weights)
    FORWARD_KINEMATICS.save(folder, weights, card)
    forget_run(shapes, recipe, seed, checkpoints)
    return card
