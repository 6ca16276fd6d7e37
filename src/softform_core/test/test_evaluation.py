import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.evaluation.errors import distances_to_shape, summarise_errors
from softform_core.shapes.shape import Shape

SQUARE = Shape.from_mesh([[0, 0, 0], [0.3, 0, 0], [0, 0.3, 0], [0.3, 0.3, 0]], [[0, 1, 2], [1, 3, 2]])


def test_distances_to_a_mesh_are_exact_and_in_millimetres():
    points = [[0.1, 0.2, 0.005], [0.1, 0.1, -0.002], [0.33, 0.34, 0.0], [0.15, 0.15, 0.0]]
    assert distances_to_shape(points, SQUARE) == pytest.approx([5.0, 2.0, 50.0, 0.0], abs=1e-9)


def test_distances_to_a_dense_cloud_are_those_to_its_surface():
    cloud = Shape.from_cloud(SQUARE.sample(20_000).points)
    queries = SQUARE.sample(300, seed=9).points + [0.0, 0.0, 0.004]
    inside = ((queries[:, :2] > 0.01) & (queries[:, :2] < 0.29)).all(axis=1)
    distances = distances_to_shape(queries[inside], cloud)
    assert distances.mean() == pytest.approx(4.0, abs=0.02)
    assert np.abs(distances - 4.0).max() < 0.2


@pytest.mark.parametrize("points", [np.empty((0, 3)), np.ones((3, 2)), [[0.0, 0.0, np.nan]]])
def test_unusable_queries_are_rejected(points):
    with pytest.raises(SoftformError):
        distances_to_shape(points, SQUARE)


def test_summary_of_known_errors():
    summary = summarise_errors([3.0, 4.0, 0.0, 5.0])
    assert summary.count == 4
    assert summary.mean_mm == 3.0
    assert summary.rms_mm == pytest.approx(np.sqrt(12.5))
    assert (summary.median_mm, summary.max_mm) == (3.5, 5.0)
    assert summary.median_mm <= summary.p90_mm <= summary.p99_mm <= summary.max_mm
    with pytest.raises(SoftformError):
        summarise_errors([])
    with pytest.raises(SoftformError):
        summarise_errors([1.0, np.nan])
