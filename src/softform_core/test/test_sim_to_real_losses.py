"""Eqs. 6-11 against plain loops over the printed sums."""

import numpy as np
import pytest
import torch

from softform_core.training.sim_to_real_losses import (
    Clouds,
    Neighbours,
    chamfer_parts,
    confidence_regularization,
    geometric_regularization,
    mean_normals,
    nearest_neighbours,
    normal_compatibility,
    squared_distances,
    surface_normals,
    weighted_chamfer,
)

RANDOM = np.random.default_rng(0)
SIZES = (13, 9)


def unit(count: int) -> np.ndarray:
    vectors = RANDOM.normal(size=(count, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


PREDICTED = RANDOM.normal(0, 20, (2, 11, 3)).astype(np.float32)
CAPTURED = [RANDOM.normal(0, 20, (size, 3)).astype(np.float32) for size in SIZES]
CAPTURED_NORMALS = [unit(size).astype(np.float32) for size in SIZES]
CONFIDENCE = RANDOM.uniform(0, 1, (2, 11)).astype(np.float32)
SURFACE_NORMALS = np.stack([unit(11), unit(11)]).astype(np.float32)
CLOUDS = Clouds.of(CAPTURED, CAPTURED_NORMALS)
NEIGHBOURS = nearest_neighbours(torch.from_numpy(PREDICTED), CLOUDS)


def chamfer(
    predicted: torch.Tensor,
    clouds: Clouds,
    neighbours: Neighbours,
    confidence: torch.Tensor,
    normals: torch.Tensor | None = None,
    tangential: float = 0.0,
) -> torch.Tensor:
    forth, back = chamfer_parts(predicted, clouds, neighbours, normals, tangential)
    return weighted_chamfer(forth, back, clouds.weight, confidence)


def nearest(point: np.ndarray, others: np.ndarray) -> int:
    return int(np.argmin([np.sum((point - other) ** 2) for other in others]))


def reference_chamfer(frame: int, to_plane: bool, tangential: float) -> float:
    surface, cloud, normals = PREDICTED[frame], CAPTURED[frame], CAPTURED_NORMALS[frame]

    def squared(p: int, x: int) -> float:
        difference = surface[p] - cloud[x]
        full = float(np.sum(difference**2))
        halfway = SURFACE_NORMALS[frame, p] + normals[x]
        along = float(difference @ halfway) / float(np.linalg.norm(halfway))
        return along**2 + tangential * full if to_plane else full

    forth = sum(float(w) * squared(i, nearest(surface[i], cloud)) for i, w in enumerate(CONFIDENCE[frame]))
    back = sum(squared(nearest(x, surface), i) for i, x in enumerate(cloud))
    return forth / len(surface) + back / len(cloud)


@pytest.mark.parametrize(("to_plane", "tangential"), [(False, 0.0), (True, 0.0), (True, 0.3)])
def test_weighted_chamfer_is_equation_6(to_plane: bool, tangential: float) -> None:
    normals = torch.from_numpy(SURFACE_NORMALS) if to_plane else None
    value = chamfer(torch.from_numpy(PREDICTED), CLOUDS, NEIGHBOURS, torch.from_numpy(CONFIDENCE), normals, tangential)
    expected = [reference_chamfer(frame, to_plane, tangential) for frame in range(2)]
    assert value.numpy() == pytest.approx(expected, rel=1e-4)


def test_points_of_no_weight_are_nobodys_neighbours_and_cost_nothing() -> None:
    spoiled = [np.vstack([cloud, [[500.0, 0, 0]]]).astype(np.float32) for cloud in CAPTURED]
    clouds = Clouds.of(spoiled, [np.vstack([normals, [[0, 0, 1.0]]]) for normals in CAPTURED_NORMALS])
    weight = clouds.weight.clone()
    for frame, size in enumerate(SIZES):
        weight[frame, size] = 0.0
    clouds = Clouds(clouds.points, clouds.normals, weight)
    predicted = torch.from_numpy(PREDICTED)
    neighbours = nearest_neighbours(predicted, clouds)
    value = chamfer(predicted, clouds, neighbours, torch.from_numpy(CONFIDENCE))
    assert value.numpy() == pytest.approx([reference_chamfer(frame, False, 0.0) for frame in range(2)], rel=1e-4)


def test_distances_along_mean_normals_vanish_between_points_of_one_sphere() -> None:
    normals = [torch.from_numpy(unit(20)[None]) for _ in range(2)]
    difference = 60.0 * (normals[0] - normals[1])
    assert squared_distances(difference, mean_normals(*normals), 0.0).max() < 1e-20
    assert squared_distances(difference, normals[0], 0.0).max() > 1.0


def test_confidence_regularization_is_equation_8() -> None:
    expected = [sum((1 - float(w)) ** 2 for w in row) for row in CONFIDENCE]
    assert confidence_regularization(torch.from_numpy(CONFIDENCE)).numpy() == pytest.approx(expected, rel=1e-5)
    mean = confidence_regularization(torch.from_numpy(CONFIDENCE), mean=True)
    assert mean.numpy() == pytest.approx(np.array(expected) / 11, rel=1e-5)


def test_normal_compatibility_is_equation_9() -> None:
    normals = np.stack([unit(11), unit(11)]).astype(np.float32)
    expected = [
        sum(
            1 - float(n @ normals[frame][nearest(x, PREDICTED[frame])])
            for x, n in zip(CAPTURED[frame], CAPTURED_NORMALS[frame], strict=True)
        )
        for frame in range(2)
    ]
    assert normal_compatibility(torch.from_numpy(normals), CLOUDS, NEIGHBOURS).numpy() == pytest.approx(
        expected, rel=1e-4
    )


def test_geometric_regularization_is_equation_11_and_zero_where_equation_10_holds() -> None:
    gamma, centers = RANDOM.normal(size=(2, 9, 3)), RANDOM.normal(0, 30, (2, 5, 3))
    expected = []
    for beta, q in zip(gamma[:, 4:], centers, strict=True):
        sums = [sum(b for b in beta)] + [sum(b * c[axis] for b, c in zip(beta, q, strict=True)) for axis in range(3)]
        expected.append(sum(float(s @ s) for s in sums))
    value = geometric_regularization(torch.from_numpy(gamma), torch.from_numpy(centers))
    assert value.numpy() == pytest.approx(expected)
    conditions = np.vstack([np.ones(5), centers[0].T])
    gamma[0, 4:] -= np.linalg.pinv(conditions) @ conditions @ gamma[0, 4:]
    compatible = geometric_regularization(torch.from_numpy(gamma[:1]), torch.from_numpy(centers[:1]))
    assert compatible.item() < 1e-15 * expected[0]


def test_normals_point_along_du_cross_dv() -> None:
    along_u, along_v = torch.tensor([[[2.0, 0, 0]]]), torch.tensor([[[1.0, 3, 0]]])
    assert surface_normals(along_u, along_v).tolist() == [[[0, 0, 1]]]


def test_the_losses_have_gradients_of_the_predicted_points_and_of_the_confidence() -> None:
    predicted = torch.from_numpy(PREDICTED).requires_grad_()
    confidence = torch.from_numpy(CONFIDENCE).requires_grad_()
    chamfer(predicted, CLOUDS, NEIGHBOURS, confidence).sum().backward()
    frame, point, step = 1, 4, 0.01
    moved = [torch.from_numpy(PREDICTED.copy()).double() for _ in range(2)]
    for sign, shifted in zip((1, -1), moved, strict=True):
        shifted[frame, point, 2] += sign * step
    values = [chamfer(shifted, CLOUDS, NEIGHBOURS, confidence)[frame].item() for shifted in moved]
    assert predicted.grad[frame, point, 2].item() == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-2)
    assert (confidence.grad > 0).all()
