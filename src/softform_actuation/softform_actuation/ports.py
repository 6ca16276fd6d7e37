"""Serial ports: opening one for one user alone, what it is known by, and who holds it."""

import errno
import fcntl
import os
import stat
import termios
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import serial
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo
from serial.tools.list_ports_linux import SysFS

from softform_actuation.device import ServedActuators
from softform_actuation.guardian import let_go
from softform_core.errors import SoftformError

BUSY_GRACE_SECONDS = 1.0
"""How long a busy port is tried again: the guardian of a driver that was just killed holds it while it makes safe."""

_RETRY_SECONDS = 0.1
# As patient as with a silent stream: a busy machine may stop a process for some tenths of a second. The guardian, which
# acts when the driver hangs, waits longer.
_WRITE_TIMEOUT_SECONDS = 1.0

_LOCK_FOLDERS = (Path("/run/lock"), Path("/tmp"))


class PortError(SoftformError):
    """The port cannot be opened or used."""


class _OwnPort(serial.Serial):
    """A port that nobody else opens meanwhile, by whatever node or link: pyserial locks the node, this the device."""

    _lock: int | None = None

    def open(self) -> None:
        number = device_number(self.port)
        self._lock = _take_lock(number) if number else None
        try:
            super().open()
            if _number_of(os.fstat(self.fd)) != number:
                raise OSError(errno.EAGAIN, "another device has come to this name")
            if not _is_pseudo(self.port):  # there it would outlive a driver that was killed
                fcntl.ioctl(self.fd, termios.TIOCEXCL)  # for programs that know no locks, and in other containers
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self.is_open:
            let_go(self.fd)  # a guardian that is frozen has a copy of it
        super().close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _take_lock(number: str) -> int:
    """Return a descriptor that holds the lock of a device number as long as it is open.

    Raises:
        BlockingIOError: If another process holds it.
        PortError: If it cannot be had.
    """
    # By the folder's mode, which is the same for all users. Its file stays: who removed it might remove another's lock.
    folder = next((each for each in _LOCK_FOLDERS if each.is_dir() and each.stat().st_mode & 0o1002 == 0o1002), None)
    path = (folder or _LOCK_FOLDERS[-1]) / f"softform-{number.replace(':', '-')}.lock"
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        try:
            lock = os.open(path, flags)
        except FileNotFoundError:
            lock = os.open(path, flags | os.O_CREAT | os.O_EXCL)
            os.fchmod(lock, 0o444)
        if not stat.S_ISREG(os.fstat(lock).st_mode):
            os.close(lock)
            raise OSError(errno.EINVAL, "it is no plain file")
    except OSError as error:
        raise PortError(f"The lock {path} cannot be had: {error.strerror}.", "Remove that file, then retry.") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(lock)
        raise
    return lock


def open_port(path: str, baud_rate: int) -> serial.Serial:
    """Open a serial port exclusively, with reads that do not wait.

    Neither another node or link of the device, nor another program, opens it meanwhile.

    Raises:
        PortError: If the port is missing, busy, not permitted, or not a serial port.
    """
    deadline = time.monotonic() + BUSY_GRACE_SECONDS
    while True:
        try:
            return _OwnPort(
                path, baud_rate, timeout=0.0, write_timeout=_WRITE_TIMEOUT_SECONDS, exclusive=True, rtscts=False
            )
        except (OSError, ValueError, termios.error) as error:  # the last of a device that goes away just then
            busy = getattr(error, "errno", None) in (errno.EAGAIN, errno.EBUSY)
            if not busy or time.monotonic() > deadline:
                raise _explained(path, error) from error
        time.sleep(_RETRY_SECONDS)


def _explained(path: str, error: Exception) -> PortError:
    code = getattr(error, "errno", None)
    if not path:
        return PortError("No port is set.", f"Set the parameter 'port' to the device's port. {ports_found()}")
    if code in (errno.ENOENT, errno.ENXIO, errno.ENODEV):
        return PortError(
            f"There is no port {path}.", f"Plug the device in and power it, or set 'port'. {ports_found()}"
        )
    if code in (errno.EACCES, errno.EPERM):
        return PortError(
            f"This user may not open {path}.",
            "Join the port's group, then log in again: sudo usermod -aG dialout $USER",
        )
    if code in (errno.EAGAIN, errno.EBUSY):
        holders = holders_of(path)
        by = f" by {', '.join(holders)}" if holders else ", perhaps by another user's process"
        return PortError(f"{path} is in use{by}.", "End that process (another driver or a serial monitor), then retry.")
    if code == errno.ENOTTY or "Inappropriate ioctl" in str(error):
        return PortError(f"{path} is not a serial port.", f"Set 'port' to the device's port. {ports_found()}")
    return PortError(f"{path} cannot be opened: {error}.", f"Check the device and its cable. {ports_found()}")


