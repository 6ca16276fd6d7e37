"""What the driver keeps between its runs, in one place of the machine for all checkouts."""

import os
import pwd
import re
from pathlib import Path

from softform_core.errors import SoftformError
from softform_core.run_folder import STATE_OVERRIDE

SHARED = Path("/var/lib/softform")
"""Made when the machine is set up, writable for the users of the robot; without it each user has their own."""

OVERRIDE = STATE_OVERRIDE


def state_folder() -> Path:
    """The folder of latches and offsets.

    Raises:
        SoftformError: If there is no place for it.
    """
    if override := os.environ.get(OVERRIDE):
        return Path(override)
    if SHARED.is_dir() and os.access(SHARED, os.W_OK | os.X_OK):
        return SHARED
    try:  # not by HOME or XDG_STATE_HOME: what one shell latches, the next one must find
        return Path(pwd.getpwuid(os.getuid()).pw_dir) / ".local" / "state" / "softform"
    except KeyError as error:
        raise SoftformError(
            "This user has no home, and a fault could not stay latched.", f"Make {SHARED} writable."
        ) from error


def state_file(adapter: str, what: str) -> Path:
    """The file of something, such as the `latch`, that is known of what is on an adapter or port.

    Raises:
        SoftformError: If there is no place for it.
    """
    return state_folder() / f"{re.sub(r'[^A-Za-z0-9]+', '_', adapter).strip('_')}.{what}.json"
