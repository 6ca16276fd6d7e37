"""N_rbf, its warp and N_conf: identity start, agreement with the warp of kinematics, gradients."""

import numpy as np
import pytest
import torch

from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.rbf_warp import SimToReal, gaussians, warp
from softform_core.networks.mlp_weights import MlpWeights, mean_of
from softform_core.networks.sim_to_real import (
    Confidence,
    FunctionPrediction,
    ShapeInput,
    identity_coefficients,
    stable_directions,
    warp_basis,
    warp_basis_slope,
)
from softform_core.surface.bspline import basis_matrix
from softform_core.surface.patch_set import SHEET, PatchSet

ROWS = COLS = 6
KERNEL_UV = SHEET.samples(9)
WIDTH = 3e-4


def linear_kinematics(seed: int = 0) -> MlpWeights:
    """A small N_fk whose three pressures bend a sheet of 200 mm."""
    random = np.random.default_rng(seed)
    u, v = np.meshgrid(np.linspace(0, 1, ROWS), np.linspace(0, 1, COLS), indexing="ij")
    rest = np.stack([200 * u - 100, 200 * v - 100, 0 * u], axis=-1)
    modes = np.zeros((3, ROWS, COLS, 3))
    modes[0, ..., 2] = 30 * np.sin(np.pi * u) * np.sin(np.pi * v)
    modes[1, ..., 2] = 15 * np.sin(2 * np.pi * u) * np.sin(np.pi * v)
    modes[2] = random.normal(0, 1, (ROWS, COLS, 3))
    eye = np.eye(3)
    return MlpWeights(
        [np.arctanh(0.5) * eye, modes.reshape(3, -1).T],
        [np.zeros(3), np.zeros(ROWS * COLS * 3)],
        "tanh",
        np.full(3, 500.0),
        np.full(3, 500.0),
        rest.ravel(),
        np.ones(ROWS * COLS * 3),
    )


def control_points(count: int, seed: int = 1) -> np.ndarray:
    return linear_kinematics().forward(np.random.default_rng(seed).uniform(0, 1000, (count, 3)))


def surfaces(control: np.ndarray, uv: np.ndarray) -> np.ndarray:
    return np.stack([basis_matrix(uv, ROWS, COLS) @ shape.reshape(-1, 3) for shape in control])


def random_network(seed: int, shape_input: ShapeInput, directions: np.ndarray) -> FunctionPrediction:
    torch.manual_seed(seed)
    network = FunctionPrediction(len(shape_input.scale), directions, (8, 8), "tanh")
    torch.nn.init.normal_(network.layers[-1].weight, std=0.5)
    torch.nn.init.normal_(network.layers[-1].bias, std=0.5)
    return network


def directions_of(control: np.ndarray) -> np.ndarray:
    points, centers = surfaces(control[:1], SHEET.samples(100)), surfaces(control[:1], KERNEL_UV)
    basis = warp_basis(torch.from_numpy(points), torch.from_numpy(centers), WIDTH)[0].numpy()
    return stable_directions(basis, centers[0], 1e-4)


@pytest.mark.parametrize("components", [None, 3])
def test_an_untrained_network_warps_nothing(components: int | None) -> None:
    control = control_points(20)
    shape_input = ShapeInput.of(control, components)
    network = FunctionPrediction(len(shape_input.scale), directions_of(control))
    points, centers = surfaces(control, SHEET.samples(49)), surfaces(control, KERNEL_UV)
    gamma = network(torch.from_numpy(shape_input.normalised(control)).float())
    warped = warp_basis(torch.from_numpy(points).float(), torch.from_numpy(centers).float(), WIDTH) @ gamma
    assert np.abs(warped.detach().numpy() - points).max() < 1e-4
    assert np.array_equal(identity_coefficients(9)[1:4], np.eye(3))


