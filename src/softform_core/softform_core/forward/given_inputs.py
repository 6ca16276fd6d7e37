"""A forward model of which a part of the inputs is given: what is left is solved for."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.forward.forward_model import ForwardModel

Array = NDArray[np.float64]


class GivenInputs(ForwardModel):
    """A model whose inputs are those of another one that are not given.

    Args:
        model: The other one.
        given: Values of some of its inputs, by name, each in its own unit.

    Raises:
        SoftformError: If an input is not known, a value is not finite, or nothing is left to be solved for.
    """

    def __init__(self, model: ForwardModel, given: Mapping[str, float]) -> None:
        unknown = sorted(set(given) - set(model.inputs))
        if unknown:
            raise SoftformError(
                f"The model has no input {', '.join(unknown)}.", f"Its inputs are {', '.join(model.inputs)}."
            )
        if not np.isfinite(list(given.values())).all():
            raise SoftformError("A given input is not finite.", "Give finite values.")
        self._model, self._given = model, dict(given)
        self._free = np.array([name not in given for name in model.inputs])
        if not self._free.any():
            raise SoftformError("Every input of the model is given.", "Leave at least one free.")
        self._values = np.array([given.get(name, 0.0) for name in model.inputs], dtype=np.float64)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the free inputs."""
        return tuple(name for name in self._model.inputs if name not in self._given)

    @property
    def coarse(self) -> ForwardModel:
        """The same inputs of the coarse model."""
        return GivenInputs(self._model.coarse, self._given)

    def at(self, uv: Array) -> ForwardModel:
        """The same inputs of the model at other surface parameters."""
        return GivenInputs(self._model.at(uv), self._given)

    def whole(self, actuation: Array) -> Array:
        """All inputs (..., k) of the model, from the free ones (..., f)."""
        values = np.broadcast_to(self._values, (*actuation.shape[:-1], len(self._values))).copy()
        values[..., self._free] = actuation
        return values

    def forward(self, actuation: Array) -> Any:
        """Evaluate the free inputs (n, f)."""
        return self._model.forward(self.whole(actuation))

    def jacobian(self, state: Any) -> Array:
        """Derivative of the points by the free inputs, (n, P, 3, f)."""
        return self._model.jacobian(state)[..., self._free]

    def jacobian_along(self, state: Any, directions: Array) -> Array:
        """Derivative of each point along a direction (P, 3) of its own, (P, f)."""
        return self._model.jacobian_along(state, directions)[:, self._free]

    def objective_gradient(self, state: Any, residuals: Array) -> Array:
        """Eq. 16 by the free inputs, (f,)."""
        return self._model.objective_gradient(state, residuals)[self._free]
