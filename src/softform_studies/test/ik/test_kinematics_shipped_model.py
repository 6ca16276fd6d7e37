"""Kinematics of the shipped model: derivatives, the reference pipeline, recovery over the whole range."""

import numpy as np
import pytest
import torch

from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.inverse.ik_options import IkOptions
from softform_core.inverse.inverse import solve_inverse_kinematics
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.model_files import ModelError
from softform_core.networks.store import FORWARD_KINEMATICS, load_forward_kinematics
from softform_core.paths import models_dir
from softform_core.robots import load_robot
from softform_core.surface.bspline import basis_matrix
from softform_core.surface.patch_set import SHEET
from softform_studies.ik.autograd_pipeline import AutogradPipeline
from softform_studies.ik.ik_prediction import shipped_pipeline


@pytest.fixture(scope="module")
def robot():
    return load_robot("membrane")


@pytest.fixture(scope="module")
def shipped(robot):
    return load_pipeline(robot)


def random_actuation(robot, seed):
    return np.random.default_rng(seed).uniform(robot.actuation_min, robot.actuation_max)


@pytest.mark.parametrize("seed", range(3))
def test_jacobian_agrees_with_autograd(robot, seed):
    network, _ = load_forward_kinematics(robot)
    uv = SHEET.samples(100)
    pipeline = ForwardPipeline(extract_mlp(network), uv, precision=np.float64)
    actuation = random_actuation(robot, seed)
    double = torch.jit.load(models_dir() / robot.name / FORWARD_KINEMATICS.weights_file).double()
    basis = torch.tensor(basis_matrix(uv).toarray())

    def reference(actuation):
        return basis @ double(actuation[None])[0].reshape(-1, 3)

    expected = torch.autograd.functional.jacobian(reference, torch.tensor(actuation)).numpy()
    points, jacobian = pipeline.points_and_jacobian(actuation)
    assert np.abs(points - reference(torch.tensor(actuation)).detach().numpy()).max() < 1e-9
    assert np.abs(jacobian - expected).max() <= 1e-9 * np.abs(expected).max()


def test_the_reference_pipeline_of_the_bench_is_the_same_function(robot):
    ours = shipped_pipeline(robot, 100)
    weights = extract_mlp(load_forward_kinematics(robot)[0])
    reference = AutogradPipeline(weights, ours.uv, ours.sim_to_real)
    actuation = random_actuation(robot, 4)
    state, reference_state = ours.forward(actuation[None]), reference.forward(actuation[None])
    residuals = np.random.default_rng(5).normal(size=(100, 3))
    assert np.abs(state.points - reference_state.points).max() < 0.01
    assert np.abs(state.points - ours.forward(actuation[None]).simulated).max() > 0.1
    ours_gradient = ours.objective_gradient(state, residuals)
    assert reference.objective_gradient(reference_state, residuals) == pytest.approx(
        ours_gradient, abs=1e-4 * np.abs(ours_gradient).max()
    )
    jacobian = ours.jacobian(state)
    assert np.abs(reference.jacobian(reference_state) - jacobian).max() < 1e-4 * np.abs(jacobian).max()


@pytest.mark.parametrize("fix_pose", [True, False])
def test_hidden_pressures_are_found_over_the_whole_range(robot, shipped, shape_of, fix_pose):
    rng = np.random.default_rng(0)
    for trial in range(12):
        hidden = random_actuation(robot, trial)
        if trial % 3 == 0:
            hidden = np.where(rng.random(9) < 0.5, robot.actuation_min, robot.actuation_max)
        options = IkOptions(robot.actuation_min, robot.actuation_max, fix_pose=fix_pose)
        result = solve_inverse_kinematics(shipped, shape_of(shipped, hidden), options)
        assert result.mean_error_mm < 0.01, f"trial {trial}"
        assert result.iterations <= 30


def test_a_missing_model_is_reported(robot, tmp_path):
    with pytest.raises(ModelError, match="no forward-kinematics model"):
        load_pipeline(robot, model=tmp_path)
