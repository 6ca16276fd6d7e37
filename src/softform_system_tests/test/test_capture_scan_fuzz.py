"""Bytes of any kind in every reader of scans: no crash, no hang, nothing read that was not there."""

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softform_core.errors import SoftformError
from softform_core.shapes.read import read_shape
from softform_system_tests.fuzz_targets import scans as scan_fuzz_targets
from softform_system_tests.fuzz_targets.scans import SEEDS, TARGETS

CHEAP = settings(
    max_examples=60,
    deadline=timedelta(seconds=20),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
PIECES = [
    b"\n",
    b" ",
    b"nan",
    b"-1",
    b"1e400",
    b"4294967296",
    b"end_header\n",
    b"element face 9\n",
    b"f 1 2 9\n",
    b"\xff" * 4,
]


@st.composite
def damaged(draw, seeds):
    """A valid input in which something was changed, lost or put in."""
    data = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(1, 4))):
        at, length = draw(st.integers(0, len(data))), draw(st.integers(0, 20))
        data[at : at + length] = draw(st.sampled_from(PIECES) | st.binary(max_size=8))
    return bytes(data)


@pytest.mark.parametrize("name", list(TARGETS))
@CHEAP
@given(st.data())
def test_what_is_damaged_is_rejected_or_read_consistently(name, data):
    TARGETS[name](data.draw(damaged(SEEDS[name])))


@CHEAP
@given(st.sampled_from(list(TARGETS)), st.binary(max_size=200))
def test_any_bytes_are_rejected_or_read_consistently(name, data):
    TARGETS[name](data)


@pytest.mark.parametrize("name", list(TARGETS))
def test_the_valid_inputs_are_read(name, monkeypatch):
    """Else the targets would see rejections only."""
    shapes = []
    for reader in ("read_shape", "points_from_cloud", "bgr_from_image"):
        real = getattr(scan_fuzz_targets, reader)
        monkeypatch.setattr(scan_fuzz_targets, reader, lambda *a, real=real: shapes.append(real(*a)) or shapes[-1])
    for seed in SEEDS[name]:
        TARGETS[name](seed)
    assert len(shapes) == len(SEEDS[name])


@pytest.mark.parametrize("kind", ["ply", "stl", "xyz"])
@CHEAP
@given(data=st.data())
def test_a_cut_off_scan_is_no_scan(tmp_path, kind, data):
    whole = data.draw(st.sampled_from([seed.rstrip() for seed in SEEDS[f"fuzz_{kind}"]]))
    path = tmp_path / f"scan.{kind}"
    # In a text the last number may lose digits unseen, and a table of coordinates whole rows, with or without line end.
    cut = data.draw(st.integers(0, len(whole) - 12))
    path.write_bytes(whole[:cut])
    if kind == "xyz" and b"\n" in whole[max(cut - 1, 0) : cut + 1]:
        return
    with pytest.raises(SoftformError):
        read_shape(path, "mm")
