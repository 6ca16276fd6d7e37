"""What the cards of all models say alike."""

from typing import Any

import torch

from softform_core.networks.card import Split as CardSplit
from softform_core.networks.card import actuation_fields
from softform_core.networks.model_files import sha256
from softform_core.provenance import git_revision, now
from softform_core.robots import Robot
from softform_core.training.split import Split


def card_identity(robot: Robot, weights: bytes) -> dict[str, Any]:
    """Robot, revision, time and weights, from the exported weights."""
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
    """Samples in each part."""
    return CardSplit(train=len(split.train), validation=len(split.validation), test=len(split.test))
