"""A driver of a board and a dead-man in its supply, both emulated, on pseudo-terminals."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from softform_actuation.assembly import make_driver, parameters_of
from softform_actuation.driver import Driver
from softform_actuation.parameters import PARAMETERS
from softform_actuation.state_files import OVERRIDE
from softform_actuation.states import Readings, State
from softform_core.errors import SoftformError
from softform_core.plant import load_plant
from softform_core.robots import load_robot, read_robot
from softform_rig.board_emulation import make_board
from softform_rig.control import regulate
from softform_rig.dead_man_emulation import DeadMan
from softform_rig.fault_schedule import FaultSchedule
from softform_rig.faults import parse_fault
from softform_rig.pseudo_terminal import PseudoTerminal

PATIENCE = 10.0  # s


class Bench:
    """The driver, active, with what it is connected to."""

    def __init__(self, folder: Path) -> None:
        described = load_robot("membrane").model_dump(mode="json", by_alias=True)
        described["devices"].append({"name": "relay", "kind": "dead_man", "actuators": [], "channels": []})
        robot = read_robot(described, "test")
        self.faults = FaultSchedule()
        self.relay, self.board = DeadMan(), make_board("binary", load_plant(), None)
        self.board.is_supplied = lambda: self.relay.is_closed
        # What is compiled is loaded before the board is asked for anything.
        regulate(np.zeros(1), np.zeros(1), 0.0, np.zeros(1), np.zeros(1), np.zeros(1, dtype=bool))
        self.board.advance(0.1)
        board = robot.devices[0].name
        self.terminals = [
            PseudoTerminal(self.board, folder / f"port_{board}"),
            PseudoTerminal(self.relay, folder / "port_relay", self.faults),
        ]
        for terminal in self.terminals:
            terminal.start()
        values = {row.name: row.default for row in (*PARAMETERS, *parameters_of(robot))}
        values |= {"port": str(folder / "port"), f"{board}.board": "binary"}
        self.readings: list[Readings] = []
        self.driver: Driver = make_driver(values, robot, lambda report: None, self.readings.append)

    def wait(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, f"{self.driver.state.name}: {self.driver.reason}"
            time.sleep(0.01)

    def activate(self) -> None:
        self.driver.connect()
        assert not self.relay.is_closed
        self.driver.activate()
        self.wait(lambda: bool(self.readings))
        assert self.relay.is_closed, "what drives has its supply"

    def close(self) -> None:
        self.driver.close()
        for terminal in self.terminals:
            terminal.stop()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv(OVERRIDE, str(tmp_path))
    made = Bench(tmp_path)
    yield made
    made.close()


def test_the_supply_is_proven_on_while_it_drives_and_off_after_a_stop(bench: Bench) -> None:
    bench.activate()
    assert float(bench.driver.health()["cut in the last test after (s) of relay"]) > 0.3
    time.sleep(1.5)
    assert bench.driver.state is State.SAFE and bench.relay.is_closed, bench.driver.reason
    measured = [readings.captured for readings in bench.readings]
    assert len(set(measured)) == len(measured) > 20, "a report of the dead-man is no reading of an actuator"
    bench.driver.stop()
    assert bench.driver.state is State.FAULT and not bench.relay.is_closed


@pytest.mark.parametrize(
    ("fault", "reason", "is_cut"),
    [
        ("drop_request_bytes=1", "has cut the supply and is 'latched'", True),
        ("stall", "sent no measurements", False),
    ],
)
def test_a_dead_man_that_fails_is_a_fault_and_the_board_vents(
    bench: Bench, fault: str, reason: str, is_cut: bool
) -> None:
    bench.activate()
    bench.faults.inject(parse_fault(fault))
    bench.wait(lambda: bench.driver.state is State.FAULT)
    assert reason in bench.driver.reason
    bench.wait(lambda: len(bench.terminals[0].board.vent_times) > 1)
    if is_cut:
        bench.wait(lambda: not bench.relay.is_closed)


def test_a_welded_relay_is_no_confirmed_stop(bench: Bench) -> None:
    bench.activate()
    bench.relay.is_welded = True
    with pytest.raises(SoftformError, match="dead-man"):
        bench.driver.stop()
    bench.wait(lambda: "welded" in bench.driver.report.reason)
