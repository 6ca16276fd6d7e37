"""The rig's dead-man cuts the supply of the rig's boards: at the emulated chambers, whatever its controller says."""

from pathlib import Path

import numpy as np
import pytest

from softform_core.plant import load_plant
from softform_core.robots import load_robot, read_robot
from softform_rig.board_emulation import make_board
from softform_rig.dead_man_emulation import DeadMan, _check
from softform_rig.emulated_board import EmulatedBoard, Sensors
from softform_rig.fault_schedule import FaultSchedule
from softform_rig.faults import parse_fault
from softform_rig.faulty_board import FaultyBoard
from softform_rig.reality import load_reality
from softform_rig.rig_settings import RigSettings
from softform_rig.virtual_rig import VirtualRig

PERIOD = 0.05  # s
POSE = [0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0]


class Bench:
    """A board that drives its channels behind a dead-man, on a clock that is stepped."""

    def __init__(self) -> None:
        self.schedule = FaultSchedule()
        self.relay, self.board = DeadMan(), make_board("openpneu_a", load_plant(), Sensors())
        self.board.is_supplied = lambda: self.relay.is_closed
        self.controller = FaultyBoard(self.relay, self.schedule)
        self.now, self.nonce, self.beats = 2.0, b"", 0
        self.board.receive(b"C\r\n" + b"".join(b"SC=%d\r\nT=4.00\r\n" % c for c in range(10)), self.now)
        self.controller.receive(b"N\n", self.now)
        (self.nonce,) = (line.split()[1] for line in self.relay.take_output().splitlines() if line.startswith(b"N"))
        self.controller.receive(b"A " + _check(b"A" + self.nonce) + b"\n", self.now)

    def drive(self, seconds: float, beating: bool = True) -> float:
        """The highest pressure, kPa, after some seconds."""
        for _ in range(round(seconds / PERIOD)):
            self.now += PERIOD
            if beating:
                self.beats += 1
                words = b"B %d" % self.beats
                self.controller.receive(words + b" " + _check(words + self.nonce) + b"\n", self.now)
            self.controller.advance(self.now)
            self.board.advance(self.now)
        return float(self.board.pressures().max())


def test_without_heartbeats_the_chambers_empty_while_the_board_answers_and_pumps_on() -> None:
    bench = Bench()
    assert bench.drive(4.0) > 3.0 and bench.relay.state == "armed"
    bench.board.take_output()
    assert bench.drive(3.0, beating=False) < 0.2 and bench.relay.state == "latched"
    assert bench.board.take_output().count(b"T") >= 60, "its logic has power by USB"
    assert bench.drive(2.0) < 0.2, "heartbeats alone bring no supply back"


def test_the_supply_goes_half_a_second_after_the_last_heartbeat() -> None:
    bench = Bench()
    bench.drive(1.0)
    bench.drive(0.45, beating=False)
    assert bench.relay.is_closed
    bench.drive(0.1, beating=False)
    assert not bench.relay.is_closed


@pytest.mark.parametrize(("fault", "state"), [("drop_request_bytes=1", "latched"), ("reboot", "cut")])
def test_what_fails_to_the_safe_side_cuts(fault: str, state: str) -> None:
    bench = Bench()
    bench.drive(3.0)
    bench.schedule.inject(parse_fault(fault))
    assert bench.drive(3.0) < 0.2 and bench.relay.state == state


def test_a_controller_that_hangs_leaves_the_supply_on_and_is_silent() -> None:
    bench = Bench()
    bench.drive(3.0)
    bench.controller.take_output()
    bench.schedule.inject(parse_fault("stall"))
    assert bench.drive(2.0, beating=False) > 3.0 and bench.controller.take_output() == b""


def test_a_welded_relay_leaves_the_supply_on_and_is_told() -> None:
    bench = Bench()
    bench.drive(3.0)
    bench.relay.is_welded = True
    bench.controller.receive(b"B 1\nX\n", bench.now)
    assert bench.controller.vent_times, "a cut is a request to vent on the wire"
    bench.controller.take_output()
    assert bench.drive(1.0, beating=False) > 3.0
    assert b"S welded 1" in bench.controller.take_output()


def test_a_rig_that_stood_still_has_missed_no_heartbeat() -> None:
    bench = Bench()
    bench.drive(1.0)
    bench.now += 5.0
    bench.drive(0.1)
    assert bench.relay.state == "armed"


def test_a_described_dead_man_cuts_the_supply_of_the_rigs_boards(tmp_path: Path) -> None:
    described = load_robot("membrane").model_dump(mode="json", by_alias=True)
    described["devices"].append({"name": "relay", "kind": "dead_man", "actuators": [], "channels": []})
    robot = read_robot(described, "test")
    rig = VirtualRig(
        robot, load_reality("ideal", robot), RigSettings(tmp_path / "port", tmp_path, POSE, mocap_rate=0.0)
    )
    *boards, relay = (terminal.firmware for terminal in rig.terminals)
    assert isinstance(relay, DeadMan) and len(boards) == 1 and rig.terminals[1].link.name == "port_relay"
    for supplied in (False, True):
        relay.is_welded = supplied
        assert all(isinstance(board, EmulatedBoard) and board.is_supplied() == supplied for board in boards)
    assert np.isfinite(rig.actuator_values()).all()
