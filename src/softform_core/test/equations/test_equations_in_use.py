"""What runs, against the equations: B-spline, networks in torch, their export, the forward pipeline, the metrics."""

import numpy as np
import pytest
import torch

from softform_core.equations import inverse_kinematics, jacobian, losses, measures
from softform_core.equations.surface import surface_points
from softform_core.equations.warp import corrected_points_of_actuation, warp, warp_coefficients
from softform_core.evaluation import metrics
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.sim_to_real_export import SimToRealNetwork
from softform_core.networks.sim_to_real import (
    Confidence,
    FunctionPrediction,
    ShapeInput,
    stable_directions,
    warp_basis,
    warp_basis_slope,
)
from softform_core.surface.bspline import evaluate
from softform_core.surface.patch_set import PatchSet
from softform_core.training import sim_to_real_losses
from softform_core.training.marker_learning import marker_distance

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


def test_eqs_6_to_11_are_the_losses_in_training(random):
    counts = (30, 20)
    predicted, normals = random.normal(size=(2, 2, 40, 3))
    captured = [random.normal(size=(count, 3)) for count in counts]
    captured_normals = [random.normal(size=(count, 3)) for count in counts]
    confidence, centers = random.uniform(size=(2, 40)), random.normal(size=(2, 9, 3))
    gamma = random.normal(size=(2, 13, 3))
    clouds = sim_to_real_losses.Clouds.of(captured, captured_normals)
    points, along, w_c, q, warps = (
        torch.from_numpy(each).float() for each in (predicted, normals, confidence, centers, gamma)
    )
    neighbours = sim_to_real_losses.nearest_neighbours(points, clouds)
    parts = sim_to_real_losses.chamfer_parts(points, clouds, neighbours)
    found = sim_to_real_losses.weighted_chamfer(*parts, clouds.weight, w_c)
    expected = [losses.weighted_chamfer(*each) for each in zip(predicted, captured, confidence, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert float(found.sum()) == pytest.approx(losses.chamfer_loss(expected), rel=1e-5)
    regular = sim_to_real_losses.confidence_regularization(w_c).sum()
    assert float(regular) == pytest.approx(losses.confidence_regularization(confidence), rel=1e-5)
    compatible = sim_to_real_losses.normal_compatibility(along, clouds, neighbours).sum()
    assert float(compatible) == pytest.approx(
        losses.normal_compatibility(predicted, normals, captured, captured_normals), rel=1e-5
    )
    geometric = sim_to_real_losses.geometric_regularization(warps, q).sum()
    assert float(geometric) == pytest.approx(losses.geometric_regularization(gamma, centers), rel=1e-5)


def test_eq_10_holds_along_every_direction_in_which_the_network_predicts(random):
    points, centers = 60.0 * random.normal(size=(50, 3)), 60.0 * random.normal(size=(9, 3))
    basis = warp_basis(*tensors(points, centers), 3e-5)[0].numpy()
    directions = stable_directions(basis, centers, 1e-6)
    assert directions.shape[1] >= 5
    gammas = [random.normal(size=(directions.shape[1], 3)) for _ in range(3)]
    size = np.abs(directions[4:]).max() * np.abs(centers).max()
    for gamma in gammas:
        assert np.abs(losses.compatibility_conditions(directions @ gamma, centers)).max() < 1e-9 * size
    assert losses.geometric_regularization([random.normal(size=(13, 3))], [centers]) > 1.0


def test_eq_12_adds_by_its_weights_and_eq_13_is_the_loss_of_markers(random):
    assert losses.total_loss(1.0, 2.0, 4.0, 8.0, (12.0, 0.5, 1.5e-4)) == pytest.approx(27.0012)
    predicted, markers = random.normal(size=(2, 34, 3))
    w_c = (random.uniform(size=34) > 0.2).astype(float)
    found = marker_distance(*(torch.from_numpy(each)[None] for each in (predicted, markers, w_c)))
    assert float(found) == pytest.approx(losses.marker_distance(predicted, markers, w_c))


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
