"""Names of which a machine has one holder at a time, whoever its user is.

A name is an abstract Unix socket: the kernel gives it to one process, tells others who that is, and forgets it when
that process ends, however it does. It reaches as far as the loopback device: into containers that share the host's
network.
"""

import hashlib
import os
import socket
import struct
import time
from contextlib import suppress
from pathlib import Path

from softform_core.errors import SoftformError

_CREDENTIALS = struct.Struct("3i")
_QUESTIONS = 128  # of others who the holder is, which the kernel answers; the next ones are told no process


class ClaimedError(SoftformError):
    """A name is held already.

    Attributes:
        holder: Who holds it and since when, in words.
    """

    def __init__(self, name: str, holder: str) -> None:
        super().__init__(f"{name} is there already ({holder}).", "End it, or use another namespace or ROS_DOMAIN_ID.")
        self.holder = holder


def claim(name: str, domain: int) -> socket.socket:
    """Hold a name within a ROS domain of this machine until the socket is closed, or the last process with it ends.

    Raises:
        ClaimedError: If it is held already, also by this process.
    """
    # Of any length, where a socket's own is at most 107 bytes long.
    address = f"\0softform/{domain}/{hashlib.sha256(name.encode()).hexdigest()[:32]}"
    held = socket.socket(socket.AF_UNIX)
    try:
        held.bind(address)
        held.listen(_QUESTIONS)
    except OSError as error:
        held.close()
        raise ClaimedError(name, _holder(address)) from error
    return held


def _holder(address: str) -> str:
    with socket.socket(socket.AF_UNIX) as asking:
        asking.setblocking(False)
        process = 0
        if asking.connect_ex(address) == 0:
            credentials = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            process = _CREDENTIALS.unpack(credentials)[0]
    with suppress(OSError, ValueError, IndexError):
        ticks = int(Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])
        running = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time.time() - running))
        return f"since {began}, process {process} on this machine"
    return "on this machine, perhaps in a container"
