"""The log of the board's wire."""

import pytest

from softform_core.errors import SoftformError
from softform_rig.wire_log_writer import WireLogWriter


def test_requests_are_logged_whole_and_at_once_with_the_time_of_their_end(tmp_path):
    path = tmp_path / "wire.log"
    log = WireLogWriter(path)
    log.note_port(True)
    log.hear(b"SC=3\r\nT=1", 10.0)
    log.hear(b".500\r\n", 10.25)
    opened, *requests = path.read_text().splitlines()
    assert opened.split("\t")[1:] == ["port", "opened"]
    assert requests == ["10.000000\thost\tSC=3", "10.250000\thost\tT=1.500"]


def test_a_full_disk_does_not_stop_the_board(tmp_path):
    log = WireLogWriter(tmp_path / "wire.log")
    assert log._file is not None
    log._file.close()
    log._file = open("/dev/full", "a", buffering=1)  # noqa: SIM115
    log.hear(b"V\r\n", 1.0)


def test_a_log_that_cannot_be_written_is_rejected(tmp_path):
    with pytest.raises(SoftformError, match="wire_log"):
        WireLogWriter(tmp_path / "nowhere" / "wire.log")
