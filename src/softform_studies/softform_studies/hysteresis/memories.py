"""What is kept of the past: plays, turning points; paths are configurations (n, h, k), the oldest first, in metres.

A play of width r follows its input q as x <- max(q - r, min(q + r, x)) (`forward.memory`). Here plays are loaded from
home, where the shape is told by q, and their widths may grow with the pull, as capstan friction has it:
x <- max(q, min((1 + a) q + b, x)).
"""

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array

PLAYS = ((0.0, 0.0004), (0.0, 0.001), (0.0, 0.002), (0.0, 0.004), (0.3, 0.0), (1.0, 0.0), (2.0, 0.0))
"""Growth a and width b, m, of plays beside each other."""


def plays(paths: Array, kinds: tuple[tuple[float, float], ...] = PLAYS) -> Array:
    """Return how far (n, r, k) m loaded plays of r kinds, growth and width, stay behind the present configuration."""
    growth, width = np.array(kinds).T[:, None, :, None]
    state = np.repeat(paths[:, :1], len(kinds), axis=1)
    for step in range(1, paths.shape[1]):
        present = paths[:, None, step]
        state = np.clip(state, present, (1.0 + growth) * present + width)
    return np.asarray(state - paths[:, None, -1])


def turning_points(paths: Array, count: int = 2) -> Array:
    """Return the last turning points (n, count, k) m of each input, the youngest first; the oldest value for lack."""
    samples, length, inputs = paths.shape
    found = np.repeat(paths[:, :1], count, axis=1)
    for sample, channel in np.ndindex(samples, inputs):
        values = paths[sample, :, channel]
        steps = np.diff(values)
        moving = np.flatnonzero(steps)
        turns = [
            values[later] for sooner, later in zip(moving, moving[1:], strict=False) if steps[sooner] * steps[later] < 0
        ]
        for place, value in enumerate(turns[::-1][:count]):
            found[sample, place, channel] = value
    return found


def split_rows(
    kind: str, q_current: Array, q_prior: Array, tests: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return rows to learn from, to validate and to judge by.

    Args:
        kind: `printed`: drawn one by one, so that a configuration of a test was seen with another prior one.
            `by_current`, `by_prior`: all rows of a present, or of a prior, configuration are on one side.
        q_current: (n, k) m.
        q_prior: (n, k) m.
        tests: About how many shapes are judged by.
        seed: Of the draw.
    """
    random = np.random.default_rng(seed)
    if kind == "printed":
        group = np.arange(len(q_current))
    else:
        asked = q_current if kind == "by_current" else q_prior
        group = np.unique(np.round(asked, 7), axis=0, return_inverse=True)[1].ravel()
    sizes = np.bincount(group)
    order = random.permutation(len(sizes))
    if kind == "by_prior":
        order = order[sizes[order] < 0.1 * len(group)]  # home, of a third of the rows, stays to be learned from
    judged = np.zeros(len(sizes), dtype=bool)
    judged[order[np.cumsum(sizes[order]) <= tests]] = True
    is_test = judged[group]
    rest = random.permutation(np.flatnonzero(~is_test))
    learned = int(0.7 * len(rest))
    return np.sort(rest[:learned]), np.sort(rest[learned:]), np.flatnonzero(is_test)
