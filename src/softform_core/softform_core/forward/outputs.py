"""Several outputs of one robot, such as its tip and its centre line, as one forward model."""

from collections.abc import Sequence
from copy import copy
from typing import Self

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.forward.forward_model import DerivedState, ForwardModel
from softform_core.forward.memory import Memory, State
from softform_core.surface.patch_set import APART


class Outputs(ForwardModel):
    """The points of several models of one body, of which parameters choose: u of model i lies in 2 i ... 2 i + 1.

    Without parameters it is the first of them. All share the memory of the first.

    Args:
        parts: The models, over the same inputs.
    """

    def __init__(self, parts: Sequence[ForwardModel]) -> None:
        self._parts, self._inputs = tuple(parts), parts[0].inputs
        self._chosen: tuple[tuple[ForwardModel, NDArray[np.int64] | slice], ...] = ((parts[0], slice(None)),)

    @property
    def memory(self) -> Memory:
        """Memory of the body."""
        return self._parts[0].memory

    def given(self, state: State) -> Self:
        """Return the shapes that follow a state of its memory."""
        parts = tuple(part.given(state) for part in self._parts)
        if all(part is own for part, own in zip(parts, self._parts, strict=True)):
            return self
        other = copy(self)
        other._parts, other._chosen = parts, tuple((part.given(state), rows) for part, rows in self._chosen)
        return other

    def at(self, uv: Array) -> Self:
        """Return the points at parameters (M, 2), in their order."""
        other, place = copy(self), (uv[:, 0] // APART).astype(np.int64)
        shift = np.array([APART, 0.0])
        other._chosen = tuple(
            (self._parts[number].at(uv[rows] - number * shift), rows)
            for number in np.unique(place).tolist()
            for rows in [np.flatnonzero(place == number)]
        )
        return other

    def forward(self, actuation: Array) -> DerivedState:
        """Evaluate (n, m)."""
        states = [model.forward(actuation) for model, _ in self._chosen]
        return DerivedState(self._joined([state.points for state in states]), states)

    def jacobian(self, state: DerivedState) -> Array:
        """Return the derivative of the points, (n, P, 3, m) mm per unit."""
        each = zip(self._chosen, state.source, strict=True)
        return self._joined([model.jacobian(one) for (model, _), one in each])

    def _joined(self, parts: list[Array]) -> Array:
        """Return values (n, P, ...) of all points, of those of each model."""
        joined = np.empty((len(parts[0]), sum(part.shape[1] for part in parts), *parts[0].shape[2:]))
        for part, (_, rows) in zip(parts, self._chosen, strict=True):
            joined[:, rows] = part
        return joined
