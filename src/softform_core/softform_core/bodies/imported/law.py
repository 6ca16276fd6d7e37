"""Smooth laws between samples: radial basis functions over the actuation, through every one of them."""

from collections.abc import Callable

import numpy as np
from scipy.interpolate import RBFInterpolator

from softform_core.arrays import Array
from softform_core.errors import SoftformError

_MOST_AT_ONCE, _NEIGHBOURS = 1000, 100
"""Of more samples than these only so many that are nearest count at a time."""

Law = Callable[[Array], Array]
"""From actuations (n, m) to values (n, …)."""


def interpolated(actuation: Array, values: Array, kernel: str = "cubic", degree: int = 1) -> Law:
    """A law through values (s, …) at actuations (s, m).

    Raises:
        SoftformError: If they are too few, or actuations lie on a line or plane.
    """
    at, group = np.unique(actuation, axis=0, return_inverse=True)
    flat = np.zeros((len(at), values[0].size))
    np.add.at(flat, group.ravel(), values.reshape(len(values), -1))
    flat /= np.bincount(group.ravel())[:, None]  # of samples that repeat an actuation the mean
    low, span = at.min(axis=0), np.ptp(at, axis=0)
    span[span == 0.0] = np.inf  # what never changed tells nothing, wherever it is asked for
    neighbours = _NEIGHBOURS if len(at) > _MOST_AT_ONCE else None
    try:
        found = RBFInterpolator((at - low) / span, flat, neighbours, kernel=kernel, degree=degree)
        found(np.zeros((1, len(span))))
    except (ValueError, np.linalg.LinAlgError) as error:
        raise SoftformError(
            f"Nothing lies between {len(actuation)} samples of {len(span)} actuations ({error}).",
            "Import more, in which each actuation changes on its own.",
        ) from error
    return lambda at: np.asarray(found((at - low) / span)).reshape(len(at), *values.shape[1:])
