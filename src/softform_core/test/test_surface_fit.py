import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softform_core.errors import SoftformError
from softform_core.surface.bspline import evaluate
from softform_core.surface.fit import SurfaceFitter

rng = np.random.default_rng(0)
UV = np.concatenate([rng.random((400, 2)), [[0, 0], [0, 1], [1, 0], [1, 1]]])
FITTER = SurfaceFitter(UV, 8, 6)


def test_a_surface_is_found_again_from_its_points():
    control = rng.normal(size=(3, 8, 6, 3))
    found = FITTER.fit(evaluate(control, UV))
    np.testing.assert_allclose(found, control, atol=1e-8)


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_planes_are_reproduced_and_fits_are_affinely_invariant(seed):
    random = np.random.default_rng(seed)
    linear, shift = random.normal(size=(3, 3)), random.normal(size=3)
    plane = UV @ linear[:, :2].T + shift
    control = FITTER.fit(plane)
    np.testing.assert_allclose(evaluate(control, UV), plane, atol=1e-9)
    shape = random.normal(size=(len(UV), 3))
    np.testing.assert_allclose(FITTER.fit(shape @ linear.T + shift), FITTER.fit(shape) @ linear.T + shift, atol=1e-6)


def test_fit_is_the_least_squares_solution():
    shape = rng.normal(size=(len(UV), 3))
    expected = np.linalg.lstsq(FITTER.basis.toarray(), shape, rcond=None)[0]
    np.testing.assert_allclose(FITTER.fit(shape).reshape(-1, 3), expected, atol=1e-8)


def test_report_gives_mean_and_largest_distance_of_each_shape():
    control = rng.normal(size=(2, 8, 6, 3))
    shapes = evaluate(control, UV)
    shapes[1, 5] += [0.0, 3.0, 4.0]
    report = FITTER.report(shapes, control)
    np.testing.assert_allclose(report.max, [0.0, 5.0], atol=1e-12)
    np.testing.assert_allclose(report.mean, [0.0, 5.0 / len(UV)], atol=1e-12)


def test_vertices_that_leave_control_points_free_are_rejected():
    with pytest.raises(SoftformError, match="do not determine 30 x 30"):
        SurfaceFitter(UV)
    with pytest.raises(SoftformError, match="do not determine"):
        SurfaceFitter(UV * [0.5, 1.0], 8, 6)


def test_shapes_that_do_not_fit_are_rejected():
    with pytest.raises(SoftformError, match="vertices of the rest shape"):
        FITTER.fit(np.zeros((7, 3)))
    with pytest.raises(SoftformError, match="NaN"):
        FITTER.fit(np.full((len(UV), 3), np.nan))
    with pytest.raises(SoftformError, match="belong together"):
        FITTER.report(np.zeros((2, len(UV), 3)), np.zeros((1, 8, 6, 3)))
