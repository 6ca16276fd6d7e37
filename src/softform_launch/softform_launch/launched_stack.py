"""A launch as a child of another program: the demo and the system tests start the stack with it."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from softform_launch.launch_runner import SIGKILL_AFTER, SIGTERM_AFTER
from softform_launch.process_signals import die_with_parent, hold_sigint


class LaunchedStack:
    """Runs a launch file while the `with` block lasts; ends with the program that started it, however that ends.

    Args:
        file: Path, or name in `launch/`.
        arguments: Launch arguments by name.
        output: Destination of the nodes' output (a file, or a `subprocess` constant); None shows it.
        environment: Variables set on top of this process's own.
    """

    def __init__(
        self,
        file: str | Path,
        arguments: Mapping[str, str] | None = None,
        output: IO[bytes] | int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        words = [f"{name}:={value}" for name, value in (arguments or {}).items()]
        self._command = [sys.executable, "-m", "softform_launch.cli_launch", "--no-page", str(file), *words]
        self._output = output
        self._environment = {**os.environ, **(environment or {})}
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "LaunchedStack":
        """Start the launch; the nodes come up in the background."""
        starter = os.getpid()

        def prepare() -> None:
            for number in (signal.SIGINT, signal.SIGTERM):  # by which `stop` ends it
                signal.signal(number, signal.SIG_DFL)
            hold_sigint()
            die_with_parent(starter)

        self.process = subprocess.Popen(
            self._command,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT if self._output is not None else None,
            start_new_session=True,
            preexec_fn=prepare,
        )
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def exit_code(self) -> int | None:
        """Exit code of the launch, None while it runs."""
        return self.process.poll() if self.process else None

    def stop(self) -> int:
        """Stop every node in order and return the launch's exit code."""
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(SIGTERM_AFTER + SIGKILL_AFTER + 10.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
