"""What docs/notes/open3d.md says of our own work beside Open3D's, as far as it does not depend on the machine."""

import pytest

from softform_capture import open3d_comparison as comparison


@pytest.fixture(autouse=True)
def one_trial(monkeypatch):
    monkeypatch.setattr(comparison, "_TRIALS", 1)


def test_both_find_the_same_motions_and_distances():
    for figures in (*comparison.compare_rigid_motions().values(), comparison.compare_nearest_points()):
        assert figures["largest_difference_mm"] < 1e-9


def test_our_plane_is_as_accurate_as_the_page_says():
    figures = comparison.compare_planes()
    assert figures["ours"]["rms_error_mm"] < 0.05


def test_no_filter_of_open3d_that_spares_the_surface_drops_as_many_stray_points():
    figures = comparison.compare_stray_points()
    ours = figures.pop("ours")
    assert ours["true_kept"] > 0.99
    sparing = [each["stray_kept"] for each in figures.values() if each["true_kept"] > 0.99]
    assert len(sparing) >= 4 and ours["stray_kept"] < 0.1 * min(sparing)


def test_open3d_writes_no_comments():
    figures = comparison.compare_writing()
    assert figures["our_keeps_unit_and_time"] and not figures["open3d_keeps_unit_and_time"]
    assert figures["our_largest_rounding_mm"] < 1e-4
