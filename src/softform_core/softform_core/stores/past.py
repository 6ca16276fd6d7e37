"""What was commanded before each sample of a store: samples are stored with their history, a row each."""

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError

REMEMBERED = 16
"""Commands before a sample that are stored: of what creeps slowest, a thirtieth is left after so many."""


def pasts(commands: Array, before: Array | None = None) -> Array:
    """Return the `REMEMBERED` commands before each of (n, k) that follow one another, the oldest first: (n, h, k).

    Args:
        commands: (n, k).
        before: (k,) where the robot was before the first of them, such as at rest; None if that is not known: NaN.
    """
    begun = np.full(commands.shape[1], np.nan) if before is None else before
    padded = np.concatenate([np.tile(begun, (REMEMBERED, 1)), commands])
    return np.stack([padded[place : place + len(commands)] for place in range(REMEMBERED)], axis=1)


def check_past(past: Array | None, actuation: Array) -> None:
    """Reject commands before actuations (n, k) that are no history of theirs.

    Args:
        past: (n, h, k), the oldest first, NaN where not known; None if nothing is.
        actuation: (n, k).

    Raises:
        SoftformError: If shapes do not fit together, a number is infinite, or a known command comes before an unknown.
    """
    if past is None:
        return
    if past.ndim != 3 or (len(past), past.shape[2]) != actuation.shape or not past.shape[1]:
        raise SoftformError(
            f"Commands of shape {past.shape} before actuations of shape {actuation.shape}.",
            "Give (n, h, k) commands, h at least one, before (n, k) actuations.",
        )
    unknown = np.isnan(past)
    gaps = (unknown != unknown.any(axis=2, keepdims=True)).any(axis=2)
    gaps[:, 1:] |= (unknown[:, 1:] & ~unknown[:, :-1]).any(axis=2)
    wrong = np.isinf(past).any(axis=2) | gaps
    if wrong.any():
        number = int(np.flatnonzero(wrong.any(axis=1))[0])
        raise SoftformError(
            f"Row {number}: a command before it is infinite, or lacks some values.",
            "Give each command whole; NaN in all values stands for one that is not known, as are those before it.",
        )
