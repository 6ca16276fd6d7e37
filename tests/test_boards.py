"""Driver and emulated board, which share no code, on each board of docs/boards.md: found out, driven, vented."""

import time

import numpy as np
import pytest

from softform_pneumatics.boards.detection import BoardSettings
from softform_pneumatics.boards.detection import make_board as connect
from softform_rig.emulated_board import Sensors
from softform_rig.make_board import make_board
from softform_rig.plant import load_plant
from softform_rig.pseudo_terminal import PseudoTerminal

CHANNELS = range(9)
TARGETS = np.concatenate([1000.0 + 400.0 * np.arange(9), [0.0]])  # Pa


@pytest.mark.parametrize("kind", ["openpneu_a", "openpneu_b", "binary"])
def test_a_board_is_found_out_brought_to_its_targets_and_vented(tmp_path, kind) -> None:
    emulated = make_board(kind, load_plant(), Sensors(noise=0.03))
    terminal = PseudoTerminal(emulated, tmp_path / "port")
    terminal.start()
    try:
        board = connect("auto", str(terminal.link), BoardSettings(CHANNELS, vent_threshold=200.0))
        try:
            board.open()
            count = len(board.pressure_max)
            targets = np.zeros(count)
            targets[: len(TARGETS)] = TARGETS[:count]
            board.start(targets)
            measured = np.full(count, np.nan)
            deadline = time.monotonic() + 20.0
            while not np.allclose(measured[CHANNELS], TARGETS[CHANNELS], atol=300.0):
                assert time.monotonic() < deadline, measured
                board.set_targets(targets)
                for measurement in board.read(0.02):
                    measured = measurement.pressures
            true = 1000.0 * emulated.pressures()[CHANNELS]
            np.testing.assert_allclose(true, measured[CHANNELS], atol=200.0)
            assert board.vent()
        finally:
            board.close()
        while np.abs(emulated.pressures()).max() > 0.2:
            assert time.monotonic() < deadline, emulated.pressures()
            time.sleep(0.05)
        assert terminal.board.vent_times, "the emulated side saw the request on the wire"
    finally:
        terminal.stop()
    assert terminal.failure is None
