"""The compiled loops of the warp against numpy."""

import numpy as np
import pytest

from softform_core.forward.rbf_warp import gaussians


@pytest.mark.parametrize("extent", [0.0, 1e-3, 300.0, 1e4])
def test_gaussians_are_numpys(extent: float) -> None:
    random = np.random.default_rng(3)
    points, centers = extent * random.normal(size=(2, 37, 3)), extent * random.normal(size=(2, 11, 3))
    squared = ((points[:, :, None] - centers[:, None]) ** 2).sum(-1)
    np.testing.assert_allclose(gaussians(points, centers, 3e-4), np.exp(-3e-4 * squared), rtol=1e-12, atol=1e-100)


def test_a_point_that_is_not_finite_is_not_hidden() -> None:
    points = np.array([[[np.nan, 0.0, 0.0], [1.0, 2.0, 3.0]]])
    values = gaussians(points, np.zeros((1, 5, 3)), 3e-4)
    assert np.isnan(values[0, 0]).all()
    assert np.isfinite(values[0, 1]).all()
