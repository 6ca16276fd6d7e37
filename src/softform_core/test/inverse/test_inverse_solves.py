"""Inverse kinematics: recovers what can be known, respects bounds, limits and the caller, rejects bad input."""

from dataclasses import replace

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.geometry.rigid import RigidTransform
from softform_core.inverse.ik_options import IkOptions, Termination
from softform_core.inverse.inverse import solve_inverse_kinematics
from softform_core.inverse.levenberg_marquardt import box_minimum
from softform_core.shapes.shape import Shape
from softform_core.surface.patch_set import SHEET

CHAMBERS = 9
MOVED = RigidTransform().moved(np.array([0.1, -0.05, 0.15]), np.array([0.012, -0.007, 0.02]), np.zeros(3))


def hidden_actuation(seed):
    return np.random.default_rng(seed).uniform(0.0, 5000.0, CHAMBERS)


@pytest.mark.parametrize("seed", range(5))
def test_recovers_hidden_pressures_from_their_own_shape(corrected_membrane, shape_of, options, seed):
    hidden = hidden_actuation(seed)
    result = solve_inverse_kinematics(corrected_membrane, shape_of(corrected_membrane, hidden), options)
    assert result.termination is Termination.CONVERGED
    assert result.mean_error_mm < 0.01 and result.max_error_mm < 0.01
    assert result.actuation == pytest.approx(hidden, abs=1.0)
    assert result.iterations <= 15 and len(result.history) == result.iterations + 1
    assert np.allclose(result.pose.rotation, np.eye(3)) and np.allclose(result.pose.translation, 0.0)
    assert result.history[0].mean_error_mm > 100.0 * result.mean_error_mm
    assert 1 <= result.coarse_iterations <= 6


@pytest.mark.parametrize("seed", range(3))
def test_recovers_hidden_pressures_of_random_networks(random_forward_kinematics, shape_of, options, seed):
    pipeline = ForwardPipeline(random_forward_kinematics(seed), SHEET.samples(1000))
    hidden = hidden_actuation(seed)
    result = solve_inverse_kinematics(pipeline, shape_of(pipeline, hidden), options)
    assert result.mean_error_mm < 0.01 and result.actuation == pytest.approx(hidden, abs=5.0)


def test_recovers_the_pose_of_a_moved_target(membrane, shape_of, options):
    hidden = hidden_actuation(3)
    target = shape_of(membrane, hidden).transformed(MOVED.rotation, MOVED.translation)
    free = replace(options, fix_pose=False, max_iterations=300)
    result = solve_inverse_kinematics(membrane, target, free)
    assert result.mean_error_mm < 0.01
    assert result.actuation == pytest.approx(hidden, abs=5.0)
    assert np.allclose(result.pose.rotation @ MOVED.rotation, np.eye(3), atol=1e-3)
    fixed = solve_inverse_kinematics(membrane, target, options)
    assert fixed.mean_error_mm > 1.0


def test_a_target_far_away_is_brought_over_the_robot(membrane, shape_of, options):
    target = shape_of(membrane, hidden_actuation(1)).transformed(np.eye(3), np.array([3.0, -2.0, 1.0]))
    result = solve_inverse_kinematics(membrane, target, replace(options, fix_pose=False))
    assert result.mean_error_mm < 0.01
    assert result.pose.translation == pytest.approx([-3000.0, 2000.0, -1000.0], abs=1.0)


def test_bounds_hold_and_the_rest_is_still_the_best(membrane, shape_of, options):
    hidden = hidden_actuation(4)
    hidden[[0, 4]] = 4800.0
    low, high = np.full(CHAMBERS, 200.0), np.full(CHAMBERS, 4000.0)
    tight = replace(options, actuation_min=low, actuation_max=high, relative_decrease=1e-9)
    result = solve_inverse_kinematics(membrane, shape_of(membrane, hidden), tight)
    assert (result.actuation >= low).all() and (result.actuation <= high).all()
    assert (result.actuation[[0, 4]] == 4000.0).all()
    assert all((step.actuation >= low).all() and (step.actuation <= high).all() for step in result.history)
    target = shape_of(membrane, hidden)
    for nudge in np.concatenate([np.eye(CHAMBERS), -np.eye(CHAMBERS)]) * 20.0:
        nudged = np.clip(result.actuation + nudge, low, high)
        once = replace(tight, initial_actuation=nudged, max_iterations=1, max_seconds=1e-9)
        assert solve_inverse_kinematics(membrane, target, once).objective >= result.objective * (1.0 - 1e-6)


