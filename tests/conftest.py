"""The whole stack on the virtual rig, in real processes."""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from softform_launch.launched_stack import LaunchedStack
from softform_ros.stack_state import wait_until_active

sys.path.insert(0, str(Path(__file__).parent))  # for the helpers beside this file


@dataclass
class RunningStack:
    launch: LaunchedStack
    run_dir: Path

    @property
    def log(self) -> str:
        return (self.run_dir / "launch.log").read_text(encoding="utf-8", errors="replace")

    def processes(self) -> list[psutil.Process]:
        """The launch and everything below it."""
        launch = psutil.Process(self.launch.process.pid)
        return [launch, *launch.children(recursive=True)]

    def process(self, word: str) -> psutil.Process:
        """The node whose command line holds `word`."""
        return next(p for p in self.processes() if any(word in part for part in p.cmdline()))


def started_stack(run_dir: Path, **arguments: str) -> Iterator[RunningStack]:
    log_path = run_dir / "launch.log"
    with (
        log_path.open("wb") as log,
        LaunchedStack("softform", {"run_dir": str(run_dir), **arguments}, output=log) as launch,
    ):
        stack = RunningStack(launch, run_dir)
        try:
            wait_until_active("softform", 90.0, lambda: launch.exit_code is not None)
        except Exception as error:
            raise AssertionError(f"{error}\n{stack.log}") from error
        yield stack
        left = stack.processes()
        launch.stop()
    assert not [p for p in left if p.is_running() and p.status() != psutil.STATUS_ZOMBIE], "processes were left behind"


@pytest.fixture(scope="module")
def stack(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, ros_domain: int
) -> Iterator[RunningStack]:
    """One stack for all tests of a module, launched with the arguments in its `STACK`, if it has some."""
    assert os.environ["ROS_DOMAIN_ID"] == str(ros_domain)
    yield from started_stack(tmp_path_factory.mktemp("stack"), **getattr(request.module, "STACK", {}))
