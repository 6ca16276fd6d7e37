"""A forward pipeline plus what a capture showed that it lacks: the next plan then aims at the measured surface."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softform_core.kinematics.ik_problem import ForwardModel

Array = NDArray[np.float64]


class CorrectedPipeline:
    """A forward model whose points are displaced by what was measured at one actuation.

    The displacement is held constant, so that the Jacobian stays the model's: as in a quasi-Newton method, the steps
    are a little off, the point at which they end is not.

    Args:
        pipeline: The model.
        displacement: (P, 3) mm, added to its points.
    """

    def __init__(self, pipeline: ForwardModel, displacement: Array) -> None:
        """Nothing is evaluated yet."""
        self._pipeline, self._displacement = pipeline, displacement

    @property
    def degrees_of_freedom(self) -> int:
        """Number k of actuation parameters."""
        return self._pipeline.degrees_of_freedom

    def forward(self, actuation: Array) -> Any:
        """Evaluate (n, k) Pa; the result has `points` (n, P, 3) mm."""
        state = self._pipeline.forward(actuation)
        return replace(state, points=state.points + self._displacement)

    def jacobian(self, state: Any) -> Array:
        """Derivative of the points, (n, P, 3, k) mm/Pa."""
        return self._pipeline.jacobian(state)

    def objective_gradient(self, state: Any, residuals: Array) -> Array:
        """Eq. 16 for residuals (P, 3) mm, (k,) mm^2/Pa."""
        return self._pipeline.objective_gradient(state, residuals)
