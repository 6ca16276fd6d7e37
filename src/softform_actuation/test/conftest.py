"""USB adapters as a test plugs them in, and terminals that stand for their ports."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from serial.tools.list_ports_common import ListPortInfo

sys.path.insert(0, str(Path(__file__).parent))  # for the helpers beside this file

from softform_actuation import ports  # noqa: E402
from softform_core.errors import SoftformError  # noqa: E402
from softform_core.robots import Robot, load_robot  # noqa: E402


@pytest.fixture
def plugged(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make the kernel's list of adapters: device, serial number and socket of each."""

    def plug(*adapters: tuple[str, str | None, str]) -> None:
        found = []
        for device, number, socket in adapters:
            port = ListPortInfo(device)
            port.vid, port.pid, port.serial_number, port.location = 0x1A86, 0x7523, number, socket
            found.append(port)
        monkeypatch.setattr(ports, "usb_ports", lambda: found)

    return plug


@pytest.fixture
def terminal() -> Iterator[tuple[str, int]]:
    """Path of a terminal, and the descriptor of the side that a device has."""
    master, slave = os.openpty()
    yield os.ttyname(slave), master
    os.close(master)
    os.close(slave)


@pytest.fixture
def robot_with() -> Callable[..., Robot]:
    """The membrane with other fields in its description."""

    def change(**fields: Any) -> Robot:
        return Robot.model_validate(load_robot("membrane").model_dump(by_alias=True) | fields)

    return change


@pytest.fixture(autouse=True)
def errors_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every error here is two sentences: what is wrong, and what to do."""
    initialize = SoftformError.__init__

    def check(error: SoftformError, message: str, next_step: str = "") -> None:
        assert isinstance(message, str) and message and isinstance(next_step, str) and next_step, (message, next_step)
        initialize(error, message, next_step)

    monkeypatch.setattr(SoftformError, "__init__", check)
