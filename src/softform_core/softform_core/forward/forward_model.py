"""What inverse kinematics needs of a forward pipeline; `ForwardPipeline` is the one that ships."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_COARSE_SIDE = 10


def coarse_uv() -> Array:
    """Surface parameters of `ForwardModel.coarse`: the centres of equal cells, and the corners, (104, 2).

    Means over them are means over the surface, which a small grid with its many points on the rim would not give; and
    they span it.
    """
    centres = (np.arange(_COARSE_SIDE) + 0.5) / _COARSE_SIDE
    cells = np.stack(np.meshgrid(centres, centres, indexing="ij"), axis=-1).reshape(-1, 2)
    return np.concatenate([cells, [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]])


class ForwardModel(Protocol):
    """Actuation to the points of the predicted shape, and its derivatives.

    A state is what `forward` returns: it has `points` (n, P, 3) mm, and is given back to the other methods.
    """

    @property
    def degrees_of_freedom(self) -> int:
        """Number k of actuation parameters."""

    @property
    def coarse(self) -> "ForwardModel":
        """The same shape at `coarse_uv`, where a solve makes its first steps."""

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
