"""A model on disk: TorchScript weights, a card for programs and a page for people, checked whenever they are read."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ValidationError

from softform_core.errors import SoftformError
from softform_core.files import write_atomically
from softform_core.networks.card import ModelCard
from softform_core.networks.saved_network import SavedNetwork
from softform_core.robots import Robot

AnyCard = TypeVar("AnyCard", bound=ModelCard)


class ModelError(SoftformError):
    """A model file cannot be used."""


def sha256(weights: bytes) -> str:
    """Return the SHA-256 by which a card names its weights."""
    return hashlib.sha256(weights).hexdigest()


@dataclass(frozen=True)
class ModelFiles(Generic[AnyCard]):
    """The files of one kind of model, and how they are written and read.

    Attributes:
        kind: Name of the model in messages.
        card_type: Type of the card.
        weights_file: Name of the weights.
        card_file: Name of the card.
        page_file: Name of the page.
        command: Trains such a model; `--robot` and the robot are added.
    """

    kind: str
    card_type: type[AnyCard]
    weights_file: str
    card_file: str
    page_file: str
    command: str

    def save(self, folder: Path, weights: bytes, card: AnyCard) -> None:
        """Write exported weights, page and card; each file replaces the old one at once, the card last.

        Raises:
            ModelError: If the card belongs to other weights, or the files cannot be written.
        """
        if card.weights_sha256 != sha256(weights) or card.weights_bytes != len(weights):
            raise ModelError("The card does not describe these weights.", "Make the card from the exported weights.")
        remedy = "Free disk space or correct the permissions, then train again; a surface goes on from its checkpoint."
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(folder / self.weights_file, weights)
            write_atomically(folder / self.page_file, card.to_markdown().encode())
            write_atomically(folder / self.card_file, (card.model_dump_json(indent=2) + "\n").encode())
        except (OSError, SoftformError) as error:
            reason = error.message if isinstance(error, SoftformError) else f"{error.strerror or error}."
            raise ModelError(f"The model could not be written to {folder}: {reason}", remedy) from error

    def read_card(self, folder: Path, robot: Robot) -> AnyCard:
        """Return the card in a model folder.

        Raises:
            ModelError: If it is missing, unreadable, of another schema, or of a model of another robot.
        """
        path = folder / self.card_file
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise ModelError(f"There is no {self.kind} model in {folder}.", self.train_again(robot)) from error
        except (OSError, ValueError) as error:
            raise ModelError(f"The model card {path} cannot be read: {error}.", self.train_again(robot)) from error
        fields = "schema_name", "schema_version", "model"
        expected = [self.card_type.model_fields[name].default for name in fields]
        found = [content.get(name) if isinstance(content, dict) else None for name in fields]
        if found != expected:
            name, version, model = expected
            raise ModelError(
                f"The model card {path} has schema {found[0]} version {found[1]} of model {found[2]}, not {name} "
                f"version {version} of model {model}.",
                self.train_again(robot),
            )
        try:
            card = self.card_type.model_validate(content)
        except ValidationError as error:
            faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise ModelError(f"The model card {path} is damaged: {faults}.", self.train_again(robot)) from error
        taken = [one.name for one in card.actuations]
        if card.robot != robot.name or card.robot_fingerprint != robot.fingerprint() or taken != robot.actuation_names:
            raise ModelError(
                f"The model in {folder} was trained for robot '{card.robot}' with the actuations {', '.join(taken)} "
                f"(description {card.robot_fingerprint}), not for '{robot.name}' with "
                f"{', '.join(robot.actuation_names)} ({robot.fingerprint()}).",
                self.train_again(robot),
            )
        return card

    def load(self, folder: Path, robot: Robot) -> tuple[SavedNetwork, AnyCard]:
        """Return the network and card in a model folder.

        Raises:
            ModelError: If the model is missing, corrupt, of another schema, or made for another robot.
        """
        card = self.read_card(folder, robot)
        path = folder / self.weights_file
        try:
            weights = path.read_bytes()
        except OSError as error:
            raise ModelError(
                f"The model file {path} cannot be read: {error.strerror}.", self.train_again(robot)
            ) from error
        if sha256(weights) != card.weights_sha256:
            raise ModelError(
                f"The model file {path} is corrupt or truncated: {len(weights)} bytes whose sha256 differs from "
                f"that of its card ({card.weights_bytes} bytes).",
                f"Fetch both files again, or: {self.train_again(robot)}",
            )
        try:
            return SavedNetwork(weights), card
        except ValueError as error:
            raise ModelError(
                f"The model file {path} is no TorchScript that Softform exported: {error}.", self.train_again(robot)
            ) from error

    def train_again(self, robot: Robot) -> str:
        """Return advice on a model that cannot be used."""
        return f"Train it with: {self.command} --robot {robot.given_as}"
