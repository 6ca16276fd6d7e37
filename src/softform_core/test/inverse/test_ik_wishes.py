"""What inverse kinematics is asked beside a whole target: feature points, parts, postures, slew limits, many starts."""

from dataclasses import replace

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_core.inverse.closest_points import closest_points_on
from softform_core.inverse.feature_term import FeatureTerm
from softform_core.inverse.ik_options import IkOptions, Termination
from softform_core.inverse.ik_problem import Problem, tukey_loss, tukey_scale, tukey_weights
from softform_core.inverse.inverse import solve_inverse_kinematics
from softform_core.inverse.levenberg_marquardt import LevenbergMarquardt, moved, quadratic_model
from softform_core.inverse.surface_target import surface_target
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M

CHAMBERS = 9
GRID_3X3 = np.stack(np.meshgrid([1 / 6, 0.5, 5 / 6], [1 / 6, 0.5, 5 / 6], indexing="ij"), axis=-1).reshape(-1, 2)
MOVED = RigidTransform().moved(np.array([0.1, -0.05, 0.15]), np.array([0.012, -0.007, 0.02]), np.zeros(3))


def hidden_actuation(seed):
    return np.random.default_rng(seed).uniform(0.0, 5000.0, CHAMBERS)


def features_at(pipeline, actuation, uv=GRID_3X3, weights=None):
    return FeaturePoints.of(uv, pipeline.at(uv).points(actuation) / MM_PER_M, weights)


@pytest.mark.parametrize("seed", range(3))
def test_a_feature_point_over_each_chamber_finds_the_hidden_actuation(corrected_membrane, options, seed):
    hidden = hidden_actuation(seed)
    features = features_at(corrected_membrane, hidden)
    result = solve_inverse_kinematics(corrected_membrane, None, options, features=features)
    assert result.actuation == pytest.approx(hidden, abs=1.0)
    assert result.max_error_mm < 0.01 and len(result.features.distances) == 9 and len(result.matches.distances) == 0
    assert result.shape == pytest.approx(corrected_membrane.points(result.actuation), abs=5e-5)


def test_feature_points_pull_a_target_apart_from_where_it_lies_by_their_weight(membrane, shape_of, options):
    hidden = hidden_actuation(1)
    target = shape_of(membrane, hidden)
    centre = np.array([[0.5, 0.5]])
    higher = membrane.at(centre).points(hidden) / MM_PER_M + [0.0, 0.0, 0.01]
    distances = []
    for weight in (1e-3, 1.0, 1e3):
        features = FeaturePoints.of(centre, higher, [weight])
        result = solve_inverse_kinematics(membrane, target, options, features=features)
        distances.append(result.features.distances[0])
    assert distances[0] > 9.0 and distances[2] < 0.1 and distances[0] > distances[1] > distances[2]


def test_feature_points_say_how_a_target_lies_on_the_robot(membrane, shape_of, options):
    """Chambers in a square: a quarter turn has its own exact solution, which is not what the corners say."""
    hidden = hidden_actuation(3)
    quarter = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    target = shape_of(membrane, hidden).transformed(quarter, np.array([0.01, 0.02, 0.03]))
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    wanted = membrane.at(corners).points(hidden) / MM_PER_M @ quarter.T + [0.01, 0.02, 0.03]
    free = replace(options, fix_pose=False, max_iterations=300)
    alone = solve_inverse_kinematics(membrane, target, free)
    guided = solve_inverse_kinematics(membrane, target, free, features=FeaturePoints.of(corners, wanted))
    assert np.abs(alone.actuation - hidden).max() > 500.0
    assert guided.mean_error_mm < 0.01 and guided.actuation == pytest.approx(hidden, abs=5.0)
    assert guided.pose.rotation @ quarter == pytest.approx(np.eye(3), abs=1e-3)


@pytest.mark.parametrize("fix_pose", [True, False])
def test_the_model_is_the_merits_gradient(corrected_membrane, shape_of, options, fix_pose):
    """Central differences of the merit, closest points and all, with every term in it."""
    target = shape_of(corrected_membrane, hidden_actuation(4)).transformed(MOVED.rotation, MOVED.translation)
    term = FeatureTerm.of(
        corrected_membrane, features_at(corrected_membrane, hidden_actuation(5), weights=np.arange(1.0, 10.0))
    )
    wishes = replace(
        options,
        fix_pose=fix_pose,
        preferred_actuation=np.full(CHAMBERS, 4000.0),
        preference_mm2=20.0,
        previous_actuation=np.full(CHAMBERS, 1000.0),
        smoothness_mm2=5.0,
    )
    problem = Problem(corrected_membrane, closest_points_on(target), wishes, term)
    at = problem.evaluate(hidden_actuation(6), RigidTransform())
    gradient, hessian, pivot = quadratic_model(problem, at)
    assert np.linalg.eigvalsh(hessian).min() > 0.0
    for variable in range(len(gradient)):
        step = np.zeros(len(gradient))
        step[variable] = 1e-4 if variable < CHAMBERS else 1e-2
        up, down = (problem.evaluate(*moved(problem, at, sign * step, pivot)).merit for sign in (1.0, -1.0))
        slope = (up - down) / (2.0 * step[variable])
        assert gradient[variable] == pytest.approx(slope, rel=0.02, abs=0.005 * np.abs(gradient).max())


