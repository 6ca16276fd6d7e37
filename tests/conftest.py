"""The whole stack on the virtual rig, in real processes."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from softform_interfaces.msg import ActuatorState, DriverState
from softform_launch.launched_stack import LaunchedStack
from softform_ros.background_node import BackgroundNode
from softform_ros.qos import ACTUATOR_STATE_READER, LATCHED_STATE
from softform_ros.service_calls import call_driver
from softform_ros.stack_state import wait_until_active

sys.path.insert(0, str(Path(__file__).parent))  # for the helpers beside this file

if TYPE_CHECKING:
    from console_pages import Observer

AT_REST = 200.0  # Pa


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


@contextmanager
def started_stack(run_dir: Path, arguments: dict[str, str]) -> Iterator[RunningStack]:
    log_path = run_dir / "launch.log"
    given = {"run_dir": str(run_dir), **arguments}
    file = given.pop("launch", "softform")
    with (
        log_path.open("wb") as log,
        LaunchedStack(file, given, output=log) as launch,
    ):
        stack = RunningStack(launch, run_dir)
        try:
            # Each node that opens a simulation as its model solves shapes first.
            patience = 300.0 if given.get("model") == "fem" else 90.0
            wait_until_active("softform", patience, lambda: launch.exit_code is not None)
        except Exception as error:
            raise AssertionError(f"{error}\n{stack.log}") from error
        yield stack
        left = stack.processes()
        launch.stop()
    assert not [p for p in left if p.is_running() and p.status() != psutil.STATUS_ZOMBIE], "processes were left behind"


def bring_to_rest() -> None:
    """Stop and reset the robot, and wait until it is vented, or held by its brakes."""
    values: list[float] = []
    states: list[int] = []
    with BackgroundNode("operator", "/softform") as node:
        for service in ("stop", "reset"):
            answer = call_driver(node, service, 20.0)
            assert answer is not None and answer.success, answer
        node.create_subscription(
            ActuatorState,
            "actuator_state",
            lambda state: values.append(max(map(abs, state.value))),
            ACTUATOR_STATE_READER,
        )
        node.create_subscription(DriverState, "driver_state", lambda told: states.append(told.state), LATCHED_STATE)
        deadline = time.monotonic() + 20.0
        # What holds publishes no values until somebody has the lease.
        while states[-1:] != [DriverState.HOLDING] and (not values or values[-1] > AT_REST):
            assert time.monotonic() < deadline, f"not at rest: {values[-1:]}, state {states[-1:]}"
            time.sleep(0.05)


class Stacks:
    """The stack that runs; the next module gets the same one, at rest, as long as it is whole and launched alike."""

    def __init__(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self._tmp_path_factory = tmp_path_factory
        self._arguments: dict[str, str] = {}
        self._stack: RunningStack | None = None
        self._whole: set[int] = set()
        self._running = ExitStack()

    def launched_with(self, arguments: dict[str, str]) -> RunningStack:
        if self._stack is not None and arguments == self._arguments and self._is_whole():
            bring_to_rest()
            return self._stack
        self.close()
        self._arguments = arguments
        self._stack = self._running.enter_context(started_stack(self._tmp_path_factory.mktemp("stack"), arguments))
        self._whole = self._living()
        return self._stack

    def renew(self, stack: RunningStack) -> None:
        """Launch the stack anew; those that have it go on with it."""
        self.close()
        new = self.launched_with(self._arguments)
        stack.launch, stack.run_dir = new.launch, new.run_dir
        self._stack = stack

    def close(self) -> None:
        self._stack = None
        self._running.close()

    def _living(self) -> set[int]:
        assert self._stack is not None
        return {p.pid for p in self._stack.processes() if p.status() != psutil.STATUS_ZOMBIE}

    def _is_whole(self) -> bool:
        assert self._stack is not None
        return self._stack.launch.exit_code is None and self._whole <= self._living()


_STACKS = pytest.StashKey[Stacks]()


@pytest.fixture(scope="session")
def stacks(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, ros_domain: int
) -> Iterator[Stacks]:
    assert os.environ["ROS_DOMAIN_ID"] == str(ros_domain)
    stacks = request.config.stash[_STACKS] = Stacks(tmp_path_factory)
    yield stacks
    stacks.close()


@pytest.fixture
def own_stacks(stacks: Stacks) -> Iterator[Stacks]:
    """Stacks of one test: they end with it, also where it fails and is tried again."""
    yield stacks
    stacks.close()


@pytest.fixture(scope="module")
def stack(request: pytest.FixtureRequest, stacks: Stacks) -> RunningStack:
    """The stack, launched with the arguments in the module's `STACK`, if it has some; its `launch` is the file."""
    return stacks.launched_with(getattr(request.module, "STACK", {}))


@pytest.fixture
def address(stack: RunningStack) -> str:
    """The address of the operator's page."""
    from console_pages import address_of

    return address_of(stack)


@pytest.fixture
def observer(stack: RunningStack) -> Iterator["Observer"]:
    """What is heard of the robot on the ROS side, from rest on."""
    from console_pages import Observer

    one = Observer()
    one.wait_for(lambda: one.driver, "the driver")
    one.at_rest()
    yield one
    one.close()


@pytest.fixture(autouse=True)
def another_stack(request: pytest.FixtureRequest) -> None:
    """Give the second try of a test another stack: fixtures of modules are kept for it, with their faults."""
    if getattr(request.node, "execution_count", 1) > 1 and shared_stack(request.node) is not None:
        request.getfixturevalue("stacks").renew(request.getfixturevalue("stack"))


def shared_stack(item: pytest.Item) -> str | None:
    """The arguments of the stack that a test shares with others; None if it shares none."""
    shares = {"stack", "stacks"} <= set(getattr(item, "fixturenames", ()))
    return str(getattr(item.getparent(pytest.Module).obj, "STACK", {})) if shares else None


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End the stack that the next test does not share: that test may start nodes of the same names."""
    if _STACKS in item.config.stash and (nextitem is None or shared_stack(nextitem) != shared_stack(item)):
        item.config.stash[_STACKS].close()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests on stacks that are launched alike after each other, and those that end one behind them.

    They run in one worker of pytest-xdist, as do all tests of another file.
    """

    def order(item: pytest.Item) -> tuple[bool, str, bool]:
        shared = shared_stack(item)
        if shared is None:
            return False, "", False
        return True, shared, item.get_closest_marker("ends_stack") is not None

    items.sort(key=order)
    first_of_alike: dict[str, str] = {}
    for item in items:
        shared = shared_stack(item)
        group = item.path.stem if shared is None else first_of_alike.setdefault(shared, item.path.stem)
        item.add_marker(pytest.mark.xdist_group(group))
