"""Predicted against captured shapes whose distances are known: plane, sphere, holes, strays, noise, markers."""

import numpy as np
import pytest

from softform_core.evaluation.comparison import PredictedSurface, compare_markers, compare_scan
from softform_core.evaluation.evaluate import JudgedFrame, findings, worst_median_best
from softform_core.evaluation.summary import overall_figures, summarise

pytestmark = pytest.mark.slow

GRID = 41


def sheet(height=0.0, side=320.0, count=GRID):
    """A flat sheet around the origin, (count, count, 3) mm."""
    line = np.linspace(-0.5 * side, 0.5 * side, count)
    x, y = np.meshgrid(line, line, indexing="ij")
    return np.stack([x, y, np.full_like(x, height)], axis=-1)


def cap(radius, count=GRID, half=120.0):
    """Part of a sphere around the origin, over a square."""
    surface = sheet(side=2.0 * half, count=count)
    surface *= radius / np.hypot(np.linalg.norm(surface, axis=-1), 200.0)[..., None]
    surface[..., 2] = np.sqrt(radius**2 - surface[..., 0] ** 2 - surface[..., 1] ** 2)
    return surface


def of_grid(points, sigma=None):
    """The surface of a grid of points (count, count, 3) mm."""
    return PredictedSurface(points.reshape(-1, 3), sigma)


def cloud_of(surface):
    """Its points in metres, as a capture."""
    return surface.reshape(-1, 3) / 1000.0


def test_a_plane_above_a_plane():
    comparison = compare_scan(of_grid(sheet()), cloud_of(sheet(2.5, side=319.0, count=97)))
    assert comparison.distances == pytest.approx(2.5)
    assert comparison.along_normal == pytest.approx(2.5)  # above, along du x dv
    assert comparison.error_map[comparison.seen] == pytest.approx(2.5)
    assert comparison.normal_errors[comparison.seen] == pytest.approx(0.0, abs=1e-9)
    assert comparison.seen.mean() > 0.99
    assert comparison.noise_mm == pytest.approx(0.0, abs=1e-9)
    assert (comparison.beside, comparison.folded, comparison.sigma) == (0, 0, None)


def test_a_sphere_in_a_larger_one():
    comparison = compare_scan(of_grid(cap(200.0, count=101)), cloud_of(cap(203.0, count=90)))
    inside = comparison.distances[comparison.distances < 3.2]
    assert len(inside) > 0.9 * len(comparison.distances)  # the rest looks past the rim
    assert inside.mean() == pytest.approx(3.0, abs=0.02)
    middle = comparison.error_map.reshape(101, 101)[30:70, 30:70]
    assert middle == pytest.approx(3.0, abs=0.05)
    assert np.nanmedian(comparison.normal_errors) < 1e-4


def test_a_tilted_plane_has_the_normal_error_of_its_angle():
    angle = np.radians(10.0)
    tilted = sheet(side=300.0, count=91)
    tilted = np.stack([tilted[..., 0] * np.cos(angle), tilted[..., 1], tilted[..., 0] * np.sin(angle)], axis=-1)
    comparison = compare_scan(of_grid(sheet()), cloud_of(tilted))
    # Far from the axis the tilted plane is too far from the sheet to be seen straight below.
    assert np.nanmedian(comparison.normal_errors) == pytest.approx(1.0 - np.cos(angle), rel=1e-3)
    assert comparison.distances == pytest.approx(np.abs(tilted[..., 2].ravel()), abs=1e-6)


def test_holes_are_not_compared_and_strays_beside_the_robot_are_left_out():
    captured = sheet(1.0, side=318.0, count=101).reshape(-1, 3)
    hole = np.linalg.norm(captured[:, :2] - [50.0, 20.0], axis=1) < 45.0
    table = np.array([[260.0, 0.0, 1.0], [0.0, -300.0, 1.0]])
    comparison = compare_scan(of_grid(sheet()), cloud_of(np.vstack([captured[~hole], table])))
    assert comparison.beside == 2
    assert comparison.distances.max() == pytest.approx(1.0)
    predicted = sheet()
    in_hole = np.linalg.norm(predicted[..., :2] - [50.0, 20.0], axis=-1)
    seen = comparison.seen.reshape(GRID, GRID)
    assert not seen[in_hole < 38.0].any()
    assert seen[(in_hole > 52.0) & (np.abs(predicted[..., :2]).max(axis=-1) < 155.0)].all()
    assert np.nanmax(comparison.error_map) < 6.0


