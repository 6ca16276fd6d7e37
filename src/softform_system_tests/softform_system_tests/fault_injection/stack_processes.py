"""The processes of a launched stack: found by the names of their nodes, and started again where a fault ended them.

A launch does not start again what ended, and neither does the bring-up manager: that is for people to decide. Here it
is decided.
"""

import contextlib
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from softform_launch.cli_launch import find_launch_file
from softform_launch.launch_file import ProcessDescription, load_launch_file
from softform_launch.launched_stack import LaunchedStack
from softform_launch.process_signals import die_with_parent
from softform_ros.stack_state import wait_until_active

LAUNCH_FILE = "softform"
START_SECONDS = 300.0
_NODE_WORD = "__node:="


class StackProcesses:
    """One launch, and what was started in place of processes that it lost."""

    def __init__(
        self, namespace: str, folder: Path, environment: Mapping[str, str], arguments: Callable[[], Mapping[str, str]]
    ) -> None:
        self._namespace, self._arguments = namespace, arguments
        self.environment = dict(environment)
        self._launch: LaunchedStack | None = None
        self._replacements: dict[str, subprocess.Popen[bytes]] = {}
        self._log = (folder / "launch.log").open("ab")

    @property
    def launch(self) -> psutil.Process:
        """The process of the launch, the one that its user sees."""
        assert self._launch is not None and self._launch.process is not None
        return psutil.Process(self._launch.process.pid)

    @property
    def has_launch(self) -> bool:
        """Whether the launch runs."""
        return self._launch is not None and self._launch.exit_code is None

    @property
    def is_patched(self) -> bool:
        """Whether a node runs that the launch did not start: its end is not the launch's matter."""
        return any(self._is_replaced(name) for name in self._replacements)

    def node(self, name: str) -> psutil.Process | None:
        """The process of a node, None if it does not run."""
        return self.nodes().get(name)

    def nodes(self) -> dict[str, psutil.Process]:
        """All nodes that run, by name."""
        replaced = {
            name: psutil.Process(process.pid) for name, process in self._replacements.items() if self._is_replaced(name)
        }
        return {**self.launched(), **replaced}

    def launched(self) -> dict[str, psutil.Process]:
        """Nodes of the launch that run, by name."""
        return nodes_below(self.launch) if self.has_launch else {}

    def relaunch(self) -> None:
        """End everything, then launch and wait until the stack is up.

        Raises:
            SoftformError: If it does not come up.
        """
        self.end()
        changed = {name: value for name, value in self.environment.items() if os.environ.get(name) != value}
        self._launch = LaunchedStack(LAUNCH_FILE, self._arguments(), self._log.fileno(), changed)
        self._launch.__enter__()
        wait_until_active(self._namespace, START_SECONDS, lambda: not self.has_launch)

    def replace(self, name: str, parameters: Sequence[str] = (), **changed: str) -> None:
        """Start a node that ended, as the launch file describes it.

        Some of its parameters, as `NAME:=VALUE`, and some variables of its environment may be changed.
        """
        described = self.described(name)
        words = [word for parameter in parameters for word in ("-p", parameter)]
        self._replacements[name] = self.start([*described.command, *words], **{**described.environment, **changed})

    def described(self, name: str) -> ProcessDescription:
        """How the launch file describes a node."""
        described = load_launch_file(find_launch_file(LAUNCH_FILE), self._arguments())
        return next(each for each in described if each.name == name)

    def start(self, command: list[str], **changed: str) -> subprocess.Popen[bytes]:
        """Start another program, which ends with this one."""
        this_process = os.getpid()
        return subprocess.Popen(
            command,
            env=self.environment | changed,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: die_with_parent(this_process),
        )

    def end(self) -> None:
        """End everything."""
        if self._launch is not None:
            self._launch.stop()
        for process in self._replacements.values():
            process.kill()
            process.wait()
        self._replacements.clear()

    def _is_replaced(self, name: str) -> bool:
        # One whose last threads are just ending has no exit code yet, and is a zombie.
        process = self._replacements.get(name)
        return process is not None and process.poll() is None and is_running(psutil.Process(process.pid))


def nodes_below(launch: psutil.Process) -> dict[str, psutil.Process]:
    """Nodes that run below the process of a launch, by name."""
    found = {}
    for process in launch.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            names = [word.removeprefix(_NODE_WORD) for word in process.cmdline() if word.startswith(_NODE_WORD)]
            if names and is_running(process):
                found[names[0]] = process
    return found


def is_running(process: psutil.Process) -> bool:
    """Whether it has not ended; a zombie has."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
