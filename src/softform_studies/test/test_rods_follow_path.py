"""Waypoints by the models that ship, judged by the simulator; redundancy, singularity, bad input, baselines."""

import numpy as np
import pytest
import torch

from softform_core.errors import SoftformError
from softform_core.forward.tip_model import load_tip_model
from softform_core.inverse.follow_path import follow_path, start_near
from softform_core.networks.store import TIP_KINEMATICS
from softform_core.paths import models_dir
from softform_core.robots import load_robot
from softform_core.simulation.simulated_body import equilibrium_points
from softform_studies.waypoints.bench_waypoints import (
    EIGHTS,
    FkGradients,
    gradient_iteration,
    largest_jump_percent,
    learn_direct_ik,
    tracking_percent,
)

ROBOTS = {name: load_robot(name, "tip") for name in EIGHTS}


def simulate_tips(robot, actuations):
    return equilibrium_points(robot.body.simulator(), robot.actuators_of(actuations))[:, 0, : robot.tip_dimensions]


@pytest.fixture(params=EIGHTS)
def robot(request):
    return ROBOTS[request.param]


@pytest.fixture
def model(robot):
    return load_tip_model(robot)


@pytest.fixture
def points(robot):
    return EIGHTS[robot.name].points()


def _inside(model, actuations):
    return ((actuations >= model.actuation_min) & (actuations <= model.actuation_max)).all()


def test_shipped_models_keep_the_papers_errors_by_their_own_cards(robot):
    card = TIP_KINEMATICS.load(models_dir() / robot.name, robot)[1]
    assert card.forward_kinematics.test_mean_percent < {"three_chamber": 0.34, "planar_fingers": 0.58}[robot.name]
    assert card.data.samples == robot.tip.segments**3
    assert card.weights_bytes < 1_000_000
    assert (models_dir() / robot.name / "README.md").read_text() == card.to_markdown()


def test_the_eight_is_tracked_in_the_simulator_within_the_papers_errors(robot, model, points):
    path = follow_path(model, points, start_near(model, points[0]))
    tracking = tracking_percent(model, simulate_tips(robot, path.actuations), points)
    assert tracking.mean() <= 0.08
    assert tracking.max() <= 0.18
    assert path.iterations.max() <= 4
    assert largest_jump_percent(model, path.actuations) < 3.0
    assert _inside(model, path.actuations)


def test_one_point_at_a_time_gives_the_same_actuations(model, points):
    start = start_near(model, points[0])
    whole, here = follow_path(model, points[:20], start), start
    for point, expected in zip(points[:20], whole.actuations, strict=True):
        here = follow_path(model, point[None], here).actuations[0]
        np.testing.assert_array_equal(here, expected)


def test_a_redundant_robot_comes_back_to_where_it_began_by_the_shortest_steps():
    robot = ROBOTS["planar_fingers"]
    model, points = load_tip_model(robot), EIGHTS[robot.name].points()
    first = follow_path(model, points[:1], start_near(model, points[0])).actuations[0]
    path = follow_path(model, points, first)
    # Each step is nearly the least that the Jacobian allows: none of it lies in its null space.
    span = model.actuation_max - model.actuation_min
    steps = np.diff(path.actuations, axis=0) / span
    null = np.array([np.linalg.svd(model.tip_and_jacobian(c)[1] * span)[2][-1] for c in path.actuations[:-1]])
    along = np.abs((steps * null).sum(axis=1))
    assert np.median(along / np.linalg.norm(steps, axis=1)) < 0.05


@pytest.mark.long
def test_points_out_of_reach_leave_an_honest_error_and_no_bound_is_violated(model):
    rng = np.random.default_rng(0)
    points = rng.normal(0.0, 3.0 * model.workspace_width_mm, (200, model.dimensions))
    corners = np.where(rng.random((200, 3)) < 0.5, model.actuation_min, model.actuation_max)
    for point, corner in zip(points, corners, strict=True):
        path = follow_path(model, point[None], corner)
        assert _inside(model, path.actuations)
        error = np.linalg.norm(model.tip(path.actuations[0]) - point)
        assert path.errors_mm[0] == pytest.approx(error)
        assert error <= np.linalg.norm(model.tip(corner) - point) + 1e-9


