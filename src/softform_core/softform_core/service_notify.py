"""Tell the manager that started a service (systemd) how it is doing, without a library."""

import os
import socket
from contextlib import suppress


def notify(text: str) -> None:
    """Tell the service manager something, such as `READY=1`, `WATCHDOG=1` or `STATUS=…`; it never waits.

    Outside of a service, or if the manager does not listen, nothing happens: what matters is that it hears nothing from
    a process that hangs.
    """
    if not (address := os.environ.get("NOTIFY_SOCKET")):
        return
    if address.startswith("@"):  # a name without a file
        address = "\0" + address[1:]
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.setblocking(False)
        manager.sendto(text.encode(), address)
