"""Cost of the actuation beside the shape's: to stay near a posture (redundancy), and near the previous actuation.

Paper 001 takes each waypoint's solution as the start of the next so that the actuation does not jump; as a cost the
same holds where many actuations make nearly the same shape.
"""

import numpy as np

from softform_core.arrays import Array
from softform_core.inverse.ik_options import IkOptions


class ActuationCost:
    """Sum of weight * ((a - anchor) / range)^2 over anchors and degrees of freedom, mm^2.

    Args:
        options: Posture and previous actuation of a solve, and their weights; an input that it holds costs nothing.
    """

    def __init__(self, options: IkOptions) -> None:
        wanted = [
            (anchor, weight)
            for anchor, weight in (
                (options.preferred_actuation, options.preference_mm2),
                (options.previous_actuation, options.smoothness_mm2),
            )
            if anchor is not None and weight > 0.0
        ]
        self._parts, self._weights = options.parts, np.array([weight for _, weight in wanted])
        self._anchors = np.array([anchor for anchor, _ in wanted], dtype=np.float64).reshape(-1, len(options.range))

    def value(self, actuation: Array) -> float:
        """Return the cost of (k,), mm^2."""
        if not len(self._weights):
            return 0.0
        return float(self._weights @ (self._offsets(actuation) ** 2).sum(axis=1))

    def gradient(self, actuation: Array) -> Array:
        """Return the derivative with respect to the actuation as parts of its range, (k,) mm^2."""
        return 2.0 * self._weights @ self._offsets(actuation)

    @property
    def curvature(self) -> float:
        """Second derivative with respect to each value as a part of its range, mm^2."""
        return 2.0 * float(self._weights.sum())

    def _offsets(self, actuation: Array) -> Array:
        return self._parts(actuation - self._anchors)
