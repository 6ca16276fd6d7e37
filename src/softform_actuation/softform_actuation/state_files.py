"""What the driver keeps between its lives, in one place of the machine whatever checkout it runs from."""

import os
import re
from pathlib import Path

from softform_core.errors import SoftformError

SHARED = Path("/var/lib/softform")
"""Made by whoever installs the machine, writable for the users of the robot; without it each user has their own."""

OVERRIDE = "SOFTFORM_STATE"
"""Environment variable by which tests, and nothing else, keep their latches apart from the machine's."""


def state_folder() -> Path:
    """The folder of latches and offsets.

    Raises:
        SoftformError: If there is no place for it.
    """
    if override := os.environ.get(OVERRIDE):
        return Path(override)
    if SHARED.is_dir() and os.access(SHARED, os.W_OK | os.X_OK):
        return SHARED
    if state := os.environ.get("XDG_STATE_HOME"):
        return Path(state) / "softform"
    try:
        return Path.home() / ".local" / "state" / "softform"
    except RuntimeError as error:
        raise SoftformError(
            "This user has no home, and a fault could not stay latched.", f"Make {SHARED} writable."
        ) from error


def state_file(adapter: str, what: str) -> Path:
    """The file of something that is known of what is on an adapter or port.

    Args:
        adapter: Its name, as in `DeviceFamily.adapters`.
        what: Such as `latch`.

    Raises:
        SoftformError: If there is no place for it.
    """
    return state_folder() / f"{re.sub(r'[^A-Za-z0-9]+', '_', adapter).strip('_')}.{what}.json"