def test_a_part_of_a_target_with_strays_is_fitted_where_it_shows_the_shape(membrane, shape_of, options):
    hidden = hidden_actuation(6)
    shape = shape_of(membrane, hidden)
    part = shape.points[shape.points[:, 0] < 0.06]
    rng = np.random.default_rng(0)
    strays = part[rng.choice(len(part), len(part) // 2)] + rng.uniform(0.001, 0.01, (len(part) // 2, 1)) * [0, 0, 1]
    target = Shape(np.concatenate([part, strays]))
    trusting, wary = (
        solve_inverse_kinematics(membrane, target, replace(options, partial=partial)) for partial in (False, True)
    )

    def error(result):
        difference = membrane.points(result.actuation) - membrane.points(hidden)
        return np.linalg.norm(difference, axis=1)[membrane.points(hidden)[:, 0] < 60.0].mean()

    assert error(wary) < 0.1 and error(wary) < 0.3 * error(trusting)
    assert 0.4 < wary.covered.mean() < 0.8


@pytest.mark.parametrize("fix_pose", [True, False])
def test_a_whole_exact_target_is_no_worse_when_called_partial(membrane, shape_of, options, fix_pose):
    hidden = hidden_actuation(7)
    result = solve_inverse_kinematics(
        membrane, shape_of(membrane, hidden), replace(options, partial=True, fix_pose=fix_pose, max_iterations=300)
    )
    assert result.mean_error_mm < 0.02 and result.covered.mean() > 0.95
    assert result.actuation == pytest.approx(hidden, abs=10.0)


def test_tukeys_weights_are_the_slope_of_his_loss():
    distances, scale = np.linspace(0.01, 3.0, 300), 2.0
    slope = (tukey_loss(distances + 1e-6, scale) - tukey_loss(distances - 1e-6, scale)) / 2e-6
    assert 2.0 * distances * tukey_weights(distances, scale) == pytest.approx(slope, abs=1e-6)
    assert (tukey_weights(distances[distances > scale], scale) == 0.0).all()
    assert tukey_loss(distances, np.inf) == pytest.approx(distances**2)
    noise = np.abs(np.random.default_rng(0).normal(0.0, 1.5, 20_000))
    assert tukey_scale(noise, 0.1) == pytest.approx(4.685 * 1.5, rel=0.03) and tukey_scale(noise, 50.0) == 50.0


def test_of_many_solutions_the_one_near_the_preferred_posture_is_found(membrane, options):
    """One feature point leaves eight of nine values open."""
    features = features_at(membrane, hidden_actuation(8), np.array([[0.5, 0.5]]))
    posture = np.linspace(500.0, 4500.0, CHAMBERS)
    free, postured = (
        solve_inverse_kinematics(
            membrane,
            None,
            replace(options, preferred_actuation=posture, preference_mm2=weight, relative_decrease=1e-8),
            features=features,
        )
        for weight in (0.0, 1e-3)
    )
    assert free.max_error_mm < 0.01 and postured.max_error_mm < 0.5
    away = [np.abs(one.actuation - posture).mean() for one in (free, postured)]
    assert away[1] < 0.5 * away[0]


def test_smoothness_and_slew_limit_keep_a_solution_near_the_previous_actuation(membrane, shape_of, options):
    hidden, held = hidden_actuation(9), np.full(CHAMBERS, 2500.0)
    target, started = shape_of(membrane, hidden), replace(options, previous_actuation=held)
    free = solve_inverse_kinematics(membrane, target, started)
    smooth = solve_inverse_kinematics(membrane, target, replace(started, smoothness_mm2=50.0))
    slewed = solve_inverse_kinematics(membrane, target, replace(started, most_change=np.full(CHAMBERS, 100.0)))
    assert (free.history[0].actuation == held).all()
    assert np.linalg.norm(smooth.actuation - held) < np.linalg.norm(free.actuation - held)
    changes = slewed.actuation - held
    assert np.abs(changes).max() <= 100.0 and (np.abs(changes) == 100.0).sum() >= 5
    assert ((hidden - held) * changes > 0.0).sum() >= 8
    assert (np.sign(changes) == slewed.reachability.active_bounds)[np.abs(changes) == 100.0].all()


def test_a_b_spline_surface_is_a_target(corrected_membrane, membrane, options):
    hidden = hidden_actuation(10)
    (grid,) = membrane.patches.control_grids(membrane.control_points(hidden))
    target = surface_target(grid / MM_PER_M)
    result = solve_inverse_kinematics(membrane, target, options)
    assert result.mean_error_mm < 0.01 and result.actuation == pytest.approx(hidden, abs=5.0)
    assert target.points[0] == pytest.approx(grid[0, 0] / MM_PER_M) and len(target.faces) == 2 * 120**2


def test_one_iteration_at_a_time_is_the_whole_solve(membrane, shape_of, options):
    problem = Problem(membrane, closest_points_on(shape_of(membrane, hidden_actuation(11))), options)
    solver = LevenbergMarquardt(problem, problem.evaluate(options.start(), RigidTransform()))
    merits = [solver.best.merit]
    while (stop := solver.iterate(lambda: None)) is None:
        merits.append(solver.best.merit)
    assert stop is Termination.CONVERGED and solver.best.mean_error_mm < 0.01
    assert all(later < earlier for earlier, later in zip(merits[:-1], merits[1:], strict=True))
    before = solver.best
    asked = LevenbergMarquardt(problem, problem.evaluate(options.start(), RigidTransform()))
    assert asked.iterate(lambda: Termination.TIME_LIMIT) is Termination.TIME_LIMIT
    assert (asked.best.actuation == options.start()).all() and solver.best is before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0.5, 0.5]], [[0.0, 0.0]]), "one position"),
        (([[0.5, 0.5]], [[0.0, 0.0, np.nan]]), "NaN"),
        (([[0.5, 1.2]], [[0.0, 0.0, 0.0]]), "between 0 and 1"),
        (([[0.5, 0.5]], [[0.0, 0.0, 0.0]], [0.0]), "positive weight"),
        (([[0.5, 0.5]], [[0.0, 0.0, 0.0]], [1.0, 1.0]), "weights of 1"),
        ((np.zeros((0, 2)), np.zeros((0, 3))), "1 to 1000"),
    ],
)
def test_bad_feature_points_are_rejected(arguments, message):
    with pytest.raises(SoftformError, match=message):
        FeaturePoints.of(*arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"preferred_actuation": np.zeros(8)}, "Preferred"),
        ({"previous_actuation": np.full(CHAMBERS, np.nan)}, "Previous"),
        ({"preference_mm2": -1.0}, "preference"),
        ({"smoothness_mm2": np.inf}, "smoothness"),
        ({"most_change": np.full(CHAMBERS, 10.0)}, "without a previous actuation"),
        ({"previous_actuation": np.zeros(CHAMBERS), "most_change": np.zeros(CHAMBERS)}, "slew limit"),
    ],
)
def test_wishes_that_make_no_sense_are_rejected(membrane, shape_of, options, change, message):
    with pytest.raises(SoftformError, match=message):
        solve_inverse_kinematics(membrane, shape_of(membrane, np.zeros(CHAMBERS)), replace(options, **change))


def test_a_problem_needs_something_to_reach(membrane, options):
    with pytest.raises(SoftformError, match="neither"):
        solve_inverse_kinematics(membrane, None, options)
    two = features_at(membrane, np.zeros(CHAMBERS), GRID_3X3[:2])
    with pytest.raises(SoftformError, match="do not fix the pose"):
        solve_inverse_kinematics(membrane, None, replace(options, fix_pose=False), features=two)
    for control_points, degree in ((np.zeros((3, 9, 3)), 3), (np.full((9, 9, 3), np.nan), 3), (np.zeros((9, 9)), 3)):
        with pytest.raises(SoftformError):
            surface_target(control_points, degree)


def test_options_start_from_the_seed_then_from_the_previous_actuation(bounds):
    held, seed = np.full(CHAMBERS, 9e9), np.full(CHAMBERS, 100.0)
    assert (IkOptions(**bounds).start() == 2500.0).all()
    assert (IkOptions(**bounds, previous_actuation=held).start() == 5000.0).all()
    assert (IkOptions(**bounds, previous_actuation=held, initial_actuation=seed).start() == 100.0).all()
