"""The forward pipeline and its analytic Jacobian against torch autograd (Eqs. 14, 3, 1, 2, 4; 16-17, 23-31)."""

import numpy as np
import pytest
import torch
from scipy.interpolate import BSpline

from softform_core.errors import SoftformError
from softform_core.forward.mlp import fold
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.rbf_warp import SimToReal
from softform_core.surface.patch_set import SHEET, PatchSet

GRID = 30
CHAMBERS = 9


def torch_network(weights, x):
    x = (x - torch.tensor(weights.input_offset)) / torch.tensor(weights.input_scale)
    for index, (weight, bias) in enumerate(zip(weights.weights, weights.biases, strict=True)):
        x = torch.tensor(weight) @ x + torch.tensor(bias)
        if index < len(weights.weights) - 1:
            x = torch.relu(x) if weights.activation == "relu" else torch.tanh(x)
    return x * torch.tensor(weights.output_scale) + torch.tensor(weights.output_offset)


def torch_decoder(uv, control_points):
    knots = np.concatenate([np.zeros(3), np.linspace(0.0, 1.0, GRID - 2), np.ones(3)])
    along_u = torch.tensor(BSpline.design_matrix(uv[:, 0], knots, 3).toarray())
    along_v = torch.tensor(BSpline.design_matrix(uv[:, 1], knots, 3).toarray())
    return torch.einsum("pi,pj,ijx->px", along_u, along_v, control_points.reshape(GRID, GRID, 3))


def torch_points(forward_kinematics, sim_to_real, uv, actuation):
    """Algorithm 1 as printed, one actuation."""
    control_points = torch_network(forward_kinematics, actuation)
    points = torch_decoder(uv, control_points)
    if sim_to_real is None:
        return points
    gamma = torch_network(sim_to_real.coefficients, control_points).reshape(-1, 3)
    centers = torch_decoder(sim_to_real.kernel_uv, control_points)
    squared = ((points[:, None] - centers) ** 2).sum(-1)
    return gamma[0] + points @ gamma[1:4] + torch.exp(-sim_to_real.width * squared) @ gamma[4:]


@pytest.mark.parametrize(("precision", "tolerance"), [(np.float64, 1e-9), (np.float32, 1e-5)])
@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_points_and_jacobian_agree_with_autograd(
    random_forward_kinematics, random_sim_to_real, seed, corrected, precision, tolerance
):
    network = random_forward_kinematics(seed)
    warp = random_sim_to_real(seed + 100) if corrected else None
    uv = np.random.default_rng(seed).uniform(size=(150, 2))
    pipeline = ForwardPipeline(network, uv, warp, precision=precision)
    actuation = np.random.default_rng(seed + 7).uniform(0.0, 5000.0, CHAMBERS)

    points, jacobian = pipeline.points_and_jacobian(actuation)

    def reference(actuation):
        return torch_points(network, warp, uv, actuation)

    expected = reference(torch.tensor(actuation)).numpy()
    expected_jacobian = torch.autograd.functional.jacobian(
        reference, torch.tensor(actuation), vectorize=True, strategy="forward-mode"
    ).numpy()
    assert points.shape == (150, 3) and jacobian.shape == (150, 3, CHAMBERS)
    points_tolerance = 1e-9 if precision is np.float64 else 1e-7
    assert np.abs(points - expected).max() <= points_tolerance * np.abs(expected).max()
    assert jacobian.dtype == np.float64
    assert np.abs(jacobian - expected_jacobian).max() <= tolerance * np.abs(expected_jacobian).max()
    assert np.abs(expected_jacobian).max() > 0.0
    if corrected:
        simulated = ForwardPipeline(network, uv).points(actuation)
        assert np.abs(points - simulated).max() > 1.0  # the warp does something


