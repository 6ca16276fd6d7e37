"""Forward models: from an actuation to the points of a predicted shape, with derivatives.

A learned surface (`ForwardPipeline`), the tip of a rod (`TipPoint`, a model of one point) and a simulated body
(`SimulatedModel`) are such models.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.memory import NO_MEMORY, Memory, State

__all__ = ["ForwardModel", "batch_of"]


def batch_of(actuation: ArrayLike, degrees_of_freedom: int) -> tuple[Array, tuple[int, ...]]:
    """Return actuations (..., k) as a batch (n, k), and their leading shape.

    Raises:
        SoftformError: If k is not the number of degrees of freedom, or a value is not finite.
    """
    values = np.asarray(actuation, dtype=np.float64)
    if values.ndim == 0 or values.shape[-1] != degrees_of_freedom:
        raise SoftformError(
            f"The actuation has shape {values.shape}, the model takes {degrees_of_freedom} values.",
            "Give one value for each degree of freedom.",
        )
    if not np.isfinite(values).all():
        raise SoftformError("The actuation has NaN or infinite values.", "Give finite values.")
    return values.reshape(-1, degrees_of_freedom), values.shape[:-1]


class ForwardModel(ABC):
    """Actuation to the points of the predicted shape, and its derivatives.

    The state that `forward` returns has `points` (n, P, 3) mm, and is passed to the other methods.
    """

    @property
    @abstractmethod
    def inputs(self) -> tuple[str, ...]:
        """Names of the k inputs, in the order of an actuation."""

    @abstractmethod
    def forward(self, actuation: Array) -> Any:
        """Evaluate (n, k), each input in the robot's unit (Pa for pressures)."""

    @abstractmethod
    def jacobian(self, state: Any) -> Array:
        """Return the derivative of the points, (n, P, 3, k) mm per unit of the input."""

    @property
    def memory(self) -> Memory:
        """Memory that converts commands to the actuations that the model takes."""
        return NO_MEMORY

    def given(self, state: State) -> "ForwardModel":
        """Return the shapes that follow a state of its memory; itself where the effective actuation says it all."""
        return self

    @property
    def degrees_of_freedom(self) -> int:
        """Number k of inputs."""
        return len(self.inputs)

    @property
    def coarse(self) -> "ForwardModel":
        """The same shape at about a hundred points, where a solve makes its first steps; itself if it has few."""
        return self

    def at(self, uv: Array) -> "ForwardModel":
        """Return the same shape at other surface parameters (M, 2); a model of fixed points is itself."""
        return self

    def jacobian_along(self, state: Any, directions: Array) -> Array:
        """Return the derivative of each point along a direction (P, 3) of its own, for a batch of one, (P, k)."""
        return np.asarray((self.jacobian(state)[0] * directions[:, :, None]).sum(axis=1))

    def objective_gradient(self, state: Any, residuals: Array) -> Array:
        """Eq. 16: 2 sum (dp*/da)^T (p* - (R c* + t)) for residuals (P, 3) mm and a batch of one, (k,)."""
        return np.asarray(2.0 * residuals.ravel() @ self.jacobian(state)[0].reshape(residuals.size, -1))
