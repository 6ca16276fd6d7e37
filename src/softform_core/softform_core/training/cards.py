"""Cards of freshly trained models."""

from typing import Any

import numpy as np
import torch

from softform_core.forward.sim_to_real_export import SimToRealNetwork
from softform_core.forward.sim_to_real_store import SIM_TO_REAL
from softform_core.networks.card import KinematicsReference, ModelCard, actuation_fields, surface_entries
from softform_core.networks.card import Split as CardSplit
from softform_core.networks.model_files import sha256
from softform_core.networks.sim_to_real_card import FramesUsed, HeldOutErrors, SurfaceSimToRealCard, Training, Transfer
from softform_core.networks.store import FORWARD_KINEMATICS
from softform_core.networks.surface_card import Architecture, Errors, SurfaceKinematicsCard, TrainingData
from softform_core.networks.surface_card import Training as KinematicsTraining
from softform_core.provenance import git_revision, now
from softform_core.robots import Robot
from softform_core.training.forward_kinematics import ForwardKinematicsRecipe, Trained
from softform_core.training.shapes import TrainingShapes
from softform_core.training.split import Split
from softform_core.training.trained_sim_to_real import TrainedSimToReal


def card_identity(robot: Robot, weights: bytes) -> dict[str, Any]:
    """Return the robot, revision, time and weights, from the exported weights."""
    return {
        "robot": robot.name,
        "robot_fingerprint": robot.fingerprint(),
        **actuation_fields(robot),
        "git_revision": git_revision(),
        "created": now(),
        "torch_version": torch.__version__,
        "weights_bytes": len(weights),
        "weights_sha256": sha256(weights),
    }


def card_split(split: Split) -> CardSplit:
    """Return samples in each part."""
    return CardSplit(train=len(split.train), validation=len(split.validation), test=len(split.test))


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
            simulation_seed=origin.get("seed"),
            simulation_command=origin["command"],
            simulation_git_revision=origin["git_revision"],
            simulation_created=origin["created"],
        ),
        split=card_split(trained.split),
        training=KinematicsTraining(
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


def network_of(robot: Robot, trained: TrainedSimToReal) -> SimToRealNetwork:
    """Return the network of a trained transfer that is exported."""
    return SimToRealNetwork(trained.members, trained.spread_factor, trained.spread_floor_mm, robot.patches)


def make_sim_to_real_card(
    robot: Robot,
    forward_kinematics: ModelCard,
    trained: TrainedSimToReal,
    frames: FramesUsed,
    training: Training,
    errors: HeldOutErrors,
    weights: bytes,
    command: str,
) -> SurfaceSimToRealCard:
    """Describe a trained transfer.

    Args:
        robot: The robot.
        forward_kinematics: Card of the N_fk that it corrects.
        trained: Result of training.
        frames: Frames that were learned from.
        training: Settings of the training.
        errors: Errors on held-out frames.
        weights: Exported weights.
        command: Makes it again.
    """
    network, memory = trained.members[0].coefficients, trained.sim_to_real.memory
    ranges = robot.actuation_max - robot.actuation_min
    return SurfaceSimToRealCard(
        **card_identity(robot, weights),
        surfaces=surface_entries(robot),
        forward_kinematics=KinematicsReference(weights_sha256=forward_kinematics.weights_sha256),
        transfer=Transfer(
            members=len(trained.members),
            kernels=len(trained.sim_to_real.kernel_uv),
            kernel_width_per_mm2=trained.sim_to_real.width,
            hidden=[len(bias) for bias in network.biases[:-1]],
            activation=network.activation,
            spread_factor=trained.spread_factor,
            spread_floor_mm=trained.spread_floor_mm,
            play=0.0 if memory is None else float(np.clip((memory.lag / ranges).mean(), 0.0, 1.0)),
        ),
        frames=frames,
        training=training,
        errors_mm=errors,
        command=command,
        weights_file=SIM_TO_REAL.weights_file,
    )
