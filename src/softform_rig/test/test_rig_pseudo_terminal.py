"""The board behind a real pseudo-terminal, spoken to by pyserial with the literal bytes of the protocol."""

import time
from pathlib import Path

import pytest
import serial

from softform_core.errors import SoftformError
from softform_core.plant import load_plant
from softform_rig.emulated_board import BOOT_SECONDS, Sensors
from softform_rig.line_board import Firmware
from softform_rig.pseudo_terminal import PseudoTerminal


@pytest.fixture
def terminal(tmp_path):
    served = PseudoTerminal(Firmware(load_plant(), Sensors(noise=0.01)), tmp_path / "openpneu")
    served.start()
    yield served
    served.stop()


def open_port(path: Path) -> serial.Serial:
    port = serial.Serial(str(path), 115200, timeout=5.0)
    time.sleep(BOOT_SECONDS + 0.2)
    return port


def ask(port: serial.Serial, request: bytes) -> bytes:
    port.write(request)
    return port.read_until(b"\r\n")


def read_stream(port: serial.Serial, lines: int) -> list[list[float]]:
    read = [port.read_until(b"\r\n") for _ in range(lines)]
    return [[float(v) for v in line[1:-3].split(b",")] for line in read if line.startswith(b"T") and b"." in line]


def test_handshake_regulation_and_stop(terminal: PseudoTerminal) -> None:
    with open_port(terminal.link) as port:
        assert ask(port, b"AT\r\n") == b"OK;Successful\r\n"
        assert ask(port, b"AT+ADDRESS\r\n") == b"OpenPneu2.0\r\n"
        assert ask(port, b"SC=8\r\n") == b"Global Channel is 8\r\n"
        port.write(b"T=4.00\r\n")
        assert ask(port, b"C\r\n") == b"Timer Starts...\r\n"
        assert read_stream(port, 45)[-1][8] == pytest.approx(4.0, abs=0.3)
        port.write(b"V\r\n")
        tail = port.read_until(b"Stop All Motors\r\n")
        assert b"Timer Pauses...\r\nStop All Motors\r\n" in tail
    time.sleep(1.5)
    assert terminal.firmware.pressures()[8] < 0.2


def test_bytes_while_booting_are_lost(terminal: PseudoTerminal) -> None:
    with serial.Serial(str(terminal.link), 115200, timeout=0.3) as port:
        time.sleep(0.2)
        assert ask(port, b"AT\r\n") == b""


def test_no_watchdog_and_reopening_reboots(terminal: PseudoTerminal) -> None:
    with open_port(terminal.link) as port:
        port.write(b"SC=1\r\nT=3.00\r\nC\r\n")
        time.sleep(1.0)
        assert terminal.connected
    time.sleep(0.7)
    assert not terminal.connected
    assert terminal.firmware.pressures()[1] == pytest.approx(3.0, abs=0.4), "a dead host does not stop the board"
    with open_port(terminal.link) as port:
        assert ask(port, b"AT\r\n") == b"OK;Successful\r\n", "no stream: opening the port has restarted the board"
    assert terminal.firmware.pressures()[1] < 0.2


def test_a_host_that_never_reads_does_not_block_the_board(terminal: PseudoTerminal) -> None:
    with open_port(terminal.link) as port:
        port.write(b"C\r\n")
        for _ in range(2000):
            port.write(b"AT\r\n")
        time.sleep(0.3)
        port.reset_input_buffer()
        port.write(b"V\r\n")
        time.sleep(0.3)
        port.reset_input_buffer()
        assert ask(port, b"AT\r\n") == b"OK;Successful\r\n"
    assert terminal.failure is None


def test_link_replaces_a_stale_one_and_goes_with_the_board(tmp_path) -> None:
    link = tmp_path / "run" / "openpneu"
    link.parent.mkdir()
    link.symlink_to("/dev/pts/no_such_terminal")
    served = PseudoTerminal(Firmware(load_plant()), link)
    served.start()
    assert link.resolve().is_char_device()
    served.stop()
    assert not link.is_symlink()
    served.start()
    assert link.resolve().is_char_device()
    served.stop()


def test_a_port_that_another_rig_serves_is_not_taken_from_it(terminal: PseudoTerminal) -> None:
    device = terminal.link.readlink()
    second = PseudoTerminal(Firmware(load_plant(), Sensors()), terminal.link)
    with pytest.raises(
        SoftformError, match=r"Another rig serves .*openpneu \(since .* give this one another port_link"
    ):
        second.start()
    second.stop()
    assert terminal.link.readlink() == device
    terminal.stop()
    second.start()
    second.stop()


def test_a_file_in_the_way_is_rejected_and_kept(tmp_path) -> None:
    link = tmp_path / "openpneu"
    link.write_text("precious")
    with pytest.raises(SoftformError, match="is not a link"):
        PseudoTerminal(Firmware(load_plant()), link).start()
    assert link.read_text() == "precious"


def test_the_host_sees_a_disconnect_when_the_rig_goes(terminal: PseudoTerminal) -> None:
    with open_port(terminal.link) as port:
        terminal.stop()
        with pytest.raises((serial.SerialException, OSError)):
            for _ in range(3):
                port.write(b"AT\r\n")
                if port.read(1) == b"":
                    raise serial.SerialException("nothing comes any more")