@pytest.mark.parametrize("components", [None, 3])
def test_the_trained_network_in_the_pipeline_of_kinematics_warps_like_torch(components: int | None) -> None:
    control = control_points(20)
    shape_input = ShapeInput.of(control, components)
    network = random_network(3, shape_input, directions_of(control))
    actuation = np.random.default_rng(5).uniform(0, 1000, (4, 3))
    shapes = linear_kinematics().forward(actuation)
    uv = SHEET.samples(64)
    gamma = network.double()(torch.from_numpy(shape_input.normalised(shapes)))
    expected = (
        warp_basis(torch.from_numpy(surfaces(shapes, uv)), torch.from_numpy(surfaces(shapes, KERNEL_UV)), WIDTH) @ gamma
    )
    sim_to_real = SimToReal(KERNEL_UV, network.weights(shape_input), WIDTH)
    points = ForwardPipeline(
        linear_kinematics(), uv, sim_to_real, PatchSet.of(ROWS, COLS), precision=np.float64
    ).points(actuation)
    assert np.abs(expected.detach().numpy() - surfaces(shapes, uv)).max() > 0.5
    assert np.abs(points - expected.detach().numpy()).max() < 1e-6


def test_the_mean_of_members_is_one_network() -> None:
    control = control_points(20)
    shape_input, directions = ShapeInput.of(control, 3), directions_of(control)
    members = [random_network(seed, shape_input, directions).weights(shape_input) for seed in range(3)]
    expected = np.mean([member.forward(control) for member in members], axis=0)
    assert np.abs(mean_of(members).forward(control) - expected).max() < 1e-8


def test_the_layer_agrees_with_the_warp_of_kinematics_and_has_its_gradients() -> None:
    random = np.random.default_rng(2)
    points, centers = random.normal(0, 50, (2, 7, 3)), random.normal(0, 50, (2, 5, 3))
    gamma = random.normal(0, 1, (2, 9, 3))
    tensors = [torch.from_numpy(value).requires_grad_() for value in (points, centers, gamma)]

    def layer(points: torch.Tensor, centers: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
        return warp_basis(points, centers, WIDTH) @ gamma

    ours = layer(*tensors)
    assert np.abs(ours.detach().numpy() - warp(points, gaussians(points, centers, WIDTH), gamma)).max() < 1e-10
    assert torch.autograd.gradcheck(layer, tensors)


def test_tangents_of_the_warped_surface_are_its_derivatives() -> None:
    random = np.random.default_rng(4)
    points, centers, gamma, tangents = (torch.from_numpy(random.normal(0, 30, (1, count, 3))) for count in (6, 5, 9, 6))
    step = 1e-5
    ahead, behind = (warp_basis(points + sign * step * tangents, centers, WIDTH) @ gamma for sign in (1, -1))
    difference = (ahead - behind) / (2 * step)
    slope = warp_basis_slope(points, tangents, centers, WIDTH) @ gamma
    assert (slope - difference).abs().max() < 1e-4 * difference.abs().max()


def test_stable_directions_move_the_surface_by_a_millimetre_and_keep_the_compatibility_conditions() -> None:
    control = control_points(1)
    directions = directions_of(control)
    points, centers = surfaces(control, SHEET.samples(100)), surfaces(control, KERNEL_UV)[0]
    basis = warp_basis(torch.from_numpy(points), torch.from_numpy(centers[None]), WIDTH)[0].numpy()
    moved = basis @ directions
    assert np.allclose(moved.T @ moved / 100, np.eye(directions.shape[1]), atol=1e-6)
    conditions = np.vstack([np.ones(9), centers.T]) @ directions[4:]
    assert np.abs(conditions).max() < 1e-6 * np.abs(directions[4:]).max() * np.abs(centers).max()


def test_confidence_is_a_share_and_has_gradients_of_all_its_weights() -> None:
    torch.manual_seed(0)
    network = Confidence(3, 50.0)
    confidence = network(torch.randn(2, 11, 3) * 50, torch.randn(2, 3))
    assert confidence.shape == (2, 11)
    assert ((confidence > 0) & (confidence < 1)).all()
    confidence.sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in network.parameters())


def test_components_are_found_where_divide_and_conquer_gives_up(monkeypatch):
    shapes = np.random.default_rng(5).normal(size=(20, 4)) @ np.random.default_rng(6).normal(size=(4, 30))
    expected = ShapeInput.of(shapes, 3)

    def gives_up(*_, **__):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(np.linalg, "svd", gives_up)
    found = ShapeInput.of(shapes, 3)
    assert expected.basis is not None and found.basis is not None
    np.testing.assert_allclose(np.abs(found.basis @ expected.basis.T), np.eye(3), atol=1e-12)
    np.testing.assert_allclose(found.scale, expected.scale)
