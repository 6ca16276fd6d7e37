"""Targets that no robot can take, and starts out of bounds: a named error, or a residual that says how far they are."""

from dataclasses import replace

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.inverse.inverse import solve_inverse_kinematics
from softform_core.robots import load_robot
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.shape import Shape
from softform_core.shapes.validate import check_target
from softform_core.units import MM_PER_M

CHAMBERS = 9


def hidden_actuation(seed):
    return np.random.default_rng(seed).uniform(500.0, 4500.0, CHAMBERS)


def is_honest(result, pipeline, options):
    """Within the bounds, no worse than the start, and the error is that of the shape at that actuation."""
    low, high = options.actuation_min, options.actuation_max
    assert (result.actuation >= low).all() and (result.actuation <= high).all()
    assert result.mean_error_mm <= result.history[0].mean_error_mm
    assert result.points == pytest.approx(pipeline.points(result.actuation))
    assert np.isfinite(result.reachability.unreachable_mm)
    assert result.reachability.unreachable_mm <= result.reachability.residual_mm * (1.0 + 1e-9)
    return True


def test_an_unreachable_target_says_what_holds_it_up(membrane, shape_of, options):
    shape = shape_of(membrane, np.full(CHAMBERS, 4000.0))
    higher = Shape(shape.points * [1.0, 1.0, 3.0], None, shape.faces)
    result = solve_inverse_kinematics(membrane, higher, options)
    assert is_honest(result, membrane, options)
    assert result.mean_error_mm > 5.0
    assert (result.reachability.active_bounds == 1).all()
    assert result.reachability.unreachable_mm == pytest.approx(result.reachability.residual_mm)
    reached = solve_inverse_kinematics(membrane, shape, options)
    assert reached.reachability.residual_mm < 0.01 and (reached.reachability.active_bounds == 0).all()


def test_detail_finer_than_a_chamber_is_what_no_motion_lowers(membrane, shape_of, options):
    shape = shape_of(membrane, hidden_actuation(0))
    ripples = 0.002 * np.sin(300.0 * shape.points[:, :1]) * [0.0, 0.0, 1.0]
    result = solve_inverse_kinematics(membrane, Shape(shape.points + ripples, None, shape.faces), options)
    assert is_honest(result, membrane, options)
    assert result.reachability.unreachable_mm > 0.9 * result.reachability.residual_mm > 0.5
    cut_short = solve_inverse_kinematics(membrane, shape, replace(options, max_seconds=1e-9))
    assert cut_short.reachability.unreachable_mm < 0.2 * cut_short.reachability.residual_mm


def test_feature_points_leave_weak_directions(membrane, options):
    uv = np.array([[0.5, 0.5]])
    features = FeaturePoints.of(uv, membrane.at(uv).points(hidden_actuation(1)) / MM_PER_M)
    result = solve_inverse_kinematics(membrane, None, options, features=features)
    weak = result.reachability.weak_directions
    assert 6 <= len(weak) <= 8 and np.linalg.norm(weak, axis=1) == pytest.approx(np.ones(len(weak)))
    point = membrane.at(uv)
    along = point.points(result.actuation + 200.0 * weak[0]) - point.points(result.actuation)
    strong = np.linalg.svd(weak)[2][-1]
    across = point.points(result.actuation + 200.0 * strong) - point.points(result.actuation)
    assert np.linalg.norm(along) < 0.1 * np.linalg.norm(across)


def test_a_target_in_millimetres_is_named_and_solved_for_honestly(membrane, shape_of, options):
    shape = shape_of(membrane, hidden_actuation(2))
    scaled = Shape(shape.points * 1000.0, None, shape.faces)
    with pytest.raises(SoftformError, match="millimetres"):
        check_target(scaled.points, load_robot("membrane"))
    result = solve_inverse_kinematics(membrane, scaled, options)
    assert is_honest(result, membrane, options)


def test_a_mirrored_target_is_not_reached_by_turning_it(membrane, shape_of, options):
    """Upside down: bulges became dents, and no turn of the target makes them bulges at the same places."""
    shape = shape_of(membrane, np.array([4500.0, 500, 500, 4500, 500, 500, 500, 500, 500]))
    mirrored = Shape(shape.points * [1.0, 1.0, -1.0], None, shape.faces)
    for fix_pose in (True, False):
        result = solve_inverse_kinematics(membrane, mirrored, replace(options, fix_pose=fix_pose))
        assert is_honest(result, membrane, options)
        assert np.linalg.det(result.pose.rotation) == pytest.approx(1.0)
    fixed = solve_inverse_kinematics(membrane, mirrored, options)
    assert fixed.mean_error_mm > 3.0 and (fixed.reachability.active_bounds == -1).sum() >= 7


def test_a_target_half_outside_counts_where_it_covers_the_robot(membrane, shape_of, options):
    shape = shape_of(membrane, hidden_actuation(3))
    aside = Shape(shape.points + [0.16, 0.0, 0.0], None, shape.faces)
    result = solve_inverse_kinematics(membrane, aside, options)
    assert is_honest(result, membrane, options)
    assert 0.3 < result.covered.mean() < 0.8
    beside = Shape(shape.points + [1.0, 0.0, 0.0], None, shape.faces)
    missed = solve_inverse_kinematics(membrane, beside, options)
    assert is_honest(missed, membrane, options) and missed.mean_error_mm > 500.0


def test_of_two_surfaces_the_nearer_counts(membrane, shape_of, options):
    hidden = hidden_actuation(4)
    shape = shape_of(membrane, hidden)
    above = shape.points + [0.0, 0.0, 0.12]
    two = Shape(np.concatenate([shape.points, above]))
    result = solve_inverse_kinematics(membrane, two, options)
    assert is_honest(result, membrane, options)
    assert result.mean_error_mm < 0.3 and result.actuation == pytest.approx(hidden, abs=100.0)


def test_a_target_that_meets_itself_is_fitted_as_it_is(membrane, shape_of, options):
    shape = shape_of(membrane, hidden_actuation(5))
    count = len(shape.points)
    crossing = shape.points * [1.0, 1.0, -1.0] + [0.0, 0.0, 0.03]
    both = Shape(np.concatenate([shape.points, crossing]), None, np.concatenate([shape.faces, shape.faces + count]))
    assert is_honest(solve_inverse_kinematics(membrane, both, options), membrane, options)


def test_a_seed_out_of_bounds_is_brought_within_them(membrane, shape_of, options):
    hidden = hidden_actuation(6)
    for wild in (-1e6, 1e6):
        seeded = replace(options, initial_actuation=np.full(CHAMBERS, wild))
        result = solve_inverse_kinematics(membrane, shape_of(membrane, hidden), seeded)
        start = result.history[0].actuation
        assert (start >= 0.0).all() and (start <= 5000.0).all()
        assert is_honest(result, membrane, options) and result.actuation == pytest.approx(hidden, abs=5.0)


def test_feature_points_out_of_reach_are_missed_by_what_is_missing(membrane, options):
    uv = np.array([[0.5, 0.5]])
    top = membrane.at(uv).points(np.full(CHAMBERS, 5000.0)) / MM_PER_M
    result = solve_inverse_kinematics(membrane, None, options, features=FeaturePoints.of(uv, top + [0.0, 0.0, 0.05]))
    assert result.mean_error_mm == pytest.approx(50.0, abs=1.0)
    assert result.reachability.active_bounds[4] == 1
