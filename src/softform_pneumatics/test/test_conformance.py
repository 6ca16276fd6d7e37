"""The conformance test of device families, for pneumatic boards: the three emulated ones, on pseudo-terminals."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from softform_actuation import conformance
from softform_actuation.state_files import OVERRIDE
from softform_core.plant import load_plant
from softform_core.robots import Robot
from softform_rig.emulated_board import Sensors
from softform_rig.fault_schedule import FaultSchedule
from softform_rig.faults import parse_fault
from softform_rig.make_board import BoardName, make_board
from softform_rig.pseudo_terminal import PseudoTerminal

GOAL = np.linspace(2000.0, 4000.0, 9)
VENTED = {"openpneu_a": 150.0, "openpneu_b": 500.0, "binary": 150.0}
"""Pa. After a stale command a board is vented for half a second, then regulates zero; what is left then, a tenth of the
range at most, Protocol B lets out slowly (0.35 kPa after two seconds, 0.12 kPa after six)."""


@pytest.fixture(params=["openpneu_a", "openpneu_b", "binary"])
def bench(
    request: pytest.FixtureRequest,
    robot: Robot,
    wait_until: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[conformance.Bench]:
    monkeypatch.setenv(OVERRIDE, str(tmp_path))
    kind: BoardName = request.param
    schedule = FaultSchedule()
    board = make_board(kind, load_plant(), Sensors(noise=0.03))
    terminal = PseudoTerminal(board, tmp_path / "port", schedule)
    schedule.begin()
    terminal.start()

    def pull_cable() -> None:
        schedule.inject(parse_fault("disconnect"))
        wait_until(lambda: not terminal.link.is_symlink())

    yield conformance.Bench(
        robot=robot.name,
        values={"port": str(terminal.link), "board": kind},
        goal=GOAL,
        tolerance=400.0,
        true_values=lambda: 1000.0 * board.pressures()[robot.channels],
        is_safe=lambda: bool(1000.0 * np.abs(board.pressures()).max() < VENTED[kind]),
        safe_seconds=2.0,
        pull_cable=pull_cable,
        plug_in=schedule.clear,
    )
    terminal.stop()


@pytest.mark.parametrize("check", conformance.CHECKS)
def test_conformance(check: conformance.Check, bench: conformance.Bench) -> None:
    check(bench)
