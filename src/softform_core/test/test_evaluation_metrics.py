"""Eqs. 18, 19 and 21 against brute force and shapes whose distances are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softform_core.errors import SoftformError
from softform_core.evaluation.metrics import (
    NORMAL_ERROR_CAP,
    chamfer_distance,
    folded_cells,
    hausdorff_distance,
    normal_errors,
)


def brute_force(points, others):
    return np.sqrt(((points[:, None] - others[None]) ** 2).sum(axis=2))


def plane(height=0.0, count=21):
    line = np.linspace(0.0, 100.0, count)
    x, y = np.meshgrid(line, line, indexing="ij")
    return np.stack([x, y, np.full_like(x, height)], axis=-1)


def sphere(radius, count=4000):
    """Even points on a sphere (Fibonacci lattice)."""
    place = np.arange(count) + 0.5
    z = 1.0 - 2.0 * place / count
    turn = np.pi * (1.0 + np.sqrt(5.0)) * place
    around = np.sqrt(1.0 - z**2)
    return radius * np.stack([around * np.cos(turn), around * np.sin(turn), z], axis=1)


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), predicted=st.integers(1, 40), captured=st.integers(1, 40))
def test_both_distances_are_those_of_brute_force(seed, predicted, captured):
    generator = np.random.default_rng(seed)
    p, x = generator.normal(size=(predicted, 3)), generator.normal(size=(captured, 3))
    table = brute_force(p, x)
    assert hausdorff_distance(p, x) == pytest.approx(max(table.min(axis=1).max(), table.min(axis=0).max()))
    chamfer = (table.min(axis=1) ** 2).mean() + (table.min(axis=0) ** 2).mean()
    assert chamfer_distance(p, x) == pytest.approx(chamfer)
    assert chamfer_distance(p, x) == pytest.approx(chamfer_distance(x, p))


def test_parallel_planes_are_their_distance_apart():
    p, x = plane().reshape(-1, 3), plane(3.0).reshape(-1, 3)
    assert hausdorff_distance(p, x) == pytest.approx(3.0)
    assert chamfer_distance(p, x) == pytest.approx(2.0 * 3.0**2)


def test_concentric_spheres_are_the_difference_of_their_radii_apart():
    p, x = sphere(100.0), sphere(104.0)
    assert hausdorff_distance(p, x) == pytest.approx(4.0, abs=1e-9)
    assert chamfer_distance(p, x) == pytest.approx(2.0 * 4.0**2, abs=1e-9)


def test_hausdorff_sees_what_only_one_side_has():
    p = plane().reshape(-1, 3)
    lump = np.vstack([p, [[50.0, 50.0, 30.0]]])
    assert hausdorff_distance(p, lump) == hausdorff_distance(lump, p) == pytest.approx(30.0)
    assert chamfer_distance(p, lump) == pytest.approx(30.0**2 / len(lump))


@pytest.mark.parametrize("degrees", [0.0, 5.0, 20.0, 90.0, 180.0])
def test_normal_error_is_one_minus_the_cosine(degrees):
    angle = np.radians(degrees)
    up, tilted = np.array([[0.0, 0.0, 1.0]]), np.array([[np.sin(angle), 0.0, np.cos(angle)]])
    assert normal_errors(up, tilted) == pytest.approx(1.0 - np.cos(angle))


def test_the_cap_of_the_histogram_is_just_under_twenty_degrees():
    assert 19.0 < np.degrees(np.arccos(1.0 - NORMAL_ERROR_CAP)) < 20.1


@pytest.mark.parametrize("points", [np.empty((0, 3)), np.ones((4, 2)), np.array([[0.0, np.nan, 0.0]])])
def test_unusable_points_are_rejected(points):
    for one, other in ((points, np.zeros((1, 3))), (np.zeros((1, 3)), points)):
        with pytest.raises(SoftformError):
            hausdorff_distance(one, other)


def test_a_smooth_dome_has_no_fold_and_a_pleat_has_one_where_it_is():
    surface = plane(count=41)
    x, y = surface[..., 0], surface[..., 1]
    surface[..., 2] = 40.0 * np.sin(np.pi * x / 100.0) * np.sin(np.pi * y / 100.0)
    assert not folded_cells(surface).any()
    # Eqs. 2-4 fold like this: points overtake their neighbours along u.
    surface[..., 0] += 12.0 * np.exp(-(((x - 50.0) / 5.0) ** 2) - ((y - 50.0) / 15.0) ** 2)
    folded = folded_cells(surface)
    assert folded.any()
    u, v = np.argwhere(folded).mean(axis=0)
    assert 20 <= u <= 27 and 17 <= v <= 23
    assert not folded[:10].any() and not folded[30:].any() and not folded[:, :5].any()


def test_a_dome_seen_from_below_is_no_fold():
    surface = plane(count=11)
    assert not folded_cells(surface[::-1]).any()
