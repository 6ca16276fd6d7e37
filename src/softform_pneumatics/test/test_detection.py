"""Finding out which board is on a port, where none is."""

from collections.abc import Callable
from typing import Any

import pytest

from softform_actuation.device import DeviceError
from softform_actuation.serial_link import SerialLink
from softform_pneumatics.boards import detection
from softform_pneumatics.boards.detection import identify, make_board


@pytest.fixture
def link(scripted_board: Any, monkeypatch: pytest.MonkeyPatch) -> SerialLink:
    monkeypatch.setattr(detection, "REPLY_SECONDS", 0.08)  # of each question that nobody will answer
    return SerialLink(scripted_board.path)


def test_a_silent_port_is_reported_with_both_speeds_that_were_tried(scripted_board: Any, link: SerialLink) -> None:
    scripted_board.silent = True
    with pytest.raises(DeviceError, match=r"Nothing answers on .* at \d+ or \d+ baud"):
        identify(link, 0.1)


def test_a_device_that_is_no_board_is_shown_by_its_first_bytes(scripted_board: Any, link: SerialLink) -> None:
    scripted_board.greeting = b"$GPGGA,123519,4807.038,N*47\r\n"
    scripted_board._answer = lambda line: None
    with pytest.raises(DeviceError, match=r"does not speak any protocol that is known .*GPGGA"):
        identify(link, 0.1)


def test_a_board_that_boots_slowly_is_waited_for(
    scripted_board: Any, link: SerialLink, wait_until: Callable[..., None]
) -> None:
    answer, heard = scripted_board._answer, []

    def deaf_at_first(line: bytes) -> Any:
        heard.append(line)
        return answer(line) if len(heard) > 2 else None

    scripted_board._answer = deaf_at_first
    assert identify(link, 0.1) == detection.PROTOCOL_A
    assert len(heard) == 3
    link.close(emergency=False)


def test_a_board_of_no_known_name_is_rejected_with_the_names() -> None:
    with pytest.raises(DeviceError, match="no board 'openpneu_c'.*auto, openpneu_a, openpneu_b, binary"):
        make_board("openpneu_c", "/dev/null", [0], 200.0)
