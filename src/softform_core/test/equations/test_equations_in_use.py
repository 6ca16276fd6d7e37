"""What runs, against the equations: B-spline, networks in torch, their export, the forward pipeline, the metrics."""

import numpy as np
import pytest
import torch

from softform_core.equations import inverse_kinematics, jacobian, measures
from softform_core.equations.surface import surface_points
from softform_core.equations.warp import corrected_points_of_actuation, warp, warp_coefficients
from softform_core.evaluation import metrics
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.sim_to_real_export import SimToRealNetwork
from softform_core.networks.sim_to_real import Confidence, FunctionPrediction, ShapeInput, warp_basis, warp_basis_slope
from softform_core.surface.bspline import evaluate
from softform_core.surface.patch_set import PatchSet

GRID = (30, 30)


@pytest.fixture
def random():
    return np.random.default_rng(1)


def tensors(*arrays):
    return tuple(torch.from_numpy(np.asarray(array))[None] for array in arrays)


def test_eq_1_is_the_surface_in_use(random):
    uv = np.vstack([random.uniform(size=(40, 2)), [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]]])
    control = random.normal(size=(7, 11, 3))
    np.testing.assert_allclose(evaluate(control, uv), surface_points(uv, control), atol=1e-12)


def test_eq_2_is_the_layer_that_is_trained(random):
    p, q, gamma = 80.0 * random.normal(size=(30, 3)), 80.0 * random.normal(size=(9, 3)), random.normal(size=(13, 3))
    found = (warp_basis(*tensors(p, q), 3e-5) @ tensors(gamma)[0])[0].numpy()
    np.testing.assert_allclose(found, warp(p, q, gamma, 3e-5), rtol=1e-12)
    tangents = random.normal(size=p.shape)
    slope = (warp_basis_slope(*tensors(p, tangents, q), 3e-5) @ tensors(gamma)[0])[0].numpy()
    expected = np.einsum("pxy,py->px", jacobian.by_point(p, q, gamma, 3e-5), tangents)  # Eq. 26
    np.testing.assert_allclose(slope, expected, rtol=1e-11, atol=1e-12)


def derivative(network, x):
    """Of a network in numpy by the chain rule, layer by layer, (out, in)."""
    slope = np.diag(1.0 / np.asarray(network.input_scale))
    y = (x - network.input_offset) / network.input_scale
    for weight, bias in zip(network.weights[:-1], network.biases[:-1], strict=True):
        y = np.maximum(weight @ y + bias, 0.0)
        slope = (y > 0.0)[:, None] * (weight @ slope)
    return np.asarray(network.output_scale).reshape(-1, 1) * (network.weights[-1] @ slope)


@pytest.mark.parametrize(("precision", "tolerance"), [(np.float64, 1e-7), (np.float32, 1e-5)])
def test_the_forward_pipeline_is_eq_5_and_its_jacobian_eq_17(
    random, random_forward_kinematics, random_sim_to_real, precision, tolerance
):
    n_fk, sim_to_real = random_forward_kinematics(2), random_sim_to_real(3, 16)
    n_rbf, kernel_uv, width = sim_to_real.coefficients, sim_to_real.kernel_uv, sim_to_real.width
    uv, actuation = random.uniform(size=(25, 2)), random.uniform(0.0, 5000.0, 9)
    pipeline = ForwardPipeline(n_fk, uv, sim_to_real, precision=precision)
    points, by_actuation = pipeline.points_and_jacobian(actuation)

    expected = corrected_points_of_actuation(uv, actuation, n_fk.forward, n_rbf.forward, kernel_uv, width, GRID)
    assert np.abs(points - expected).max() <= 1e-7 * np.abs(expected).max()

    control = inverse_kinematics.simulated_control_points(actuation, n_fk.forward, GRID)
    p, q, gamma = surface_points(uv, control), surface_points(kernel_uv, control), n_rbf.forward(control.ravel())
    gamma = gamma.reshape(-1, 3)
    expected_jacobian = jacobian.actuation_jacobian(
        jacobian.by_point(p, q, gamma, width),
        jacobian.surface_by_control_points(uv, GRID),
        jacobian.by_coefficients(p, q, width),
        derivative(n_rbf, control.ravel()),
        jacobian.by_centers(p, q, gamma, width),
        jacobian.surface_by_control_points(kernel_uv, GRID).reshape(-1, control.size),
        derivative(n_fk, actuation),
    )
    assert np.abs(by_actuation - expected_jacobian).max() <= tolerance * np.abs(expected_jacobian).max()

    state = pipeline.forward(actuation[None])
    closest, turn, shift = p + random.normal(size=p.shape), np.linalg.qr(random.normal(size=(3, 3)))[0], p.mean(axis=0)
    residuals = state.points[0] - (closest @ turn.T + shift)
    gradient = inverse_kinematics.objective_gradient(expected_jacobian, expected, closest, turn, shift)
    assert np.abs(pipeline.objective_gradient(state, residuals) - gradient).max() <= 1e-5 * np.abs(gradient).max()


