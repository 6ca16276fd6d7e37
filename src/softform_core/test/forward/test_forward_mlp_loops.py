"""The compiled sums over a network's units against numpy, with units that stand still and widths that leave a rest."""

import numpy as np
import pytest
from numpy.typing import NDArray

from softform_core.forward.mlp_loops import add_products, add_products_along, add_rows, turn_by_activation


def sparse(random: np.random.Generator, *shape: int) -> NDArray[np.float64]:
    return random.normal(size=shape) * (random.random(shape[-1]) > 0.4)


@pytest.mark.parametrize(("blocks", "height", "width"), [(1, 5, 3), (1, 64, 600), (4, 7, 11), (3, 1, 257)])
def test_products_are_those_of_the_block_diagonal_matrix(blocks: int, height: int, width: int) -> None:
    random = np.random.default_rng(blocks + height + width)
    rows, motion = random.normal(size=(blocks, height, width)), sparse(random, 2, 9, blocks * height)
    whole = np.zeros((blocks * height, blocks * width))
    for block in range(blocks):
        whole[block * height : (block + 1) * height, block * width : (block + 1) * width] = rows[block]
    out = random.normal(size=(2, 9, blocks * width))
    expected = out + motion @ whole
    add_products(motion, rows, out)
    np.testing.assert_allclose(out, expected, atol=1e-12)
    one = random.normal(size=(blocks, width))
    expected_row = one.ravel() + motion[0, 0] @ whole
    add_rows(motion[0, 0].reshape(blocks, height), rows, one)
    np.testing.assert_allclose(one.ravel(), expected_row, atol=1e-12)


@pytest.mark.parametrize(("units", "points"), [(1, 1), (6, 300), (8, 256), (7, 1024)])
def test_products_along_directions_are_the_products_times_them(units: int, points: int) -> None:
    random = np.random.default_rng(units + points)
    motion, rows = sparse(random, 9, units), random.normal(size=(units, 3, points))
    directions, out = random.normal(size=(3, points)), random.normal(size=(9, points))
    expected = out + np.einsum("kh,hxp,xp->kp", motion, rows, directions)
    add_products_along(motion, rows, directions, out)
    np.testing.assert_allclose(out, expected, atol=1e-12)


def test_nothing_moves_without_a_moving_unit() -> None:
    out = np.zeros((9, 300))
    add_products_along(np.zeros((9, 4)), np.ones((4, 3, 300)), np.ones((3, 300)), out)
    assert not out.any()


@pytest.mark.parametrize("is_relu", [False, True])
def test_activations_turn_derivatives(is_relu: bool) -> None:
    random, step = np.random.default_rng(0), 1e-6
    before, motion = random.normal(size=(2, 5)), random.normal(size=(2, 3, 5))
    activation = (lambda x: np.maximum(x, 0.0)) if is_relu else np.tanh
    moved = activation(before[:, None] + step * motion) - activation(before[:, None] - step * motion)
    turn_by_activation(motion, activation(before), is_relu)
    np.testing.assert_allclose(motion, moved / (2.0 * step), atol=1e-8)
