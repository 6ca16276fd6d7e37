"""The field of what a capture shows beyond a prediction: exact feet, holes, strays, and the pipeline it corrects."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from softform_core.errors import SoftformError
from softform_core.forward.corrected_pipeline import CorrectedPipeline
from softform_core.inverse.residual_field import ResidualField, surface_residuals
from softform_core.surface.bspline import apply, evaluate, unit_normals
from softform_core.surface.patch_set import SHEET

ACTUATION = np.array([4000.0, 500.0, 3000.0, 800.0, 2500.0, 1500.0, 200.0, 3500.0, 1000.0])


def bump(uv):
    """A displacement that no actuation of the membrane makes, mm."""
    return 4.0 * np.sin(np.pi * uv[:, 0]) * np.sin(2.0 * np.pi * uv[:, 1])


SEEN = np.random.default_rng(0).uniform(0.002, 0.998, (6000, 2))


@pytest.fixture(scope="module")
def captured(membrane):
    """Points of a surface that lies off the predicted one by `bump` along the normals, mm."""
    (control_points,) = membrane.patches.control_grids(membrane.control_points(ACTUATION))
    normals = unit_normals(*(apply(slope, control_points) for slope in SHEET.derivatives(SEEN)))
    return evaluate(control_points, SEEN) + bump(SEEN)[:, None] * normals


def test_feet_and_residuals_are_exact_between_the_grid_points(membrane, captured):
    residuals = surface_residuals(membrane.points(ACTUATION), captured)
    assert len(residuals.uv) > 0.97 * len(captured)
    # Parameters of the feet are those at which the points were displaced.
    nearest = cKDTree(SEEN).query(residuals.uv)[0]
    assert np.median(nearest) < 1e-3
    assert np.abs(residuals.along_normal - bump(residuals.uv)).mean() < 0.03


def test_points_beyond_the_rim_have_no_foot(membrane, captured):
    predicted = membrane.points(ACTUATION)
    beside = captured + [0.0, 400.0, 0.0]
    with pytest.raises(SoftformError, match="No captured point"):
        surface_residuals(predicted, beside)
    both = surface_residuals(predicted, np.concatenate([captured, beside]))
    assert len(both.uv) == len(surface_residuals(predicted, captured).uv)


def test_noise_and_strays_do_not_bend_the_field(membrane, captured):
    rng = np.random.default_rng(1)
    noisy = captured + 0.2 * rng.normal(size=captured.shape)
    strays = rng.choice(len(noisy), 150, replace=False)
    noisy[strays, 2] += rng.uniform(5.0, 20.0, len(strays))
    field = ResidualField.zero().towards(surface_residuals(membrane.points(ACTUATION), noisy))
    inner = membrane.uv[(np.abs(membrane.uv - 0.5) < 0.48).all(axis=1)]
    assert np.abs(field.values(inner) - bump(inner)).mean() < 0.1
    assert np.abs(field.values(inner) - bump(inner)).max() < 0.5


def test_a_hole_is_bridged_smoothly_and_keeps_what_was_known(membrane, captured):
    predicted = membrane.points(ACTUATION)
    in_hole = np.linalg.norm(captured[:, :2] - [0.0, 80.0], axis=1) < 35.0
    holed = surface_residuals(predicted, captured[~in_hole])
    nodes = np.linalg.norm(predicted[:, :2] - [0.0, 80.0], axis=1) < 25.0
    truth = bump(membrane.uv[nodes])
    bridged = ResidualField.zero().towards(holed)
    assert np.abs(bridged.values(membrane.uv[nodes]) - truth).max() < 0.5 * np.abs(truth).max()
    known = ResidualField.zero().towards(surface_residuals(predicted, captured)).towards(holed)
    assert np.abs(known.values(membrane.uv[nodes]) - truth).max() < 0.2


def test_the_gain_goes_part_of_the_way(membrane, captured):
    residuals = surface_residuals(membrane.points(ACTUATION), captured)
    whole, half = (ResidualField.zero().towards(residuals, gain).coefficients for gain in (1.0, 0.5))
    assert half == pytest.approx(0.5 * whole)


def test_a_corrected_pipeline_is_displaced_and_keeps_its_derivatives(exact_membrane):
    displacement = bump(exact_membrane.uv)[:, None] * exact_membrane.normals(ACTUATION)
    displaced = CorrectedPipeline(exact_membrane, lambda _: displacement)
    state = displaced.forward(ACTUATION[None])
    assert state.points[0] == pytest.approx(exact_membrane.points(ACTUATION) + displacement)
    jacobian = displaced.jacobian(state)[0]
    step = 0.5 * np.eye(9)
    for k in range(9):
        up, down = (displaced.forward((ACTUATION + sign * step[k])[None]).points[0] for sign in (1.0, -1.0))
        assert jacobian[:, :, k] == pytest.approx(up - down, abs=1e-6 + 1e-4 * np.abs(jacobian).max())
    residuals = np.random.default_rng(2).normal(size=state.points[0].shape)
    expected = 2.0 * np.einsum("px,pxk->k", residuals, jacobian)
    assert displaced.objective_gradient(state, residuals) == pytest.approx(expected)


def test_the_grid_of_the_field_is_that_of_the_surface():
    field = ResidualField(np.full(ResidualField.zero().coefficients.shape, 2.5))
    assert field.values(SHEET.samples(100)) == pytest.approx(np.full(100, 2.5))