def test_the_exported_sim_to_real_is_eq_4(random, random_forward_kinematics, random_sim_to_real):
    n_fk, sim_to_real = random_forward_kinematics(2), random_sim_to_real(3, 16)
    exported = SimToRealNetwork([sim_to_real], 1.0, 0.0, PatchSet.of(*GRID))
    uv, actuation = random.uniform(size=(25, 2)), random.uniform(0.0, 5000.0, 9)
    control = inverse_kinematics.simulated_control_points(actuation, n_fk.forward, GRID)
    found, _ = exported(torch.from_numpy(control.reshape(1, -1)), torch.from_numpy(surface_points(uv, control))[None])
    expected = corrected_points_of_actuation(
        uv, actuation, n_fk.forward, sim_to_real.coefficients.forward, sim_to_real.kernel_uv, sim_to_real.width, GRID
    )
    np.testing.assert_allclose(found[0].numpy(), expected, atol=1e-8)


def test_eqs_18_19_and_21_are_the_metrics_in_use(random):
    predicted, captured = random.normal(size=(40, 3)), random.normal(size=(30, 3))
    assert metrics.hausdorff_distance(predicted, captured) == pytest.approx(
        measures.hausdorff_distance(predicted, captured)
    )
    assert metrics.chamfer_distance(predicted, captured) == pytest.approx(
        measures.chamfer_distance(predicted, captured)
    )
    unit = random.normal(size=(2, 40, 3))
    unit /= np.linalg.norm(unit, axis=2, keepdims=True)
    np.testing.assert_allclose(metrics.normal_errors(*unit), measures.normal_errors(*unit))
    unit = random.normal(size=(2, 40, 3))
    unit /= np.linalg.norm(unit, axis=2, keepdims=True)
    np.testing.assert_allclose(metrics.normal_errors(*unit), measures.normal_errors(*unit))


def test_eq_3_is_the_network_that_is_trained_and_its_weights(random):
    shape_input = ShapeInput.of(60.0 * random.normal(size=(20, 75)), components=5)
    network = FunctionPrediction(5, np.eye(13), (24, 24), "tanh")
    torch.nn.init.normal_(network.layers[-1].weight)
    control = 60.0 * random.normal(size=(5, 5, 3))
    normalised = torch.from_numpy(shape_input.normalised(control.reshape(1, -1))).float()
    found = network(normalised)[0].detach().numpy()
    np.testing.assert_allclose(found, warp_coefficients(control, network.weights(shape_input).forward), atol=1e-5)


def test_n_conf_is_a_perceptron_of_point_and_shape(random):
    network = Confidence(4, 50.0).double()
    p, shape = 80.0 * random.normal(size=(6, 3)), random.normal(size=4)
    state = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    x = p / 50.0 @ state["of_point.weight"].T + state["of_shape.weight"] @ shape + state["of_shape.bias"]
    for place in (1, 3, 5):
        x = np.maximum(x, 0.0) @ state[f"layers.{place}.weight"].T + state[f"layers.{place}.bias"]
    found = network(*tensors(p, shape))[0].detach().numpy()
    np.testing.assert_allclose(found, 1.0 / (1.0 + np.exp(-x[:, 0])), rtol=1e-9)