@pytest.mark.parametrize("kernels", [4, 36])
def test_narrow_kernels_and_a_smooth_activation(random_forward_kinematics, random_sim_to_real, kernels):
    network = random_forward_kinematics(4)
    warp = random_sim_to_real(5, kernels)
    warp = SimToReal(warp.kernel_uv, warp.coefficients, width=3e-4)
    pipeline = ForwardPipeline(network, SHEET.samples(49), warp, precision=np.float64)
    actuation = np.full(CHAMBERS, 1234.0)
    expected = torch.autograd.functional.jacobian(
        lambda a: torch_points(network, warp, pipeline.uv, a), torch.tensor(actuation), vectorize=True
    ).numpy()
    assert np.abs(pipeline.points_and_jacobian(actuation)[1] - expected).max() <= 1e-9 * np.abs(expected).max()


def test_jacobian_agrees_with_finite_differences(exact_membrane):
    actuation = np.linspace(500.0, 4500.0, CHAMBERS)
    step = 1.0
    moved = actuation + step * np.eye(CHAMBERS)
    back = actuation - step * np.eye(CHAMBERS)
    numeric = (exact_membrane.points(moved) - exact_membrane.points(back)) / (2.0 * step)
    _, jacobian = exact_membrane.points_and_jacobian(actuation)
    assert np.abs(np.moveaxis(numeric, 0, -1) - jacobian).max() <= 1e-6 * np.abs(jacobian).max()


@pytest.mark.parametrize(("precision", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-5)])
@pytest.mark.parametrize("corrected", [False, True])
def test_jacobian_along_directions_is_the_jacobian_times_them(
    random_forward_kinematics, random_sim_to_real, corrected, precision, tolerance
):
    warp = random_sim_to_real(8) if corrected else None
    pipeline = ForwardPipeline(random_forward_kinematics(3), SHEET.samples(400), warp, precision=precision)
    rng = np.random.default_rng(3)
    state = pipeline.forward(rng.uniform(0.0, 5000.0, (1, CHAMBERS)))
    directions = rng.normal(size=(len(pipeline.uv), 3))
    expected = (directions[:, :, None] * pipeline.jacobian(state)[0]).sum(axis=1)
    along = pipeline.jacobian_along(state, directions)
    assert along.shape == (len(pipeline.uv), CHAMBERS)
    assert np.abs(along - expected).max() <= tolerance * np.abs(expected).max()


def test_gradient_of_the_objective_is_eq_16(exact_membrane):
    actuation = np.linspace(500.0, 4500.0, CHAMBERS)
    closest = exact_membrane.points(actuation[::-1])
    state = exact_membrane.forward(actuation[None])
    gradient = exact_membrane.objective_gradient(state, state.points[0] - closest)

    def objective(actuation):
        return float(((exact_membrane.points(actuation) - closest) ** 2).sum())

    numeric = [(objective(actuation + e) - objective(actuation - e)) / 2.0 for e in np.eye(CHAMBERS)]
    assert gradient == pytest.approx(numeric, rel=1e-5)


@pytest.mark.parametrize("count", [1, 4])
def test_a_solver_meets_the_points_that_are_predicted(random_forward_kinematics, random_sim_to_real, count):
    """A solver's points, in single precision, against those in double."""
    network, warp = random_forward_kinematics(6), random_sim_to_real(9)
    actuations = np.random.default_rng(6).uniform(0.0, 5000.0, (count, CHAMBERS))
    for sim_to_real in (None, warp):
        pipeline = ForwardPipeline(network, SHEET.samples(400), sim_to_real)
        state, expected = pipeline.forward(actuations), pipeline.points(actuations)
        assert state.hidden[-1].dtype == np.float32 and state.points.dtype == np.float64
        assert np.abs(state.points - expected).max() <= 3e-7 * np.abs(expected).max()


def test_batches_are_their_members(corrected_membrane):
    actuations = np.random.default_rng(0).uniform(0.0, 5000.0, (2, 3, CHAMBERS))
    points, jacobian = corrected_membrane.points_and_jacobian(actuations)
    assert points.shape == (2, 3, len(corrected_membrane.uv), 3) and jacobian.shape == (*points.shape, CHAMBERS)
    one_points, one_jacobian = corrected_membrane.points_and_jacobian(actuations[1, 2])
    assert np.allclose(points[1, 2], one_points, atol=1e-10)
    assert np.allclose(jacobian[1, 2], one_jacobian, atol=1e-14)
    assert corrected_membrane.control_points(actuations).shape == (2, 3, GRID * GRID, 3)
    assert corrected_membrane.warp_coefficients(actuations).shape == (2, 3, 104, 3)


