"""Which clouds may be learned from."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softform_core.frames.quality import COVERAGE_CELLS, assess_cloud, covered_cells
from softform_core.registration.rest_surface import rest_surface
from softform_core.robots import load_robot
from softform_core.surface.feet import feet_on
from softform_core.units import MM_PER_M

ROBOT = load_robot("membrane")


def bulged(points: int = 20_000, seed: int = 0) -> np.ndarray:
    """A membrane with nine bulges of 30 mm and 0.2 mm of noise, m."""
    random = np.random.default_rng(seed)
    xy = random.uniform(-0.5, 0.5, (points, 2)) * ROBOT.extent
    waves = np.abs(np.sin(3 * np.pi * (xy / ROBOT.extent + 0.5)))
    return np.column_stack([xy, 0.03 * waves.prod(axis=1) + 2e-4 * random.standard_normal(points)])


def covered(points: np.ndarray) -> np.ndarray:
    """Cells of the resting sheet that hold a point."""
    feet = feet_on(rest_surface(ROBOT).points, ROBOT.patches, points)
    return covered_cells(feet, float(ROBOT.extent.max()), ROBOT.patches)


def test_a_whole_scan_is_good():
    quality = assess_cloud(bulged(), ROBOT)
    assert quality.fault == "" and quality.coverage == 1.0 and quality.outliers < 0.01


@settings(max_examples=10)
@given(edge=st.integers(1, COVERAGE_CELLS))
def test_missing_regions_are_recorded_as_such(edge):
    points = bulged()
    limit = (edge / COVERAGE_CELLS - 0.5) * ROBOT.extent[0]
    cells = covered(points[points[:, 0] < limit])
    assert cells[:edge].all() and not cells[edge:].any()


def test_points_beside_the_body_cover_nothing():
    assert not covered(bulged() + [1.0, 0.0, 0.0]).any()
    assert not covered(np.empty((0, 3))).any()


def noise(points: int = 20_000) -> np.ndarray:
    random = np.random.default_rng(1)
    return random.uniform(-0.5, 0.5, (points, 3)) * [*ROBOT.extent, 0.1]


def with_outliers(share: float) -> np.ndarray:
    points = bulged()
    false = np.random.default_rng(2).random(len(points)) < share
    points[false, 2] += np.random.default_rng(3).uniform(0.02, 0.08, false.sum())
    return points


@pytest.mark.parametrize(
    ("points", "said"),
    [
        (np.empty((0, 3)), "empty"),
        (bulged()[:3], "3 points"),
        (bulged()[bulged()[:, 0] < -0.05], "covers"),
        (noise(), "noise|outliers"),
        (noise(2000), "noise|outliers"),
        (with_outliers(0.15), "outliers"),
        (bulged() * MM_PER_M, "millimetres"),
        (bulged() + [0.2, 0.0, 0.0], "beside robot"),
        (bulged() * 2.0, "beside robot"),
        (np.zeros((500, 3)), "coincide"),
    ],
    ids=["empty", "three", "half", "noise", "thin noise", "outliers", "mm", "moved", "another robot", "one point"],
)
def test_unfit_clouds_are_rejected_with_a_reason(points, said):
    fault = assess_cloud(points, ROBOT).fault
    assert any(word in fault for word in said.split("|")), fault


def test_the_share_of_outliers_is_estimated():
    assert assess_cloud(with_outliers(0.03), ROBOT).outliers == pytest.approx(0.03, abs=0.01)
