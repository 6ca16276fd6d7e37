"""Non-rigid registration finds a known deformation in a cloud with a hole, noise and outliers."""

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.surface.bspline import apply, evaluate, unit_normals
from softform_core.surface.patch_set import SHEET, PatchSet
from softform_studies.sim_to_real.warp_fit import WarpSpace, register_surface

SIDE = 12
HOLE = np.array([0.6, 0.4])

GRID = PatchSet.of(12, 12)


def normals(control: np.ndarray, uv: np.ndarray) -> np.ndarray:
    """Unit normals (P, 3) of a surface at (P, 2)."""
    return unit_normals(*(apply(slope, control) for slope in GRID.derivatives(uv)))


def sheet(height: float) -> np.ndarray:
    """Control points (SIDE, SIDE, 3) of a sheet of 300 mm with two hills, mm."""
    u, v = np.meshgrid(np.linspace(0, 1, SIDE), np.linspace(0, 1, SIDE), indexing="ij")
    z = height * np.sin(2 * np.pi * u) ** 2 * np.sin(np.pi * v)
    return np.stack([300 * u - 150, 300 * v - 150, z], axis=-1)


def captured(height: float) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    uv = random.uniform(0, 1, (1200, 2))
    uv = uv[np.linalg.norm(uv - HOLE, axis=1) > 0.15]
    along = random.normal(0, 0.2, len(uv))
    along[:: len(uv) // 8] += 15.0  # outliers
    normal = normals(sheet(height), uv)
    return evaluate(sheet(height), uv) + along[:, None] * normal, normal


def test_the_surface_goes_where_the_cloud_is_and_holes_are_known() -> None:
    uv = SHEET.samples(900)
    cloud, normal = captured(36.0)
    found = register_surface(sheet(30.0).reshape(-1, 3), uv, GRID, cloud, normal)
    true = evaluate(sheet(36.0), uv)
    off = np.abs(np.einsum("px,px->p", found.points - true, normals(sheet(36.0), uv)))
    before = np.abs(np.einsum("px,px->p", evaluate(sheet(30.0), uv) - true, normals(sheet(36.0), uv)))
    shown = found.is_supported
    assert off[shown].mean() < 0.1 * before[shown].mean()
    assert off.max() < 0.7 * before.max()
    distance = np.linalg.norm(uv - HOLE, axis=1)
    assert not shown[distance < 0.09].any()
    assert shown[distance > 0.2].mean() > 0.98


def test_a_cloud_of_a_few_points_is_rejected() -> None:
    cloud, normal = captured(36.0)
    with pytest.raises(SoftformError, match="registered"):
        register_surface(sheet(30.0).reshape(-1, 3), SHEET.samples(100), GRID, cloud[:20], normal[:20])


def test_the_fit_finds_a_warp_of_its_own_space_and_the_ridge_holds_it() -> None:
    points, centers = evaluate(sheet(20.0), SHEET.samples(400)), evaluate(sheet(20.0), SHEET.samples(25))
    space = WarpSpace(points, centers, 1e-4)
    target = points + 3.0 * np.exp(-1e-4 * ((points - centers[12]) ** 2).sum(axis=1))[:, None] * [0.0, 0.0, 1.0]
    normal, weight = normals(sheet(20.0), SHEET.samples(400)), np.ones(400)
    free = space.nearest_warp(target, normal, weight, tangential=1.0, ridge=1e-9)
    assert np.linalg.norm(free - target, axis=1).max() < 0.3
    held = space.nearest_warp(target, normal, weight, tangential=1.0, ridge=1e4)
    assert np.linalg.norm(held - points, axis=1).max() < 0.05
