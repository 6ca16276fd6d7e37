"""The experiment that tells a board which regulates ten channels from the firmware as it ships."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from stepped import SteppedClock

from softform_actuation.device import DeviceError, ServedActuators
from softform_pneumatics import probe
from softform_pneumatics.boards.openpneu_a import OpenPneuBoardA
from softform_pneumatics.probe import Regulation, probe_pressure, probe_regulation, require_independent


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock()


@pytest.fixture
def board(scripted_board: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenPneuBoardA]:
    monkeypatch.setattr(probe, "_RISE_SECONDS", 0.5)  # the scripted plant moves in 0.03 s
    board = OpenPneuBoardA(scripted_board.link(), vent_threshold=100.0, boot_seconds=0.05)
    board.open()
    yield board
    board.close()


def test_ten_independent_channels_pass_and_end_vented(
    scripted_board: Any, board: OpenPneuBoardA, served: ServedActuators
) -> None:
    regulation = probe_regulation(board, range(9), probe_pressure(served))
    assert regulation == Regulation(frozenset(range(9)), frozenset())
    require_independent(served, regulation)
    assert not scripted_board.runs


def test_the_probe_never_asks_for_more_than_a_fraction_of_a_kilopascal(
    scripted_board: Any, board: OpenPneuBoardA, served: ServedActuators
) -> None:
    probe_regulation(board, range(9), probe_pressure(served))
    targets = [float(text[2:]) for _, text in scripted_board.requests if text.startswith("T=")]
    assert max(targets) == 0.4
    assert min(targets) == 0.0


def test_the_firmware_as_shipped_is_rejected_for_nine_chambers(
    scripted_board: Any, board: OpenPneuBoardA, served: ServedActuators
) -> None:
    scripted_board.behave_as_shipped()
    regulation = probe_regulation(board, range(9), probe_pressure(served))
    assert {2, 3} <= regulation.regulated | regulation.followers
    assert regulation.regulated <= {2, 3}
    with pytest.raises(DeviceError, match=r"regulates 0 of the 9 .* firmware as it ships"):
        require_independent(served, regulation)
    assert not scripted_board.runs
    assert scripted_board.targets.max() < 1.0


def test_a_board_that_understood_another_target_is_vented(
    scripted_board: Any, board: OpenPneuBoardA, served: ServedActuators
) -> None:
    answer = scripted_board._answer

    def without_its_point(line: bytes) -> None:
        answer(line.replace(b"T=0.400", b"T=0400") if scripted_board.channel == 4 else line)

    scripted_board._answer = without_its_point
    with pytest.raises(DeviceError, match=r"was sent 400 Pa, and its channel 4 has moved by \d+ Pa"):
        probe_regulation(board, range(9), probe_pressure(served))
    assert not scripted_board.runs


def test_pairs_are_found_even_where_every_channel_regulates(
    scripted_board: Any, board: OpenPneuBoardA, served: ServedActuators
) -> None:
    scripted_board.paired = True
    regulation = probe_regulation(board, range(9), probe_pressure(served))
    assert regulation.followers
    with pytest.raises(DeviceError, match="move with their neighbours"):
        require_independent(served, regulation)


def test_a_dead_channel_is_named_with_its_chamber(
    scripted_board: Any, board: OpenPneuBoardA, served: ServedActuators
) -> None:
    scripted_board.regulates[5] = False
    with pytest.raises(DeviceError, match=r"regulates 8 of the 9 .*channels 5 \(chambers c6\) do not inflate"):
        require_independent(served, probe_regulation(board, range(9), probe_pressure(served)))


def test_sensor_offsets_do_not_mislead(scripted_board: Any, board: OpenPneuBoardA, served: ServedActuators) -> None:
    regulate = scripted_board._regulate

    def with_offset() -> None:
        scripted_board.pressures += 0.3
        try:
            regulate()
        finally:
            scripted_board.pressures -= 0.3

    scripted_board._regulate = with_offset
    scripted_board.regulates[4] = False
    regulation = probe_regulation(board, range(9), probe_pressure(served))
    assert 4 not in regulation.regulated


def test_a_board_that_stops_streaming_ends_the_probe_vented(
    clock: SteppedClock, scripted_board: Any, board: OpenPneuBoardA, served: ServedActuators
) -> None:
    scripted_board.stalls = True
    before = clock.now()
    with pytest.raises(DeviceError, match="does not stream"):
        probe_regulation(board, range(9), probe_pressure(served))
    assert scripted_board.requests_since(before, "V") >= 1
    assert not scripted_board.runs


def test_a_vacuum_robot_is_probed_with_a_small_vacuum(served: ServedActuators) -> None:
    vacuum = replace(served, actuator_min=np.full(9, -20_000.0), actuator_max=np.zeros(9))
    assert probe_pressure(vacuum) == -400.0
    assert np.isclose(probe_pressure(served), 400.0)
