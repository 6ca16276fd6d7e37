"""Serial ports: opening one for one user alone, what it is known by, and who holds it."""

import errno
import os
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import serial
from serial.tools import list_ports

from softform_actuation.device import ServedActuators
from softform_core.errors import SoftformError

BUSY_GRACE_SECONDS = 1.0
"""How long a busy port is tried again: the guardian of a driver that was just killed holds it while it makes safe."""

_RETRY_SECONDS = 0.1
# As patient as with a silent stream: a busy machine may stop a process for some tenths of a second. The guardian, which
# acts when the driver hangs, waits longer.
_WRITE_TIMEOUT_SECONDS = 1.0


class PortError(SoftformError):
    """The port cannot be opened or used."""


def open_port(path: str, baud_rate: int) -> serial.Serial:
    """Open a serial port exclusively, with reads that do not wait.

    Raises:
        PortError: If the port is missing, busy, not permitted, or not a serial port.
    """
    deadline = time.monotonic() + BUSY_GRACE_SECONDS
    while True:
        try:
            return serial.Serial(
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


def names_of_port(path: str) -> list[str]:
    """Return what a port is known by: the name that is given and, last, the USB adapter behind it if there is one.

    The kernel numbers adapters as it finds them: after a plug was pulled `/dev/ttyUSB0` may be `/dev/ttyUSB1`, or
    another board's. The adapter is known by its serial number or, if that is missing or not its own, by its socket.
    """
    ports = list_ports.comports()
    device = os.path.realpath(path)
    given = os.path.abspath(path)
    adapter = next((port for port in ports if port.device == device and port.vid is not None), None)
    if adapter is None:
        # A pseudo-terminal is known by the link to it alone: the system gives its number to the next one.
        return [given] if device == given or device.startswith("/dev/pts/") else [given, device]
    number = adapter.serial_number
    is_its_own = number and sum(port.serial_number == number for port in ports) == 1
    which = number if is_its_own else f"at {adapter.location}"
    return [given, f"USB adapter {adapter.vid:04x}:{adapter.pid:04x} {which}"]


class SerialFamily:
    """What families of devices have in common that have a parameter `port` each."""

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
    device = os.path.realpath(path)
    holders = []
    for process in sorted(Path("/proc").glob("[0-9]*"), key=lambda entry: int(entry.name)):
        if int(process.name) == os.getpid():
            continue
        try:
            if any(os.path.realpath(descriptor) == device for descriptor in (process / "fd").iterdir()):
                name = (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
                holders.append(f"{name} (process {process.name})")
        except OSError:
            continue  # it ended meanwhile, or belongs to another user
    return holders
