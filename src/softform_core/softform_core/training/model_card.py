"""The card of a freshly trained N_fk."""

import numpy as np

from softform_core.networks.card import surface_entries
from softform_core.networks.store import FORWARD_KINEMATICS
from softform_core.networks.surface_card import Architecture, Errors, SurfaceKinematicsCard, Training, TrainingData
from softform_core.robots import Robot
from softform_core.training.card_identity import card_identity, card_split
from softform_core.training.forward_kinematics import ForwardKinematicsRecipe, Trained
from softform_core.training.shapes import TrainingShapes


def make_card(
    robot: Robot, shapes: TrainingShapes, recipe: ForwardKinematicsRecipe, seed: int, trained: Trained, weights: bytes
) -> SurfaceKinematicsCard:
    """Describe a trained network."""
    origin = shapes.provenance
    network = trained.network
    return SurfaceKinematicsCard(
        **card_identity(robot, weights),
        surfaces=surface_entries(robot),
        architecture=Architecture(
            hidden=list(recipe.hidden),
            activation=recipe.activation,
            batch_norm=recipe.batch_norm,
            parameters=sum(parameter.numel() for parameter in network.parameters()),
        ),
        data=TrainingData(
            store=shapes.source,
            samples=len(shapes.actuation),
            symmetric_images=trained.images,
            simulation_seed=int(str(origin["seed"])) if "seed" in origin else None,
            simulation_command=str(origin["command"]),
            simulation_git_revision=str(origin["git_revision"]),
            simulation_created=str(origin["created"]),
        ),
        split=card_split(trained.split),
        training=Training(
            recipe=recipe.name,
            seed=seed,
            epochs=trained.epochs,
            best_epoch=trained.best_epoch,
            batch_size=recipe.batch_size,
            learning_rate=recipe.learning_rate,
            seconds=round(trained.seconds, 1),
            threads=1,
        ),
        errors_mm=_errors(shapes, trained),
        command=f"softform train fk --robot {robot.given_as} --recipe {recipe.name} --epochs {recipe.epochs} "
        f"--seed {seed}",
        weights_file=FORWARD_KINEMATICS.weights_file,
    )


def _errors(shapes: TrainingShapes, trained: Trained) -> Errors:
    split = trained.split
    train, validation, test = (trained.errors[part] for part in (split.train, split.validation, split.test))
    mean_shape = shapes.control_points[split.train].mean(axis=0)
    off_mean = np.linalg.norm(shapes.control_points[split.test] - mean_shape, axis=-1)
    return Errors(
        train_mean=train.mean(),
        train_max=train.max(),
        validation_mean=validation.mean(),
        validation_max=validation.max(),
        test_mean=test.mean(),
        test_max=test.max(),
        test_99_percentile=np.percentile(test.max(axis=1), 99.0),
        mean_shape_mean=off_mean.mean(),
        fit_mean=shapes.fit.mean.mean(),
        fit_max=shapes.fit.max.max(),
    )
