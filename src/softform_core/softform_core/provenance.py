"""Provenance of data and models: the command and the revision that made them."""

import shlex
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from softform_core.paths import home


def command_line() -> str:
    """Return the command that is running, as it was typed."""
    program = Path(sys.argv[0]).name
    return shlex.join(["softform" if program == "main.py" else program, *sys.argv[1:]])


def to_go_on(attributes: Mapping[str, object]) -> str:
    """Return the command that made a store (`made_now`) as it is typed to go on with it."""
    command = str(attributes["command"])
    return f"./{command}" if command.startswith("softform ") else command


def git_revision() -> str:
    """Return the revision of the checkout, with `-dirty` if files have changed since; `unknown` outside of one."""
    command = ["git", "-C", str(home()), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def now() -> str:
    """Return the time, for people and programs."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def made_now() -> dict[str, str]:
    """Return a store's record of its making: `command`, `git_revision` and `created`."""
    return {"command": command_line(), "git_revision": git_revision(), "created": now()}