def test_control_points_and_coefficients_rebuild_the_points(random_forward_kinematics, random_sim_to_real):
    warp = random_sim_to_real(1, 25)
    pipeline = ForwardPipeline(random_forward_kinematics(1), SHEET.samples(100), warp)
    actuation = np.full(CHAMBERS, 3000.0)
    control_points = torch.tensor(pipeline.control_points(actuation))
    gamma = pipeline.warp_coefficients(actuation)
    points = torch_decoder(pipeline.uv, control_points).numpy()
    centers = torch_decoder(warp.kernel_uv, control_points).numpy()
    kernels = np.exp(-warp.width * ((points[:, None] - centers) ** 2).sum(-1))
    assert np.allclose(gamma[0] + points @ gamma[1:4] + kernels @ gamma[4:], pipeline.points(actuation), atol=1e-9)
    assert ForwardPipeline(random_forward_kinematics(1), SHEET.samples(9)).warp_coefficients(actuation).shape == (0, 3)


def test_grid_faces_cover_the_square_once():
    uv, faces = SHEET.samples(100), SHEET.triangles(100)
    corners = uv[faces]
    doubled = np.linalg.det(np.stack([corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]], axis=1))
    assert len(uv) == 100 and (doubled > 0.0).all() and doubled.sum() / 2.0 == pytest.approx(1.0)


@pytest.mark.parametrize("actuation", [np.zeros(8), np.zeros((2, 10)), np.float64(3.0), np.full(9, np.nan)])
def test_bad_actuations_are_rejected(membrane, actuation):
    with pytest.raises(SoftformError, match="values"):
        membrane.points(actuation)


@pytest.mark.parametrize("uv", [np.zeros((0, 2)), np.zeros((4, 3)), np.full((4, 2), 1.5), np.full((4, 2), np.nan)])
def test_bad_surface_parameters_are_rejected(random_forward_kinematics, uv):
    with pytest.raises(SoftformError, match="[Ss]urface parameters"):
        ForwardPipeline(random_forward_kinematics(0), uv)


def test_networks_of_another_surface_are_rejected(random_forward_kinematics, random_sim_to_real):
    with pytest.raises(SoftformError, match="control points need"):
        ForwardPipeline(random_forward_kinematics(0), SHEET.samples(9), patches=PatchSet.of(20, 30))
    warp = random_sim_to_real(0, 16)
    with pytest.raises(SoftformError, match="kernels need"):
        SimToReal(SHEET.samples(25), warp.coefficients)


def test_layers_that_do_not_follow_each_other_are_rejected(random_forward_kinematics):
    network = random_forward_kinematics(0)
    network.weights[1] = network.weights[1][:, :-1]
    with pytest.raises(SoftformError, match="do not follow"):
        fold(network)


@pytest.mark.parametrize("corrected", [False, True])
def test_normals_are_those_of_the_predicted_surface(random_forward_kinematics, random_sim_to_real, corrected):
    network = random_forward_kinematics(3)
    warp = random_sim_to_real(4, 25) if corrected else None
    uv = np.random.default_rng(5).uniform(0.1, 0.9, size=(40, 2))
    actuation = np.random.default_rng(6).uniform(0.0, 5000.0, (2, CHAMBERS))
    step = 1e-6
    along_u, along_v = (
        (
            ForwardPipeline(network, uv + step * axis, warp, precision=np.float64).points(actuation)
            - ForwardPipeline(network, uv - step * axis, warp, precision=np.float64).points(actuation)
        )
        for axis in np.eye(2)
    )
    expected = np.cross(along_u, along_v)
    expected /= np.linalg.norm(expected, axis=-1, keepdims=True)
    assert np.abs(ForwardPipeline(network, uv, warp).normals(actuation) - expected).max() < 1e-4
