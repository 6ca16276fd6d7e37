"""State of a training run on disk, replaced at once, so that a run killed at any moment goes on from it."""

import io
import pickle
from pathlib import Path
from typing import Any

import torch

from softform_core.errors import SoftformError
from softform_core.files import write_atomically

CHECKPOINT_FILE = "checkpoint.pt"
FINISHED_FILE = "finished.pt"
"""Of what has been trained to its end, while others of the same run have not."""


def save_checkpoint(folder: Path, state: dict[str, Any], name: str = CHECKPOINT_FILE) -> None:
    """Replace the checkpoint of this name in `folder`.

    Raises:
        SoftformError: If it cannot be written.
    """
    buffer = io.BytesIO()
    torch.save(state, buffer)
    try:
        write_atomically(folder / name, buffer.getvalue())
    except SoftformError as error:
        raise SoftformError(
            f"The checkpoint in {folder} could not be written: {error.message}",
            "The last one is kept. Free disk space and run the same command again.",
        ) from error


def load_checkpoint(folder: Path, name: str = CHECKPOINT_FILE) -> dict[str, Any] | None:
    """The checkpoint of this name in `folder`, None if there is none.

    Raises:
        SoftformError: If it is unreadable.
    """
    path = folder / name
    if not path.exists():
        return None
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, KeyError, pickle.UnpicklingError) as error:
        raise SoftformError(f"The checkpoint {path} is damaged.", f"Delete {folder} to begin anew.") from error


def remove_checkpoint(folder: Path) -> None:
    """Remove what a finished run was kept by."""
    for name in (CHECKPOINT_FILE, FINISHED_FILE):
        (folder / name).unlink(missing_ok=True)