def test_a_target_with_a_hole_is_fitted_where_it_is(membrane, shape_of, options):
    hidden = hidden_actuation(5)
    whole = shape_of(membrane, hidden)
    centers = whole.points[whole.faces].mean(axis=1)
    with_hole = Shape(whole.points, None, whole.faces[np.linalg.norm(centers[:, :2] - 0.05, axis=1) > 0.05])
    result = solve_inverse_kinematics(membrane, with_hole, options)
    deviation = np.linalg.norm(membrane.points(result.actuation) - membrane.points(hidden), axis=1)
    assert deviation.mean() < 0.05 and deviation.max() < 0.3
    assert 0.85 < result.covered.mean() < 0.97
    complete = solve_inverse_kinematics(membrane, whole, options)
    assert complete.covered.all()


def test_half_a_target_with_fixed_pose(membrane, shape_of, options):
    hidden = hidden_actuation(6)
    whole = shape_of(membrane, hidden)
    left = Shape(whole.points, None, whole.faces[whole.points[whole.faces].mean(axis=1)[:, 0] < 0.03])
    result = solve_inverse_kinematics(membrane, left, options)
    ours, theirs = membrane.points(result.actuation), membrane.points(hidden)
    assert np.linalg.norm(ours - theirs, axis=1)[theirs[:, 0] < 20.0].max() < 1.0


def test_a_noisy_scan_without_faces(membrane, shape_of, options):
    rng = np.random.default_rng(7)
    hidden = hidden_actuation(7)
    fine = ForwardPipeline(membrane_network(membrane), SHEET.samples(3600)).points(hidden) / 1000.0
    scan = fine[rng.choice(len(fine), 2000, replace=False)] + 2e-4 * rng.normal(size=(2000, 3))
    for fix_pose in (True, False):
        result = solve_inverse_kinematics(membrane, Shape(scan), replace(options, fix_pose=fix_pose))
        deviation = np.linalg.norm(membrane.points(result.actuation) - membrane.points(hidden), axis=1)
        assert deviation.mean() < 0.15


def membrane_network(pipeline):
    class Network:
        weights = list(pipeline.network.weights)
        biases = list(pipeline.network.biases)
        activation = pipeline.network.activation
        input_offset = output_offset = np.zeros(1)
        input_scale = output_scale = np.ones(1)

    return Network()


def test_objective_never_rises_and_is_eq_15(membrane, shape_of, options):
    target = shape_of(membrane, hidden_actuation(9))
    result = solve_inverse_kinematics(membrane, target, replace(options, fix_pose=False))
    objectives = [step.objective for step in result.history]
    assert all(later <= earlier for earlier, later in zip(objectives[:-1], objectives[1:], strict=True))
    assert result.objective == pytest.approx(float((result.matches.distances[result.covered] ** 2).sum()), rel=1e-9)
    assert result.mean_error_mm == pytest.approx(result.matches.distances.mean())


def test_the_same_start_gives_the_same_answer_and_a_good_seed_a_quick_one(membrane, shape_of, options):
    hidden = hidden_actuation(10)
    target = shape_of(membrane, hidden)
    first, second = (solve_inverse_kinematics(membrane, target, options) for _ in range(2))
    assert (first.actuation == second.actuation).all() and first.iterations == second.iterations
    seeded = solve_inverse_kinematics(membrane, target, replace(options, initial_actuation=hidden + 1.0))
    assert seeded.iterations < first.iterations
    assert seeded.history[0].actuation == pytest.approx(np.clip(hidden + 1.0, 0.0, 5000.0))


