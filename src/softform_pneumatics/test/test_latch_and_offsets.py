"""What outlives the driver's process: latch and offsets, and every way in which their files can be wrong."""

import errno
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from softform_actuation import latch as latch_module
from softform_actuation.assembly import latch_of
from softform_actuation.device import ServedActuators
from softform_actuation.latch import LEFT_ACTIVE, LEFT_UNCONFIRMED, Latch
from softform_actuation.ports import names_of_port
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_pneumatics.offsets import OffsetStore


def test_a_latch_is_found_again_and_let_go(tmp_path: Path) -> None:
    path = tmp_path / "state" / "latch.json"
    assert Latch(path).read() is None
    Latch(path).set("stopped by request")
    assert Latch(path).read() == "stopped by request"
    Latch(path).clear()
    assert Latch(path).read() is None
    Latch(path).clear()


@pytest.mark.parametrize("content", [b"", b"{", b'{"reason": 3}', b"\xff\xfe", b"[]"])
def test_a_damaged_latch_counts_as_latched(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "latch.json"
    path.write_bytes(content)
    assert "cannot be read" in str(Latch(path).read())


@pytest.mark.parametrize("doubt", [LEFT_ACTIVE, f"{LEFT_UNCONFIRMED} (the board is lost)"])
def test_a_stop_without_a_driver_does_not_claim_that_a_robot_left_in_doubt_is_vented(
    tmp_path: Path, doubt: str
) -> None:
    latch = Latch(tmp_path / "latch.json")
    for _ in range(2):
        assert "moves nothing" in latch.stop_unconfigured()
    assert "not configured" in str(latch.read())
    latch.set(doubt)
    for _ in range(2):
        with pytest.raises(SoftformError, match="nothing was made safe now"):
            latch.stop_unconfigured()
    assert latch.read() == doubt
    latch.set("a chamber leaked")  # and the board had confirmed that it vents
    assert "moves nothing" in latch.stop_unconfigured() and latch.read() == "a chamber leaked"


def test_a_stop_that_could_not_be_latched_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(latch_module, "write_atomically", full)
    with pytest.raises(SoftformError, match="would not survive"):
        Latch(tmp_path / "latch.json").stop_unconfigured()


def test_a_latch_that_cannot_be_written_says_so_and_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    latch = Latch(tmp_path / "file" / "latch.json")
    latch.set("stopped")
    assert "would not survive" in latch.failure


@pytest.fixture
def plugged(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make the kernel's list of ports: device, serial number and socket of each."""

    def plug(*adapters: tuple[str, str | None, str]) -> None:
        ports = []
        for device, number, socket in adapters:
            port = ListPortInfo(device)
            port.vid, port.pid, port.serial_number, port.location = 0x1A86, 0x7523, number, socket
            ports.append(port)
        monkeypatch.setattr(list_ports, "comports", lambda: ports)

    return plug


def test_a_port_is_known_by_its_adapter_too(plugged: Callable[..., None], tmp_path: Path) -> None:
    link = tmp_path / "board"
    link.symlink_to("/dev/ttyUSB1")
    plugged(("/dev/ttyUSB0", "77", "1-1"), ("/dev/ttyUSB1", "78", "1-2"))
    assert names_of_port(str(link)) == [str(link), "USB adapter 1a86:7523 78"]
    plugged(("/dev/ttyUSB0", "0001", "1-1"), ("/dev/ttyUSB1", "0001", "1-2"))  # as cheap ones come
    assert names_of_port(str(link))[-1] == "USB adapter 1a86:7523 at 1-2"
    plugged(("/dev/ttyUSB1", None, "1-2"))
    assert names_of_port(str(link))[-1] == "USB adapter 1a86:7523 at 1-2"
    assert names_of_port("/dev/ttyUSB7") == ["/dev/ttyUSB7"]


@pytest.mark.parametrize("number", ["77", None])
def test_a_latch_is_found_by_whatever_name_the_port_has_now(
    plugged: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, robot: Robot, number: str | None
) -> None:
    monkeypatch.setenv("SOFTFORM_STATE", str(tmp_path))

    def latch(port: str) -> Latch:
        return latch_of({"port": port}, robot)

    plugged(("/dev/ttyUSB0", number, "1-1"))
    latch("/dev/ttyUSB0").set("stopped by request")
    plugged(("/dev/ttyUSB1", number, "1-1"), ("/dev/ttyUSB2", "9", "1-4"))
    assert latch("/dev/ttyUSB2").read() is None
    assert latch("/dev/ttyUSB1").read() == "stopped by request"
    plugged()
    assert latch("/dev/ttyUSB0").read() == "stopped by request"
    plugged(("/dev/ttyUSB0", number, "1-1"))
    latch("/dev/ttyUSB0").clear()
    assert not list(tmp_path.iterdir())


def test_offsets_are_stored_whole_and_read_back(tmp_path: Path, served: ServedActuators) -> None:
    store = OffsetStore(tmp_path / "state" / "offsets.json", served, "/dev/ttyUSB0", 500.0)
    assert np.array_equal(store.read(), np.zeros(9))
    offsets = np.arange(9) * 50.0 - 200.0
    store.write(offsets)
    assert store.read() == pytest.approx(offsets)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-20], "cannot be read"),
        (lambda text: text.replace('"membrane"', '"other"'), "those of 'other'"),
        (lambda text: text.replace("ttyUSB0", "ttyUSB1"), "on /dev/ttyUSB1"),
        (lambda text: text.replace('"c3"', '"c33"'), "other chambers"),
        (lambda text: text.replace("120.0", "9120.0"), "chamber c3 reads 9120 Pa"),
        (lambda text: text.replace("120.0", "NaN"), "cannot be read|counts as an offset"),
    ],
)
def test_offsets_that_cannot_be_right_are_rejected(
    tmp_path: Path, served: ServedActuators, change, message: str
) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "offsets.json"
    store = OffsetStore(path, served, "/dev/ttyUSB0", 500.0)
    store.write(np.array([0.0, 0.0, 120.0] + [0.0] * 6))
    path.write_text(change(path.read_text()))
    with pytest.raises(SoftformError, match=message):
        store.read()


@pytest.mark.parametrize("offset", [501.0, -501.0, float("nan"), float("inf")])
def test_what_is_no_offset_is_not_taken_for_one(served: ServedActuators, offset: float) -> None:
    with pytest.raises(SoftformError, match="sensor of chamber c5"):
        OffsetStore(None, served, "", 500.0).checked(np.array([0.0] * 4 + [offset] + [0.0] * 4))
