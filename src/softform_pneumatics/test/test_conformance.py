"""The conformance test of device families, for pneumatic boards: the three emulated ones, on pseudo-terminals."""

from collections.abc import Iterator

import numpy as np
import pytest

from softform_actuation import conformance
from softform_actuation.state_files import OVERRIDE
from softform_core.plant import load_plant
from softform_core.robots import load_robot
from softform_rig.board_emulation import make_board
from softform_rig.emulated_board import Sensors
from softform_rig.fault_schedule import FaultSchedule
from softform_rig.faults import parse_fault
from softform_rig.pseudo_terminal import PseudoTerminal
from softform_rig.rig_settings import BoardName

GOAL = np.linspace(2000.0, 4000.0, 9)
VENTED = 150.0  # Pa


BOARDS = [pytest.param(kind, marks=pytest.mark.xdist_group(kind)) for kind in ("openpneu_a", "openpneu_b", "binary")]
"""Each in a worker of its own: the checks of one wait for minutes."""


@pytest.fixture(scope="module", params=BOARDS)
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[conformance.Bench]:
    """One board and one driver for all checks, which are made in their order."""
    kind: BoardName = request.param
    folder, robot = tmp_path_factory.mktemp(kind), load_robot("membrane")
    channels = robot.devices[0].channels
    board = make_board(kind, load_plant(), Sensors(noise=0.03))
    schedule = FaultSchedule()
    terminal = PseudoTerminal(board, folder / "port", schedule)
    terminal.start()

    bench = conformance.Bench(
        robot=robot.name,
        values={"port": str(terminal.link), "board": kind, "follow_timeout": 1.0},
        goal=GOAL,
        tolerance=400.0,
        true_values=lambda: 1000.0 * board.pressures()[channels],
        is_safe=lambda: bool(1000.0 * np.abs(board.pressures()).max() < VENTED),
        safe_seconds=2.0,
        pull_cable=terminal.pull_cable,
        plug_in=terminal.plug_in,
        block=lambda: schedule.inject(parse_fault(f"stuck_valve={channels[-1]}")),
        free=schedule.clear,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(OVERRIDE, str(folder))
        yield bench
        bench.close()
    terminal.stop()


@pytest.mark.parametrize("check", conformance.CHECKS)
def test_conformance(check: conformance.Check, bench: conformance.Bench) -> None:
    check(bench)
