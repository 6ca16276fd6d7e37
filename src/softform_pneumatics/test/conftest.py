"""Scripted boards on real pseudo-terminals, in real time; a test that overrides `clock` has them without either."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for the helpers beside this file

from scripted_board import ScriptedBoard, TerminalBoard  # noqa: E402
from stepped import SteppedBoard, SteppedClock  # noqa: E402

from softform_actuation.assembly import served_by_devices  # noqa: E402
from softform_actuation.clock import Clock  # noqa: E402
from softform_actuation.device import ServedActuators  # noqa: E402
from softform_core.robots import Robot, load_robot  # noqa: E402


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make_board(clock: Clock) -> Iterator[Callable[[], ScriptedBoard]]:
    """Boards, one after the other."""
    boards: list[TerminalBoard | SteppedBoard] = []

    def make() -> ScriptedBoard:
        board = SteppedBoard(clock) if isinstance(clock, SteppedClock) else TerminalBoard()
        boards.append(board)
        board.start()
        return board

    yield make
    for board in boards:
        board.unplug()


@pytest.fixture
def scripted_board(make_board: Callable[[], ScriptedBoard]) -> ScriptedBoard:
    return make_board()


@pytest.fixture
def robot() -> Robot:
    return load_robot("membrane")


@pytest.fixture
def served(robot: Robot) -> ServedActuators:
    """The membrane's chambers on its one board."""
    return served_by_devices(robot)[0]


@pytest.fixture
def wait_until(clock: Clock) -> Callable[..., None]:
    def wait(condition: Callable[[], bool], seconds: float = 15.0) -> None:
        deadline = clock.now() + seconds
        while not condition():
            assert clock.now() < deadline, "what was waited for did not happen"
            clock.sleep(0.005)

    return wait
