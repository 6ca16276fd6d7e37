"""Offsets that outlive the driver's process, and every way in which their file can be wrong."""

from pathlib import Path

import numpy as np
import pytest

from softform_actuation.device import ServedActuators
from softform_core.errors import SoftformError
from softform_pneumatics.offsets import OffsetStore


def test_offsets_are_stored_whole_and_read_back(tmp_path: Path, served: ServedActuators) -> None:
    store = OffsetStore(tmp_path / "state" / "offsets.json", served, "/dev/ttyUSB0", 500.0)
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
def test_offsets_that_cannot_be_right_are_rejected(
    tmp_path: Path, served: ServedActuators, change, message: str
) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "offsets.json"
    store = OffsetStore(path, served, "/dev/ttyUSB0", 500.0)
    store.write(np.array([0.0, 0.0, 120.0] + [0.0] * 6))
    path.write_text(change(path.read_text()))
    with pytest.raises(SoftformError, match=message):
        store.read()


@pytest.mark.parametrize("offset", [501.0, -501.0, float("nan"), float("inf")])
def test_what_is_no_offset_is_not_taken_for_one(served: ServedActuators, offset: float) -> None:
    with pytest.raises(SoftformError, match="sensor of chamber c5"):
        OffsetStore(None, served, "", 500.0).checked(np.array([0.0] * 4 + [offset] + [0.0] * 4))
