"""Cost of the actuation beside the shape's: to stay near a posture (redundancy), and near the previous actuation.

Paper 001 takes each waypoint's solution as the start of the next so that the actuation does not jump; as a cost the
same holds where many actuations make nearly the same shape.
"""

from dataclasses import dataclass

import numpy as np

from softform_core.arrays import Array
from softform_core.inverse.ik_options import IkOptions


@dataclass(frozen=True)
class ActuationCost:
    """Sum of weight * ((a - anchor) / range)^2 over anchors and degrees of freedom, mm^2.

    Attributes:
        options: Of the solve; an input that it holds costs nothing.
        anchors: (n, k).
        weights: (n,) mm^2.
    """

    options: IkOptions
    anchors: Array
    weights: Array

    @classmethod
    def of(cls, options: IkOptions) -> "ActuationCost":
        """Preferred posture and smoothness of a solve."""
        wanted = [
            (anchor, weight)
            for anchor, weight in (
                (options.preferred_actuation, options.preference_mm2),
                (options.previous_actuation, options.smoothness_mm2),
            )
            if anchor is not None and weight > 0.0
        ]
        anchors = np.array([anchor for anchor, _ in wanted], dtype=np.float64).reshape(len(wanted), len(options.range))
        return cls(options, anchors, np.array([weight for _, weight in wanted], dtype=np.float64))

    def value(self, actuation: Array) -> float:
        """Cost of (k,), mm^2."""
        if not len(self.weights):
            return 0.0
        return float(self.weights @ (self._offsets(actuation) ** 2).sum(axis=1))

    def gradient(self, actuation: Array) -> Array:
        """Derivative with respect to the actuation as parts of its range, (k,) mm^2."""
        return 2.0 * self.weights @ self._offsets(actuation)

    @property
    def curvature(self) -> float:
        """Second derivative with respect to each value as a part of its range, mm^2."""
        return 2.0 * float(self.weights.sum())

    def _offsets(self, actuation: Array) -> Array:
        return self.options.parts(actuation - self.anchors)
