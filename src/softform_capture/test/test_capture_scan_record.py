"""What the scanner's diagnostics say of a source that is gone."""

import time

import pytest

from softform_capture.scanner.scan_quality import ScanQuality
from softform_capture.scanner.scan_record import ScanRecord
from softform_ros.diagnostics import ERROR, OK, WARN


@pytest.mark.parametrize(("needs_source", "level"), [(True, ERROR), (False, WARN)])
def test_a_camera_that_is_gone_is_an_error_and_a_folder_may_come_yet(needs_source: bool, level: bytes) -> None:
    record = ScanRecord("is it on?", needs_source)
    assert record.health({}, 10.0, 0.5).level == OK
    record.fault = "camera right sends no clouds"
    assert record.health({}, 10.0, 0.5).level == level
    assert record.health({}, 10.0, 0.5).message == record.fault


def test_a_folder_that_goes_away_after_scans_came_is_an_error() -> None:
    record = ScanRecord("is it on?")
    record.note("a.ply", 100, time.time(), ScanQuality(0.9, 1e4, 0.0), {})
    record.fault = "The scan folder cannot be read."
    assert record.health({}, 10.0, 0.5).level == ERROR


def test_without_a_new_export_for_long_it_only_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    record, begun = ScanRecord("is it the right folder?"), time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: begun + 11.0)
    assert record.health({}, 10.0, 0.5).level == WARN
