"""The displacement prior: what realities do often is easy for N_rbf, what it learned stays exact, files are checked."""

import numpy as np
import pytest
import torch

from softform_core.errors import SoftformError
from softform_core.networks.sim_to_real import FunctionPrediction, ShapeInput
from softform_core.robots import load_robot
from softform_core.training.displacement_prior import PRIOR_FILE, DisplacementPrior, load_displacement_prior

ROBOT = load_robot("membrane")
RANDOM = np.random.default_rng(0)
COLUMNS = np.linalg.qr(RANDOM.normal(size=(100, 6)))[0] * 10.0
"""(P, d), directions that move 100 samples by 1 mm (RMS) each."""


def prior_of(displacements, modes=20):
    return DisplacementPrior.of(displacements, modes, {"robot": "membrane", "robot_fingerprint": ROBOT.fingerprint()})


def test_its_modes_have_the_covariance_of_what_was_seen():
    seen = RANDOM.normal(size=(50, 100, 3)) * np.array([1.0, 2.0, 3.0])
    modes = prior_of(seen, modes=50).modes.reshape(50, -1)
    flat = seen.reshape(50, -1)
    np.testing.assert_allclose(modes.T @ modes, flat.T @ flat / 50, atol=1e-9)


def test_amplitudes_that_realities_show_are_scaled_up_and_others_down():
    amplitudes = np.zeros((40, 6, 3))
    amplitudes[:, 1, 2] = RANDOM.normal(size=40)
    amplitudes[:, 4, 0] = 0.1 * RANDOM.normal(size=40)
    scaling = prior_of(np.einsum("pd,ndx->npx", COLUMNS, amplitudes)).scaling(COLUMNS)
    deviation = np.sqrt(np.diag(scaling @ scaling)).reshape(6, 3)
    assert np.mean(deviation**2) == pytest.approx(1.0)
    assert np.unravel_index(deviation.argmax(), deviation.shape) == (1, 2)
    assert deviation[1, 2] > 3.0 and deviation.min() == pytest.approx(np.sqrt(0.1), rel=0.01)
    assert np.linalg.cond(scaling) < 20.0


def test_weights_under_a_prior_are_exact_and_can_be_gone_on_from_with_and_without_it():
    torch.manual_seed(0)
    control = RANDOM.normal(size=(30, 12))
    shape_input = ShapeInput.of(control, 5)
    directions = RANDOM.normal(size=(11, 4))
    scaling = np.eye(12) + 0.3 * np.cov(RANDOM.normal(size=(12, 40)))
    network = FunctionPrediction(5, directions, (8, 8), "tanh", scaling)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    shapes = torch.from_numpy(shape_input.normalised(control)).float()
    gamma = network(shapes).detach().numpy()
    weights = network.weights(shape_input)
    np.testing.assert_allclose(weights.forward(control).reshape(gamma.shape), gamma, atol=1e-4)
    for other_scaling in (scaling, None):
        other = FunctionPrediction(5, directions, (8, 8), "tanh", other_scaling)
        other.load_weights(weights, shape_input)
        np.testing.assert_allclose(other(shapes).detach().numpy(), gamma, atol=1e-4)


def test_it_is_kept_and_read_again(tmp_path):
    assert load_displacement_prior(ROBOT, tmp_path) is None
    prior = prior_of(RANDOM.normal(size=(8, 100, 3)), modes=5)
    prior.save(tmp_path / "models")
    found = load_displacement_prior(ROBOT, tmp_path / "models")
    np.testing.assert_allclose(found.modes, prior.modes, rtol=1e-6)
    assert found.card["robot"] == "membrane"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:300]), "cannot be read"),
        (lambda path: path.write_text("no archive"), "cannot be read"),
        (lambda path: np.savez(path, modes=np.zeros((2, 100, 3))), "cannot be read"),
        (lambda path: np.savez(path, modes=np.zeros((2, 100, 3)), card=np.array("{}")), "no displacement prior"),
    ],
)
def test_a_damaged_file_is_reported_with_the_next_step(tmp_path, spoil, said):
    path = prior_of(RANDOM.normal(size=(8, 100, 3))).save(tmp_path)
    assert path.name == PRIOR_FILE
    spoil(path)
    with pytest.raises(SoftformError, match=f"{said}.*softform train prior --robot membrane; or remove it"):
        load_displacement_prior(ROBOT, tmp_path)


@pytest.mark.parametrize("modes", [np.ones((2, 99, 3)), np.full((2, 100, 3), np.nan), np.ones((2, 100))])
def test_modes_that_are_of_no_surface_are_reported(tmp_path, modes):
    DisplacementPrior(modes, {"robot": "membrane", "robot_fingerprint": ROBOT.fingerprint()}).save(tmp_path)
    with pytest.raises(SoftformError, match="no displacement prior"):
        load_displacement_prior(ROBOT, tmp_path)


def test_a_prior_of_another_description_is_reported(tmp_path):
    DisplacementPrior(np.ones((2, 100, 3)), {"robot": "sheet", "robot_fingerprint": "0" * 16}).save(tmp_path)
    with pytest.raises(SoftformError, match="another description of 'sheet'.*train prior"):
        load_displacement_prior(ROBOT, tmp_path)