def test_through_the_singular_stretched_pose_and_beyond_reach_the_fingers_move_smoothly():
    model = load_tip_model("planar_fingers")
    # Out along x past the straight pose at 360 mm, where the Jacobian loses a rank, and back (Fig. 12).
    out = np.linspace(300.0, 380.0, 60)
    points = np.stack([np.concatenate([out, out[::-1]]), np.zeros(120)], axis=1)
    path = follow_path(model, points, start_near(model, points[0]))
    reached = points[:, 0] < 358.0
    assert 100.0 * path.errors_mm[reached].max() / model.workspace_width_mm < 0.1
    assert path.errors_mm[~reached].max() < 25.0
    assert largest_jump_percent(model, path.actuations) < 25.0


@pytest.mark.parametrize(
    ("points", "start", "complaint"),
    [
        (np.zeros((3, 5)), np.zeros(3), "no finite points"),
        (np.zeros(3), np.zeros(3), "no finite points"),
        (np.full((2, 3), np.nan), np.zeros(3), "no finite points"),
        (np.zeros((2, 3)), np.zeros(4), "no actuation of 3 values"),
        (np.zeros((2, 3)), np.array([0.0, np.inf, 0.0]), "no actuation of 3 values"),
    ],
)
def test_what_is_no_path_is_rejected(points, start, complaint):
    with pytest.raises(SoftformError, match=complaint):
        follow_path(load_tip_model("three_chamber"), points, start)
    with pytest.raises(SoftformError, match=complaint):
        gradient_iteration(load_tip_model("three_chamber"), points, start)


def test_a_start_outside_the_range_is_brought_inside(model, points):
    path = follow_path(model, points[:1], 5.0 * model.actuation_max)
    assert _inside(model, path.actuations)


def test_the_papers_iteration_ends_below_its_own_tolerance(model, points):
    path = gradient_iteration(model, points, start_near(model, points[0]))
    assert (path.errors_mm < 1e-3 * model.workspace_width_mm).all()
    assert _inside(model, path.actuations)


def test_gradients_of_n_fk_agree_with_n_j(robot, model):
    network = torch.jit.load(models_dir() / robot.name / TIP_KINEMATICS.weights_file).forward_kinematics
    limits = model.actuation_min, model.actuation_max, model.workspace_width_mm
    gradients = FkGradients(network, *limits)
    for actuation in np.random.default_rng(4).uniform(model.actuation_min, model.actuation_max, (20, 3)):
        tip, jacobian = model.tip_and_jacobian(actuation)
        other_tip, other = gradients.tip_and_jacobian(actuation)
        np.testing.assert_allclose(tip, other_tip, atol=1e-9)
        np.testing.assert_allclose(jacobian, other, atol=0.05 * np.abs(other).max())
        difference = (gradients.tip(actuation + [50.0, 0, 0]) - gradients.tip(actuation - [50.0, 0, 0])) / 100.0
        np.testing.assert_allclose(other[:, 0], difference, atol=1e-3 * np.abs(other).max())


def test_direct_ik_inverts_a_robot_without_redundancy():
    robot = ROBOTS["three_chamber"]
    model, points = load_tip_model(robot), EIGHTS["three_chamber"].points()
    samples = np.random.default_rng(5).uniform(model.actuation_min, model.actuation_max, (600, 3))
    direct = learn_direct_ik(samples, model.tip(samples), [35, 35], 150, seed=0)
    errors = np.linalg.norm(model.tip(direct.values(points)) - points, axis=1)
    assert errors.mean() < 0.01 * model.workspace_width_mm
