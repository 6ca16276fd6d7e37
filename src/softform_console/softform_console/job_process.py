"""Becomes a command of Softform that ends with the console, and gives way to whatever steers a robot, if it does not.

`python -m softform_console.job_process PARENT NICE PROGRAM …`: PARENT is the id of the process that starts it.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

from softform_launch.process_signals import die_with_parent


def main() -> None:
    """Give way, and run the program in place of this one."""
    die_with_parent(int(sys.argv[1]))
    nice = int(sys.argv[2])
    os.nice(nice)
    with suppress(OSError):  # Linux may share cores out by session before it looks at `nice`
        Path("/proc/self/autogroup").write_text(str(nice))
    os.execv(sys.argv[3], sys.argv[3:])


if __name__ == "__main__":
    main()
