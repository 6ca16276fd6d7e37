"""The driver and the three emulated boards, written apart from each other from docs/boards.md."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from softform_actuation.assembly import make_driver, parameters_of
from softform_actuation.conformance import now
from softform_actuation.driver import Driver
from softform_actuation.parameters import PARAMETERS
from softform_actuation.serial_link import SerialLink
from softform_actuation.states import State
from softform_core.plant import load_plant
from softform_core.robots import load_robot
from softform_pneumatics.boards.binary_board import BinaryBoard
from softform_rig.board_emulation import make_board
from softform_rig.emulated_board import Sensors
from softform_rig.fault_schedule import FaultSchedule
from softform_rig.faults import parse_fault
from softform_rig.pseudo_terminal import PseudoTerminal

ROBOT = load_robot("membrane")
GOAL = np.linspace(2000.0, 4000.0, 9)
NAMES = {"openpneu_a": "OpenPneu2.0", "openpneu_b": "Protocol B", "binary": "modules 1 with firmware"}


class Bench:
    """An emulated board on a port, and drivers for it."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder, self.port = kind, folder, folder / "port"
        self.schedule = FaultSchedule()
        self.board = make_board(kind, load_plant(), Sensors(noise=0.03))  # type: ignore[arg-type]
        self.terminal = PseudoTerminal(self.board, self.port, self.schedule)
        self.terminal.start()
        self.schedule.begin()

    def connected_driver(self, board: str = "auto") -> Driver:
        values = {row.name: row.default for row in (*PARAMETERS, *parameters_of(ROBOT))}
        values |= {"board": board, "port": str(self.port)}
        driver = make_driver(values, ROBOT, lambda report: None, lambda readings: None)
        driver.connect()
        driver.activate()
        return driver

    def deviation(self) -> float:
        """Largest distance of a true pressure to its goal, Pa."""
        return float(np.abs(1000.0 * self.board.pressures()[ROBOT.devices[0].channels] - GOAL).max())

    def is_vented(self) -> bool:
        return float(np.abs(self.board.pressures()).max()) < 0.15


@pytest.fixture(params=list(NAMES))
def bench(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("SOFTFORM_STATE", str(tmp_path))
    bench = Bench(request.param, tmp_path)
    yield bench
    bench.terminal.stop()


def wait_until(condition, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "what was waited for did not happen"
        time.sleep(0.01)


def test_a_board_is_found_driven_lost_found_again_and_waits_for_a_reset(bench: Bench) -> None:
    driver = bench.connected_driver()
    try:
        assert NAMES[bench.kind] in str(driver.health()["devices"])
        lease = driver.acquire("test", 0, now(driver), driver.fingerprint)

        def follow() -> bool:
            assert driver.state is not State.FAULT, driver.reason
            driver.command("test", lease, driver.fingerprint, ROBOT.actuators, ["Pa"] * 9, GOAL)
            return bench.deviation() < 400.0

        wait_until(follow)
        bench.schedule.inject(parse_fault("disconnect+0.3"))
        wait_until(lambda: driver.state is State.FAULT)
        wait_until(lambda: "is back on its port" in driver.reason)
        wait_until(bench.is_vented)
        assert driver.state is State.FAULT
    finally:
        driver.close()
    assert list(bench.folder.glob("*.latch.json"))


@pytest.mark.parametrize("bench", ["binary"], indirect=True)
def test_a_bus_on_which_a_period_is_too_short_for_all_pairs_serves_them_in_turn(bench: Bench) -> None:
    board = BinaryBoard(SerialLink(str(bench.port)), ROBOT.devices[0].channels)
    board.open()
    try:
        board.start(np.zeros(len(board.pressure_min)))
        targets = np.zeros(len(board.pressure_min))
        targets[ROBOT.devices[0].channels] = GOAL
        measured = 0
        deadline = time.monotonic() + 20.0
        while bench.deviation() > 400.0:
            assert time.monotonic() < deadline, "not all pairs are served"
            allowed = iter([False, False])
            board.set_targets(targets, lambda allowed=allowed: next(allowed, True))
            measured += len(board.read(0.0))
        assert measured > 0
    finally:
        board.vent()
        board.close()
