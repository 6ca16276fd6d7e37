"""A serial line after its cable was pulled: the same adapter is talked to again, another one only to vent it."""

import os
from collections.abc import Callable

import pytest

from softform_actuation.device import DeviceError
from softform_actuation.serial_link import SerialLink

VENT = b"V\r\n"


def reopened(link: SerialLink) -> SerialLink:
    link.close(emergency=False)
    link.open(115200)
    return link


def heard(master: int) -> bytes:
    os.set_blocking(master, False)
    try:
        return os.read(master, 64)
    except BlockingIOError:
        return b""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("77", "1-1"), ("77", "1-4")),  # in another socket
        ((None, "1-1"), (None, "1-1")),
    ],
)
def test_the_same_adapter_is_opened_again(
    plugged: Callable[..., None],
    terminal: tuple[str, int],
    before: tuple[str | None, str],
    after: tuple[str | None, str],
) -> None:
    path = terminal[0]
    plugged((path, *before))
    link = SerialLink(path)
    link.for_strangers = VENT
    link.open(115200)
    plugged((path, *after))
    assert reopened(link).is_open
    link.close(emergency=False)
    assert heard(terminal[1]) == b""


def test_an_adapter_whose_number_turns_out_not_to_be_its_own_is_known_by_its_socket(
    plugged: Callable[..., None], terminal: tuple[str, int]
) -> None:
    path = terminal[0]
    plugged((path, "0001", "1-1"))
    link = SerialLink(path)
    link.open(115200)
    plugged((path, "0001", "1-1"), ("/dev/ttyUSB9", "0001", "1-2"))
    reopened(link)
    plugged((path, "0001", "1-2"), ("/dev/ttyUSB9", "0001", "1-1"))
    with pytest.raises(DeviceError, match="another adapter"):
        reopened(link)


@pytest.mark.parametrize("for_strangers", [VENT, b""])
@pytest.mark.parametrize("other", [("78", "1-1"), (None, "1-2"), None])
def test_another_adapter_is_vented_and_not_used(
    plugged: Callable[..., None], terminal: tuple[str, int], other: tuple[str | None, str] | None, for_strangers: bytes
) -> None:
    path, master = terminal
    plugged((path, "77", "1-1"))
    link = SerialLink(path)
    link.for_strangers = for_strangers
    link.open(115200)
    plugged(*([(path, *other)] if other else []))
    for _ in range(2):
        with pytest.raises(DeviceError, match="another adapter than it was: .*, not USB adapter 1a86:7523 77"):
            reopened(link)
        assert not link.is_open and heard(master) == for_strangers
    plugged((path, "77", "1-1"))
    assert reopened(link).is_open
    link.close(emergency=False)


def test_a_port_without_an_adapter_is_opened_again(plugged: Callable[..., None], terminal: tuple[str, int]) -> None:
    plugged()
    link = SerialLink(terminal[0])
    link.open(115200)
    assert reopened(link).is_open
    link.close(emergency=False)
