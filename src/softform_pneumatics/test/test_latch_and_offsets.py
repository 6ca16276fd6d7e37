"""What outlives the driver's process: latch and offsets, and every way in which their files can be wrong."""

from pathlib import Path

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_pneumatics.latch import Latch
from softform_pneumatics.offsets import OffsetStore


def test_a_latch_is_found_again_and_let_go(tmp_path: Path) -> None:
    path = tmp_path / "state" / "latch.json"
    assert Latch(path).read() is None
    Latch(path).set("stopped by request")
    assert Latch(path).read() == "stopped by request"
    Latch(path).clear()
    assert Latch(path).read() is None
    Latch(path).clear()


@pytest.mark.parametrize("content", [b"", b"{", b'{"reason": 3}', b"\xff\xfe", b"[]"])
def test_a_damaged_latch_counts_as_latched(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "latch.json"
    path.write_bytes(content)
    assert "cannot be read" in str(Latch(path).read())


def test_a_latch_that_cannot_be_written_says_so_and_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    latch = Latch(tmp_path / "file" / "latch.json")
    latch.set("stopped")
    assert "would not survive" in latch.failure


def test_offsets_are_stored_whole_and_read_back(tmp_path: Path, robot: Robot) -> None:
    store = OffsetStore(tmp_path / "state" / "offsets.json", robot, "/dev/ttyUSB0", 500.0)
    assert np.array_equal(store.read(), np.zeros(9))
    offsets = np.arange(9) * 50.0 - 200.0
    store.write(offsets)
    assert store.read() == pytest.approx(offsets)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-20], "cannot be read"),
        (lambda text: text.replace('"membrane"', '"other"'), "those of 'other'"),
        (lambda text: text.replace("ttyUSB0", "ttyUSB1"), "on /dev/ttyUSB1"),
        (lambda text: text.replace('"c3"', '"c33"'), "other chambers"),
        (lambda text: text.replace("120.0", "9120.0"), "chamber c3 reads 9120 Pa"),
        (lambda text: text.replace("120.0", "NaN"), "cannot be read|counts as an offset"),
    ],
)
def test_offsets_that_cannot_be_right_are_refused(tmp_path: Path, robot: Robot, change, message: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "offsets.json"
    store = OffsetStore(path, robot, "/dev/ttyUSB0", 500.0)
    store.write(np.array([0.0, 0.0, 120.0] + [0.0] * 6))
    path.write_text(change(path.read_text()))
    with pytest.raises(SoftformError, match=message):
        store.read()


@pytest.mark.parametrize("offset", [501.0, -501.0, float("nan"), float("inf")])
def test_what_is_no_offset_is_not_taken_for_one(robot: Robot, offset: float) -> None:
    with pytest.raises(SoftformError, match="sensor of chamber c5"):
        OffsetStore(None, robot, "", 500.0).checked(np.array([0.0] * 4 + [offset] + [0.0] * 4))
