"""Calibration finds the factor and the floor that errors were drawn with, whatever outliers and noise are added."""

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.evaluation.uncertainty import calibrate, measurement_noise
from softform_core.forward.surface_uncertainty import members_spread


@pytest.mark.parametrize(("factor", "floor"), [(2.0, 0.3), (0.5, 1.0)])
def test_calibration_finds_how_errors_were_drawn(factor: float, floor: float) -> None:
    random = np.random.default_rng(0)
    spread = random.uniform(0.1, 2.0, 20000)
    noise = np.full(len(spread), 0.2)
    drawn = random.normal(size=len(spread)) * np.hypot(np.hypot(factor * spread, floor), noise)
    drawn[::100] += 30.0
    found = calibrate(drawn, spread, noise)
    assert found == pytest.approx((factor, floor), rel=0.12)


def test_calibrated_intervals_cover_as_many_errors_as_they_say() -> None:
    random = np.random.default_rng(1)
    spread = random.uniform(0.1, 1.0, 5000)
    drawn = random.normal(size=len(spread)) * np.hypot(1.5 * spread, 0.2)
    factor, floor = calibrate(drawn[:2500], spread[:2500], np.zeros(2500))
    sigma = np.hypot(factor * spread, floor)[2500:]
    assert np.mean(np.abs(drawn[2500:]) < sigma) == pytest.approx(0.683, abs=0.03)
    assert np.mean(np.abs(drawn[2500:]) < 1.96 * sigma) == pytest.approx(0.95, abs=0.02)


def test_noise_is_distinguished_from_smooth_errors() -> None:
    random = np.random.default_rng(2)
    points = random.uniform(0, 300, (1000, 3)) * [1, 1, 0]
    smooth = 2.0 * np.sin(points[:, 0] / 60.0)
    noisy = smooth + random.normal(0, 0.3, 1000)
    noisy[::50] += 15.0
    assert measurement_noise(points, noisy) == pytest.approx(0.3, rel=0.2)
    assert measurement_noise(points, smooth) < 0.15


def test_spread_is_the_standard_deviation_along_the_normal() -> None:
    random = np.random.default_rng(3)
    predictions = random.normal(size=(4, 2, 7, 3))
    normals = np.zeros((2, 7, 3))
    normals[..., 2] = 1.0
    assert np.allclose(members_spread(predictions, normals), predictions[..., 2].std(axis=0, ddof=1))


def test_one_member_has_no_spread() -> None:
    assert members_spread(np.ones((1, 5, 3)), np.ones((5, 3))).max() == 0.0


def test_without_distances_nothing_is_calibrated() -> None:
    with pytest.raises(SoftformError, match="no finite distances"):
        calibrate(np.array([]), np.array([]), np.array([]))
