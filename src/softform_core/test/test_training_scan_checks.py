"""Scans of something else are rejected with their frame's number; good ones with noise, holes and a gap are not."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from softform_core.errors import SoftformError
from softform_core.training.scan_checks import check_scans, fold_flags, residual_flags, scan_faults
from softform_core.training.sim_to_real_losses import Clouds

FRAMES, BAD = 6, 3
Change = Callable[[np.ndarray], np.ndarray]


def heights(u: np.ndarray, v: np.ndarray, bumps: np.ndarray) -> np.ndarray:
    """Three bumps that no mirroring maps onto each other; mm."""
    centers = [(0.3, 0.3), (0.7, 0.35), (0.4, 0.75)]
    each = [np.exp(-((u - a) ** 2 + (v - b) ** 2) / 0.03) for a, b in centers]
    return np.tensordot(bumps, np.array(each), axes=1)


def surface(uv: np.ndarray, bumps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points and unit normals on a sheet of 200 mm."""
    step = 1e-5

    def at(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.stack([200 * u - 100, 200 * v - 100, heights(u, v, bumps)], axis=-1)

    u, v = uv.T
    normal = np.cross(at(u + step, v) - at(u, v), at(u, v + step) - at(u, v))
    return at(u, v), normal / np.linalg.norm(normal, axis=1, keepdims=True)


def scene(change: Change = lambda cloud: cloud, height: float = 1.1) -> tuple[Clouds, torch.Tensor, torch.Tensor]:
    """Clouds so many times as high as the simulated surfaces, with `change` made to one of them."""
    random = np.random.default_rng(0)
    line = np.linspace(0, 1, 25)
    grid = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    clouds, cloud_normals, simulated = [], [], []
    for number in range(FRAMES):
        bumps = random.permutation([50.0, 25.0, 5.0]) + random.uniform(0, 5, 3)
        simulated.append(surface(grid, bumps))
        uv = random.uniform(0, 1, (600, 2))
        uv = uv[np.linalg.norm(uv - random.uniform(0, 1, 2), axis=1) > 0.25]
        points, normals = surface(uv, height * bumps)
        points += random.normal(0, 0.2, points.shape)
        clouds.append(change(points) if number == BAD else points)
        cloud_normals.append(normals)
    points, normals = (torch.from_numpy(np.array(part)).float() for part in zip(*simulated, strict=True))
    return Clouds.of(clouds, cloud_normals), points, normals


def in_a_box(cloud: np.ndarray) -> np.ndarray:
    return np.random.default_rng(1).uniform(cloud.min(axis=0), cloud.max(axis=0), cloud.shape)


def test_good_frames_pass() -> None:
    check_scans(*scene())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda cloud: cloud * [-1, 1, 1], "mirrored"),
        (lambda cloud: cloud * [1, -1, 1], "mirrored"),
        (lambda cloud: cloud * [-1, -1, 1], "turned"),
        (lambda cloud: cloud[:, [1, 0, 2]] * [-1, 1, 1], "turned"),
        (in_a_box, "noise"),
        (lambda cloud: cloud + [0, 0, 80], "mm from"),
        (lambda cloud: 0.4 * cloud, "of the surface"),
    ],
)
def test_a_scan_of_something_else_is_rejected_with_its_number(change: Change, reason: str) -> None:
    found = scan_faults(*scene(change))
    assert [flag.frame for flag in found] == [BAD]
    assert reason in found[0].reason
    with pytest.raises(SoftformError, match=f"1 of {FRAMES} frames .* frame {BAD}: "):
        check_scans(*scene(change))


def test_a_gap_that_all_frames_show_is_to_be_learned() -> None:
    """The clouds are seven times as high as simulated; half of their points are a tenth of the sheet away, and more."""
    clouds, points, normals = scene(height=7.0)
    away = torch.cdist(clouds.points[0], points[0]).min(dim=1).values
    assert away[clouds.weight[0] > 0.0].median() > 20.0  # mm
    assert scan_faults(clouds, points, normals) == []


def test_frames_explained_far_worse_than_the_others_are_named() -> None:
    residual = np.random.default_rng(2).normal(0.3, 0.03, 40)
    assert residual_flags(residual) == []
    residual[17] = 3.0
    assert [flag.frame for flag in residual_flags(residual)] == [17]


def test_a_fold_in_the_prediction_is_named() -> None:
    simulated = torch.zeros(3, 10, 3)
    simulated[..., 2] = 1.0
    predicted = simulated.clone()
    assert fold_flags(predicted, simulated) == []
    predicted[1, 4] *= -1.0
    (flag,) = fold_flags(predicted, simulated)
    assert flag.frame == 1
    assert "1 of 10" in flag.reason
