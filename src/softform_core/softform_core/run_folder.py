"""Folders of their own for what one run writes."""

import time
from datetime import datetime
from pathlib import Path

from softform_core.errors import SoftformError
from softform_core.paths import runs_dir


def new_run_folder(kind: str) -> Path:
    """Make and return `runs/KIND-DATE-TIME`, with a number behind it if that exists.

    Raises:
        SoftformError: If it cannot be made.
    """
    stem = f"{kind}-{time.strftime('%Y%m%d-%H%M%S')}"
    number = 1
    while True:
        folder = runs_dir() / (stem if number == 1 else f"{stem}-{number}")
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:
            number += 1
        except OSError as error:
            raise SoftformError(
                f"The folder {folder} cannot be made: {error.strerror}.",
                "Free space or permissions, or set SOFTFORM_RUNS to another place.",
            ) from error


def free_bag_folder(parent: str = "") -> Path:
    """Return `DATE-TIME` in a folder; by default in `bags` in the folder of runs."""
    return Path(parent or runs_dir() / "bags") / datetime.now().strftime("%Y-%m-%d-%H-%M-%S")


STATE_OVERRIDE = "SOFTFORM_STATE"
"""Environment variable with the folder of latches, which tests, benchmarks and virtual rigs set apart."""


def own_state(folder: Path) -> dict[str, str]:
    """Return variables by which drivers on the virtual rig keep their latches in the run's folder."""
    return {STATE_OVERRIDE: str(folder / "state")}
