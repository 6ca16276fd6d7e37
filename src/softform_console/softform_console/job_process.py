"""Becomes a command of Softform that gives way to whatever steers a robot, and ends with the console.

`python -m softform_console.job_process PARENT PROGRAM …`: PARENT is the id of the process that starts it.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

from softform_launch.process_signals import die_with_parent

_NICE = 19


def main() -> None:
    """Give way, and run the program in place of this one."""
    die_with_parent(int(sys.argv[1]))
    os.nice(_NICE)
    with suppress(OSError):  # Linux may share cores out by session before it looks at `nice`
        Path("/proc/self/autogroup").write_text(str(_NICE))
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
