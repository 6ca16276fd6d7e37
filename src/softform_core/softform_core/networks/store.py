"""Model files: TorchScript weights with a card beside them, checked whenever they are read."""

import hashlib
import io
import json
import os
from pathlib import Path

import torch
from pydantic import ValidationError
from torch.jit import ScriptModule

from softform_core.errors import SoftformError
from softform_core.networks.card import SCHEMA, SCHEMA_VERSION, ModelCard
from softform_core.networks.forward_kinematics import ForwardKinematics
from softform_core.paths import models_dir
from softform_core.robots import Robot, load_robot

WEIGHTS_FILE = "forward_kinematics.pt"
CARD_FILE = "forward_kinematics.json"
PAGE_FILE = "README.md"


class ModelError(SoftformError):
    """A model file cannot be used."""


def export(network: ForwardKinematics) -> bytes:
    """TorchScript of a trained network, frozen in evaluation mode on the CPU."""
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(network.cpu().eval()), buffer)
    return buffer.getvalue()


def save_model(folder: Path, weights: bytes, card: ModelCard) -> None:
    """Write weights, card and page; each file replaces the old one at once, the card last.

    Args:
        folder: Made if missing.
        weights: From `export`.
        card: Its sha256 and size must be those of `weights`.

    Raises:
        ModelError: If the card belongs to other weights, or the files cannot be written.
    """
    if card.weights_sha256 != hashlib.sha256(weights).hexdigest() or card.weights_bytes != len(weights):
        raise ModelError("The card does not describe these weights.", "Make the card from the exported weights.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / WEIGHTS_FILE, weights)
        write_atomically(folder / PAGE_FILE, card.to_markdown().encode())
        write_atomically(folder / CARD_FILE, (card.model_dump_json(indent=2) + "\n").encode())
    except OSError as error:
        raise ModelError(
            f"The model could not be written to {folder}: {error.strerror or error}.",
            "Free disk space or mend the permissions, then train again: it goes on from its checkpoint.",
        ) from error


def load_forward_kinematics(robot: Robot | str, path: Path | str | None = None) -> tuple[ScriptModule, ModelCard]:
    """N_fk of a robot, ready to evaluate on the CPU.

    Args:
        robot: The robot or its name.
        path: Folder that holds the model; `models/<robot>` by default.

    Returns:
        The network, (n, k) Pa -> (n, rows, cols, 3) mm, and its card.

    Raises:
        ModelError: If the model is missing, corrupt, of another schema, or made for another robot.
    """
    robot = load_robot(robot) if isinstance(robot, str) else robot
    folder = models_dir() / robot.name if path is None else Path(path)
    card = read_card(folder, robot)
    if (
        card.robot != robot.name
        or card.robot_fingerprint != robot.fingerprint()
        or len(card.chambers) != robot.degrees_of_freedom
    ):
        raise ModelError(
            f"The model in {folder} was trained for robot '{card.robot}' with {len(card.chambers)} chambers "
            f"(description {card.robot_fingerprint}), not for '{robot.name}' with {robot.degrees_of_freedom} "
            f"({robot.fingerprint()}).",
            _train_again(robot),
        )
    weights_path = folder / WEIGHTS_FILE
    try:
        weights = weights_path.read_bytes()
    except OSError as error:
        raise ModelError(
            f"The model file {weights_path} cannot be read: {error.strerror}.", _train_again(robot)
        ) from error
    if hashlib.sha256(weights).hexdigest() != card.weights_sha256:
        raise ModelError(
            f"The model file {weights_path} is corrupt or truncated: {len(weights)} bytes whose sha256 differs from "
            f"that of its card ({card.weights_bytes} bytes).",
            f"Fetch both files again, or: {_train_again(robot)}",
        )
    try:
        network = torch.jit.load(io.BytesIO(weights), map_location="cpu")
    except RuntimeError as error:
        raise ModelError(
            f"The model file {weights_path} is no TorchScript that torch {torch.__version__} can read.",
            _train_again(robot),
        ) from error
    return network.eval(), card


def read_card(folder: Path, robot: Robot) -> ModelCard:
    """The card in a model folder.

    Raises:
        ModelError: If it is missing, unreadable, or of another schema.
    """
    path = folder / CARD_FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelError(f"There is no forward-kinematics model in {folder}.", _train_again(robot)) from error
    except (OSError, ValueError) as error:
        raise ModelError(f"The model card {path} cannot be read: {error}.", _train_again(robot)) from error
    found = (content.get("schema_name"), content.get("schema_version")) if isinstance(content, dict) else (None, None)
    if found != (SCHEMA, SCHEMA_VERSION):
        raise ModelError(
            f"The model card {path} has schema {found[0]} version {found[1]}, not {SCHEMA} version {SCHEMA_VERSION}.",
            _train_again(robot),
        )
    try:
        return ModelCard.model_validate(content)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise ModelError(f"The model card {path} is damaged: {faults}.", _train_again(robot)) from error


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file at once, so that no reader and no crash ever meets half of it.

    Raises:
        OSError: If the disk is full or cannot be written.
    """
    partial = path.with_name(path.name + ".partial")
    with open(partial, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def _train_again(robot: Robot) -> str:
    return f"Train it with: softform train fk --robot {robot.name}"
