"""What the driver keeps between its runs, in one place of the machine for all checkouts."""

import os
import pwd
import re
from pathlib import Path

from softform_core.errors import SoftformError
from softform_core.run_folder import STATE_OVERRIDE

SHARED = Path("/var/lib/softform")
"""Made when the machine is set up, writable for the users of the robot; without it each user has their own.

Once it is there it is the place: a user who may not write there is latched, for nobody else would find their stop.
"""

OVERRIDE = STATE_OVERRIDE


def state_folders() -> list[Path]:
    """The folder of latches and offsets; then where a latch may lie that is from before there was the shared one.

    With `OVERRIDE` its folder is the only one.

    Raises:
        SoftformError: If there is no place for it.
    """
    if override := os.environ.get(OVERRIDE):
        return [Path(override)]
    folders = [SHARED] if os.path.lexists(SHARED) else []  # a link to a disk that is not mounted counts as there
    try:  # not by HOME or XDG_STATE_HOME: what one shell latches, the next one must find
        folders.append(Path(pwd.getpwuid(os.getuid()).pw_dir) / ".local" / "state" / "softform")
    except KeyError as error:
        if not folders:
            raise SoftformError(
                "This user has no home, and a fault could not stay latched.", f"Make {SHARED}, writable for the user."
            ) from error
    return folders


def state_file(adapter: str, what: str) -> Path:
    """The file of something, such as the `latch`, that is known of what is on an adapter or port.

    Raises:
        SoftformError: If there is no place for it.
    """
    return state_folders()[0] / f"{re.sub(r'[^A-Za-z0-9]+', '_', adapter).strip('_')}.{what}.json"
