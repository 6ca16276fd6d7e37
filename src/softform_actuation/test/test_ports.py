"""What a port is known by, whatever leads to it, and that it is opened once, whatever leads to it."""

import fcntl
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from softform_actuation import ports
from softform_actuation.assembly import make_devices
from softform_actuation.ports import PortError, adapter_of, device_number, holders_of, names_of_port, open_port
from softform_core.errors import SoftformError
from softform_core.robots import Robot


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "BUSY_GRACE_SECONDS", 0.0)


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


def test_a_container_that_calls_a_port_by_anothers_name_finds_its_adapter(
    plugged: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plugged(("/dev/ttyUSB0", "77", "1-1"), ("/dev/null", "78", "1-2"))  # the kernel calls 1:3 null
    assert str(adapter_of("/dev/ttyUSB0")) == "USB adapter 1a86:7523 77"
    monkeypatch.setattr(ports, "device_number", lambda path: "1:3")
    assert names_of_port("/dev/ttyUSB0") == ["device 1:3", "/dev/ttyUSB0", "USB adapter 1a86:7523 78"]


def test_a_container_without_adapters_has_the_device_number_in_common_with_the_host(
    plugged: Callable[..., None],
) -> None:
    plugged(("/dev/null", "78", "1-2"))
    host = names_of_port("/dev/null")
    plugged()
    container = names_of_port("/dev/null")
    assert container == ["device 1:3", "/dev/null"] and container[0] in host
    assert host[-1] == "USB adapter 1a86:7523 78"


def test_a_pseudo_terminal_is_not_known_by_its_number(terminal: tuple[str, int], plugged: Callable[..., None]) -> None:
    plugged()
    assert device_number(terminal[0]).startswith("136:")
    assert names_of_port(terminal[0]) == [terminal[0]]


def test_the_kernels_list_of_ports_is_read_as_it_is() -> None:
    assert all(port.vid is not None for port in ports.usb_ports())


def test_a_second_node_of_a_device_is_not_opened(terminal: tuple[str, int], tmp_path: Path) -> None:
    path, twin = terminal[0], tmp_path / "twin"
    try:
        os.mknod(twin, 0o600 | stat.S_IFCHR, os.stat(path).st_rdev)
    except PermissionError:
        pytest.skip("this user may not make device nodes")
    link = tmp_path / "link"
    link.symlink_to(path)
    port = open_port(path, 115200)
    for other in (path, str(link), str(twin)):
        with pytest.raises(PortError, match="is in use"):
            open_port(other, 115200)
    assert holders_of(str(twin)) == holders_of(path)
    assert holders_of(str(tmp_path / "nothing")) == []
    port.close()
    open_port(str(link), 115200).close()


def test_a_device_is_locked_by_its_number_as_long_as_its_port_is_open(terminal: tuple[str, int]) -> None:
    path = terminal[0]
    with open_port(path, 115200), pytest.raises(BlockingIOError):
        ports._take_lock(device_number(path))
    lock = ports._take_lock(device_number(path))
    with pytest.raises(PortError, match="is in use"):
        open_port(path, 115200)
    os.close(lock)
    open_port(path, 115200).close()


@pytest.mark.parametrize("is_pseudo", [True, False])
def test_programs_that_know_no_locks_are_kept_from_a_port(
    terminal: tuple[str, int], monkeypatch: pytest.MonkeyPatch, is_pseudo: bool
) -> None:
    monkeypatch.setattr(ports, "_is_pseudo", lambda path: is_pseudo)
    with open_port(terminal[0], 115200) as port:
        is_exclusive = fcntl.ioctl(port.fileno(), 0x80045440, bytes(4))  # TIOCGEXCL
    assert any(is_exclusive) is not is_pseudo


def test_a_copy_of_a_descriptor_elsewhere_keeps_no_closed_port_busy(
    terminal: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ports, "_is_pseudo", lambda path: False)
    port = open_port(terminal[0], 115200)
    copy = os.dup(port.fileno())  # as a guardian that is frozen has it
    port.close()
    assert not any(fcntl.ioctl(copy, 0x80045440, bytes(4)))  # TIOCGEXCL
    open_port(terminal[0], 115200).close()
    os.close(copy)


def test_a_port_is_not_opened_if_it_was_another_device_when_it_was_locked(
    terminal: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ports, "device_number", lambda path: "136:99999")
    with pytest.raises(PortError, match="is in use"):
        open_port(terminal[0], 115200)
    monkeypatch.undo()
    open_port(terminal[0], 115200).close()


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _link(path: Path) -> None:
    path.symlink_to("/etc/hostname")


@pytest.mark.parametrize("put", [_fifo, _link])
def test_what_somebody_else_laid_in_the_locks_place_is_not_followed(
    put: Callable[[Path], None], terminal: tuple[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o1777)
    monkeypatch.setattr(ports, "_LOCK_FOLDERS", (tmp_path,))
    put(tmp_path / f"softform-{device_number(terminal[0]).replace(':', '-')}.lock")
    with pytest.raises(PortError, match="lock .* cannot be had"):
        open_port(terminal[0], 115200)


def test_locks_lie_where_every_user_may_put_one_and_may_be_read_by_all(
    terminal: tuple[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, shared, last = (tmp_path / name for name in ("own", "shared", "last"))
    for folder, mode in ((own, 0o755), (shared, 0o1777), (last, 0o1777)):
        folder.mkdir()
        folder.chmod(mode)
    monkeypatch.setattr(ports, "_LOCK_FOLDERS", (own, shared, last))
    before = os.umask(0o077)
    try:
        open_port(terminal[0], 115200).close()
    finally:
        os.umask(before)
    (file,) = shared.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o444 and not list(own.iterdir()) and not list(last.iterdir())


def test_two_devices_on_two_nodes_of_one_board_are_rejected(monkeypatch: pytest.MonkeyPatch, two: Robot) -> None:
    monkeypatch.setattr(ports, "device_number", lambda path: "188:0")
    values = {"port": "/dev/softform", "left.port": "/dev/ttyUSB0", "right.port": "/dev/board"}
    with pytest.raises(SoftformError, match="Two devices are on device 188:0"):
        make_devices(values, two)


@pytest.fixture
def two(robot_with: Callable[..., Robot]) -> Robot:
    """The membrane on two boards."""
    parts = {"left": ["c1", "c2", "c3", "c4"], "right": ["c5", "c6", "c7", "c8", "c9"]}
    devices = [{"name": name, "actuators": of, "channels": list(range(len(of)))} for name, of in parts.items()]
    return robot_with(devices=devices)