def device_number(path: str) -> str:
    """Number of a device, such as `188:0`, whatever node or link of it this is; empty if there is none."""
    try:
        return _number_of(os.stat(path))
    except OSError:
        return ""


def _number_of(status: os.stat_result) -> str:
    return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}" if stat.S_ISCHR(status.st_mode) else ""


def _is_pseudo(path: str) -> bool:
    return os.path.realpath(path).startswith("/dev/pts/")


@dataclass(frozen=True)
class Adapter:
    """A USB adapter behind a port.

    Attributes:
        product: Vendor and product, such as `1a86:7523`.
        number: Its serial number; empty if it has none, or shares it with another port.
        socket: Where it is plugged in.
    """

    product: str
    number: str
    socket: str

    def __str__(self) -> str:
        """By its serial number or, without one, by its socket."""
        return f"USB adapter {self.product} {self.number or f'at {self.socket}'}"

    def is_same(self, other: "Adapter") -> bool:
        """Whether this may be the other one, by its number, or by its socket if one has no number of its own."""
        if self.number and other.number:
            return (self.product, self.number) == (other.product, other.number)
        return (self.product, self.socket) == (other.product, other.socket)


def usb_ports() -> list[ListPortInfo]:
    """Ports with a USB adapter, as the kernel has them: a container's `/dev` lacks some and renames others."""
    ports = []
    for entry in Path("/sys/class/tty").glob("*"):
        try:
            ports.append(SysFS(f"/dev/{entry.name}"))
        except (OSError, TypeError):
            continue  # it was pulled out just now
    return [port for port in ports if port.vid is not None]


def adapter_of(path: str) -> Adapter | None:
    """The USB adapter behind a port; None if there is none, or if the system does not tell."""
    ports = usb_ports()
    device, number = os.path.realpath(path), device_number(path)
    if number and os.path.exists(known := f"/sys/dev/char/{number}"):
        device = f"/dev/{os.path.basename(os.path.realpath(known))}"  # as the kernel calls it
    found = next((port for port in ports if port.device == device), None)
    if found is None:
        return None
    is_its_own = sum(port.serial_number == found.serial_number for port in ports) == 1
    own_number = (found.serial_number or "") if is_its_own else ""
    return Adapter(f"{found.vid:04x}:{found.pid:04x}", own_number, found.location or "")


def names_of_port(path: str) -> list[str]:
    """Return what a port is known by: its device number, the name that is given and, last, the USB adapter behind it.

    The kernel numbers adapters as it finds them: after a plug was pulled `/dev/ttyUSB0` may be `/dev/ttyUSB1`, or
    another board's. The adapter is known by its serial number or, if that is missing or not its own, by its socket. In
    a container that is shown no adapters the device number is the one name that it has in common with the host, until
    the plug is pulled. A number that passes on to another board brings a latch along in vain, which a reset clears.
    """
    device, given = os.path.realpath(path), os.path.abspath(path)
    adapter = adapter_of(path)
    names = [given]
    if adapter is not None:
        names.append(str(adapter))
    elif device != given and not _is_pseudo(path):
        names.append(device)
    # A pseudo-terminal is known by the link to it alone: the system gives its number to the next one.
    if not _is_pseudo(path) and (number := device_number(path)):
        names.insert(0, f"device {number}")
    return names


class SerialFamily:
    """What families of devices have in common that have a parameter `port` each, and measure offsets at rest."""

    calibration_moves = False

    def adapters(self, values: Mapping[str, Any]) -> list[str]:
        """Names of the device's port, as `DeviceFamily.adapters`."""
        return names_of_port(values["port"])

    def check(self, served: ServedActuators) -> None:
        """As `DeviceFamily.check`; by default nothing is checked."""

    def adapter(self, values: Mapping[str, Any]) -> str:
        """The one by which what is known of the device is kept."""
        return self.adapters(values)[-1]


def ports_found() -> str:
    """Return one sentence that lists the serial ports of this machine."""
    ports = [f"{port.device} ({port.description})" for port in list_ports.comports()]
    return f"Ports found: {', '.join(ports)}." if ports else "No serial port is found on this machine."


def holders_of(path: str) -> list[str]:
    """Return the processes, as far as this user may see them, that have `path` open: `name (process id)`."""
    number = device_number(path)
    holders = []
    for process in sorted(Path("/proc").glob("[0-9]*"), key=lambda entry: int(entry.name)):
        if int(process.name) == os.getpid():
            continue
        try:
            if number and any(device_number(str(descriptor)) == number for descriptor in (process / "fd").iterdir()):
                name = (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
                holders.append(f"{name} (process {process.name})")
        except OSError:
            continue  # it ended meanwhile, or belongs to another user
    return holders
