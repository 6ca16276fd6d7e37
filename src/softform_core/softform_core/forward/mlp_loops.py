"""Compiled sums over the units of a network: with ReLU about half of them are zero, and their weights are not read."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.floating]

_FAST = {"contract", "nsz"}
"""Rounding may differ by fused operations; NaN and infinity stay what they are."""

_BLOCK = 256
"""Numbers of a row at a time: what is added to them stays in the first cache."""


@njit(cache=True, nogil=True, fastmath=_FAST)
def add_rows(weights: Floats, rows: Floats, out: Floats) -> None:  # pragma: no cover - compiled
    """Add rows (blocks, h, m), each times its weight (blocks, h), to `out` (blocks, m)."""
    for block in range(len(rows)):
        here = out[block]
        for unit in range(rows.shape[1]):
            weight = weights[block, unit]
            if weight != 0.0:
                row = rows[block, unit]
                for column in range(len(here)):
                    here[column] += weight * row[column]


@njit(cache=True, nogil=True, fastmath=_FAST, inline="always")
def _moving(motion, start, stop, found):  # type: ignore[no-untyped-def] # pragma: no cover - compiled
    """Units, of a range of them, that move with any of the variables (k, h): how many, and which in `found`."""
    count = 0
    for unit in range(start, stop):
        moves = False
        for variable in range(len(motion)):
            moves = moves or motion[variable, unit] != 0.0
        if moves:
            found[count] = unit
            count += 1
    return count


@njit(cache=True, nogil=True, fastmath=_FAST)
def add_products(motion: Floats, rows: Floats, out: Floats) -> None:  # pragma: no cover - compiled
    """Add the motion (n, k, blocks * h) of units times their rows (blocks, h, m) to `out` (n, k, blocks * m)."""
    blocks, height, width = rows.shape
    moving = np.empty(height, dtype=np.int64)
    for shape in range(len(motion)):
        for block in range(blocks):
            start = block * height
            count = _moving(motion[shape], start, start + height, moving)
            for first in range(0, width, _BLOCK):
                last = min(first + _BLOCK, width)
                there = slice(block * width + first, block * width + last)
                _add_product(motion[shape], start, moving[:count], rows[block], slice(first, last), out[shape], there)


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_product(motion, start, moving, rows, here, out, there):  # type: ignore[no-untyped-def] # pragma: no cover
    count, first = len(moving), 0
    while first + 4 <= count:  # four at a time: a fourth of the loads and stores of `out`
        a, b, c, d = moving[first], moving[first + 1], moving[first + 2], moving[first + 3]
        row_a, row_b = rows[a - start, here], rows[b - start, here]
        row_c, row_d = rows[c - start, here], rows[d - start, here]
        for variable in range(len(motion)):
            sums = out[variable, there]
            ma, mb, mc, md = motion[variable, a], motion[variable, b], motion[variable, c], motion[variable, d]
            for column in range(len(sums)):
                part = ma * row_a[column] + mb * row_b[column]
                sums[column] += part + (mc * row_c[column] + md * row_d[column])
        first += 4
    for unit in moving[first:count]:
        row = rows[unit - start, here]
        for variable in range(len(motion)):
            weight, sums = motion[variable, unit], out[variable, there]
            for column in range(len(sums)):
                sums[column] += weight * row[column]


@njit(cache=True, nogil=True, fastmath=_FAST)
def turn_by_activation(motion: Floats, activations: Floats, is_relu: bool) -> None:  # pragma: no cover - compiled
    """Derivatives (n, k, h) before an activation function become those behind it, where it is `activations` (n, h)."""
    for shape in range(len(motion)):
        for variable in range(motion.shape[1]):
            here = motion[shape, variable]
            for unit in range(len(here)):
                value = activations[shape, unit]
                if is_relu:
                    here[unit] = here[unit] if value > 0.0 else 0.0
                else:
                    here[unit] *= 1.0 - value * value


@njit(cache=True, nogil=True, fastmath=_FAST)
def add_products_along(
    motion: Floats, rows: Floats, directions: Floats, out: Floats
) -> None:  # pragma: no cover - compiled
    """Add the motion of points along directions of their own: sum over y of d_y times (motion times rows)_y.

    The directions go into the rows first: one product instead of three.

    Args:
        motion: (k, h) of the units.
        rows: (h, 3, P) of the points with each unit.
        directions: (3, P).
        out: (k, P).
    """
    moving = np.empty(motion.shape[1], dtype=np.int64)
    count = _moving(motion, 0, motion.shape[1], moving)
    along = np.empty((4, _BLOCK), rows.dtype)
    for start in range(0, out.shape[1], _BLOCK):
        block = slice(start, min(start + _BLOCK, out.shape[1]))
        size = min(_BLOCK, out.shape[1] - start)
        dx, dy, dz = directions[0, block], directions[1, block], directions[2, block]
        for first in range(0, count, 4):
            here = moving[first : min(first + 4, count)]
            along[len(here) :] = 0.0
            for each in range(len(here)):
                x, y, z = rows[here[each], 0, block], rows[here[each], 1, block], rows[here[each], 2, block]
                row = along[each]
                for p in range(size):
                    row[p] = dx[p] * x[p] + dy[p] * y[p] + dz[p] * z[p]
            ra, rb, rc, rd = along[0], along[1], along[2], along[3]
            last = len(here) - 1
            a, b, c, d = here[0], here[min(1, last)], here[min(2, last)], here[last]
            for variable in range(len(motion)):
                total = out[variable, block]
                ma, mb, mc, md = motion[variable, a], motion[variable, b], motion[variable, c], motion[variable, d]
                for p in range(size):
                    total[p] += (ma * ra[p] + mb * rb[p]) + (mc * rc[p] + md * rd[p])