def test_tolerance_ends_the_solve_early(membrane, shape_of, options):
    target = shape_of(membrane, hidden_actuation(11))
    full = solve_inverse_kinematics(membrane, target, options)
    loose = solve_inverse_kinematics(membrane, target, replace(options, tolerance_mm=0.5))
    assert loose.termination is Termination.TOLERANCE_REACHED and loose.mean_error_mm <= 0.5
    assert loose.iterations < full.iterations


def test_cancel_gives_the_best_so_far(membrane, shape_of, options):
    seen = []
    result = solve_inverse_kinematics(
        membrane,
        shape_of(membrane, hidden_actuation(12)),
        options,
        on_iteration=seen.append,
        should_stop=lambda: len(seen) >= 3,
    )
    assert result.termination is Termination.CANCELLED and not result.termination.finished
    assert [step.iteration for step in seen] == [0, 1, 2]
    assert (result.actuation == seen[-1].actuation).all() and result.mean_error_mm == seen[-1].mean_error_mm


def test_limits_end_the_solve(membrane, shape_of, options):
    target = shape_of(membrane, hidden_actuation(13))
    few = solve_inverse_kinematics(membrane, target, replace(options, max_iterations=2))
    assert few.termination is Termination.MAX_ITERATIONS and few.iterations == 2
    short = solve_inverse_kinematics(membrane, target, replace(options, max_seconds=1e-9))
    assert short.termination is Termination.TIME_LIMIT and short.iterations == 0
    assert (short.actuation == 2500.0).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"initial_actuation": np.zeros(8)}, "Initial actuation"),
        ({"initial_actuation": np.full(9, np.nan)}, "Initial actuation"),
        ({"actuation_min": np.zeros(5)}, "bounds have shapes"),
        ({"actuation_max": np.full(9, np.inf)}, "finite and ordered"),
        ({"actuation_max": np.full(9, -1.0)}, "finite and ordered"),
        ({"max_seconds": 0.0}, "max_seconds"),
        ({"max_iterations": 0}, "max_iterations"),
        ({"tolerance_mm": np.nan}, "tolerance"),
    ],
)
def test_options_that_make_no_sense_are_rejected(membrane, shape_of, options, change, message):
    with pytest.raises(SoftformError, match=message):
        solve_inverse_kinematics(membrane, shape_of(membrane, np.zeros(9)), replace(options, **change))


def test_a_bad_target_is_rejected(membrane, options):
    with pytest.raises(SoftformError, match="NaN"):
        solve_inverse_kinematics(membrane, Shape(np.full((5, 3), np.nan)), options)


@pytest.mark.parametrize("seed", range(30))
def test_box_minimum_fulfils_the_conditions_of_optimality(seed):
    """Of Karush, Kuhn and Tucker: the problem is convex, so that they hold at the minimum alone."""
    rng = np.random.default_rng(seed)
    bounded, size = 6, 6 + 6 * (seed % 2)
    rows = rng.normal(size=(40, size))
    residual = rng.normal(size=40) * 5.0
    lower, upper = -rng.uniform(0.0, 0.3, bounded), rng.uniform(0.0, 0.3, bounded)
    lower[0], upper[1] = 0.0, 0.0
    lower[2] = upper[2] = 0.0
    step = box_minimum(rows.T @ rows, rows.T @ residual, lower, upper)
    wide = np.full(size - bounded, np.inf)
    low, high = np.concatenate([lower, -wide]), np.concatenate([upper, wide])
    assert (step >= low).all() and (step <= high).all()
    slope = rows.T @ (rows @ step + residual)
    assert (slope[step > low] <= 1e-7).all() and (slope[step < high] >= -1e-7).all()


def test_options_default_to_a_fixed_pose(bounds):
    assert IkOptions(**bounds).fix_pose and IkOptions(**bounds).initial_actuation is None
