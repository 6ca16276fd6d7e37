"""What inverse kinematics needs of a forward pipeline; `ForwardPipeline` is the one that ships."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

COARSE_POINTS = 100
"""Points of `ForwardModel.coarse`."""


class ForwardModel(Protocol):
    """Actuation to the points of the predicted shape, and its derivatives.

    A state is what `forward` returns: it has `points` (n, P, 3) mm, and is given back to the other methods.
    """

    @property
    def degrees_of_freedom(self) -> int:
        """Number k of actuation parameters."""

    @property
    def coarse(self) -> "ForwardModel":
        """The same shape at about `COARSE_POINTS` points, where a solve makes its first steps."""

    def at(self, uv: Array) -> "ForwardModel":
        """The same shape at other surface parameters (M, 2)."""

    def forward(self, actuation: Array) -> Any:
        """Evaluate (n, k) Pa."""

    def jacobian(self, state: Any) -> Array:
        """Derivative of the points, (n, P, 3, k) mm/Pa."""

    def jacobian_along(self, state: Any, directions: Array) -> Array:
        """Derivative of each point along a direction (P, 3) of its own, for a batch of one, (P, k) mm/Pa."""

    def objective_gradient(self, state: Any, residuals: Array) -> Array:
        """Eq. 16 for residuals p* - (R c* + t) of (P, 3) mm: (k,) mm^2/Pa."""