def test_coverage_of_a_calibrated_and_of_an_overconfident_model():
    generator = np.random.default_rng(3)
    # A smooth error of 0.3 mm and noise of 0.2 mm; the noise is estimated, the error must be what sigma says.
    captured = sheet(side=318.0, count=120)
    waves = sum(
        generator.normal() * np.sin(captured[..., 0] / width + turn) * np.sin(captured[..., 1] / width + turn)
        for width, turn in zip(generator.uniform(20.0, 60.0, 24), generator.uniform(0.0, 6.0, 24), strict=True)
    )
    captured[..., 2] = 0.3 * waves / waves.std() + generator.normal(scale=0.2, size=waves.shape)
    right = compare_scan(of_grid(sheet(), np.full(GRID**2, 0.3)), cloud_of(captured))
    assert right.noise_mm == pytest.approx(0.2, abs=0.03)
    assert right.within(1.0) == pytest.approx(0.68, abs=0.06)
    assert right.within(2.0) == pytest.approx(0.95, abs=0.03)
    sure = compare_scan(of_grid(sheet(), np.full(GRID**2, 0.03)), cloud_of(captured))
    assert sure.within(2.0) < 0.85


def test_markers_are_measured_to_their_own_points():
    uv = np.array([[0.25, 0.5], [0.5, 0.5], [0.8, 0.1], [0.1, 0.9]])
    surface = of_grid(sheet(), np.full(GRID**2, 2.0))
    places = np.stack([320.0 * uv[:, 0] - 160.0, 320.0 * uv[:, 1] - 160.0, np.zeros(4)], axis=1)
    moved = places + [[0.0, 0.0, 1.0], [3.0, 0.0, 4.0], [0.0, 0.0, -5.0], [0.0, 0.0, 0.0]]
    moved[3] = np.nan
    comparison = compare_markers(surface, moved / 1000.0, uv)
    assert comparison.distances == pytest.approx([1.0, 5.0, 5.0])
    assert comparison.along_normal == pytest.approx([1.0, 4.0, -5.0])
    assert comparison.within(1.0) == pytest.approx(1 / 3)
    assert comparison.within(2.0) == pytest.approx(2 / 3)
    assert (comparison.chamfer_mm2, comparison.hausdorff_mm, comparison.noise_mm) == (None, None, None)
    figures = overall_figures([JudgedFrame(0, False, 0.25, comparison, None)])
    assert figures["before"]["rms_mm"] == pytest.approx(np.sqrt(51.0 / 3.0), abs=1e-4)
    assert figures["before"]["normal_mean_mm"] == pytest.approx(10.0 / 3.0, abs=1e-4)
    assert figures["before"]["normal_error"] is None and figures["mean_reduction"] is None


def judged(number, before_mm, after_mm, surface=None):
    captured = cloud_of(sheet(side=318.0, count=60))
    after = of_grid(sheet(after_mm) if surface is None else surface)
    return JudgedFrame(
        number, False, 0.0, compare_scan(of_grid(sheet(before_mm)), captured), compare_scan(after, captured)
    )


def test_summary_pools_points_and_cuts_are_shares():
    frames = [judged(0, 4.0, 1.0), judged(1, 2.0, 1.0)]
    figures = overall_figures(frames)
    assert figures["before"]["mean_mm"] == pytest.approx(3.0)
    assert figures["before"]["rms_mm"] == pytest.approx(np.sqrt(10.0), abs=1e-4)
    assert figures["mean_reduction"] == pytest.approx(1.0 - 1.0 / 3.0, abs=1e-4)
    assert figures["max_reduction"] == pytest.approx(1.0 - 1.0 / 3.0, abs=1e-4)
    assert overall_figures(frames[1:])["before"]["max_mm"] == pytest.approx(2.0)
    assert summarise([frames[0].before]).captured.count == 60 * 60


def test_findings_name_frames_that_fold_stand_out_or_get_worse():
    folded = sheet(0.5)
    x, y = folded[..., 0], folded[..., 1]
    folded[..., 0] += 60.0 * np.exp(-((x / 25.0) ** 2) - (y / 60.0) ** 2)
    frames = [judged(3, 2.0, 0.5), judged(5, 2.0, 0.5, folded), judged(8, 2.0, 3.0), judged(9, 2.0, 0.52)]
    found = findings(frames, {4: "rejected when collected: it is noise."})
    assert [finding.split(" ")[1].strip(":") for finding in found] == ["4", "5", "8", "8"]
    assert "folds" in found[1] and "stands out" in found[2] and "worse, 2.00 to 3.00 mm" in found[3]
    assert findings([frames[0], frames[3]], {}) == []


def test_worst_median_and_best_are_ranked_by_the_mean_that_counts():
    frames = [judged(number, 5.0, error) for number, error in ((1, 0.4), (2, 0.9), (3, 0.1), (4, 0.2))]
    assert [frame.number for frame in worst_median_best(frames)] == [2, 4, 3]
    assert [frame.number for frame in worst_median_best(frames[:1])] == [1]
