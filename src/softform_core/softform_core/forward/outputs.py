"""Several outputs of one robot, such as its tip, its centre line and its bones, as one forward model."""

from copy import copy
from typing import Self

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.forward_model import DerivedState, ForwardModel
from softform_core.forward.memory import Memory, State
from softform_core.surface.patch_set import APART

_ABSENT = (
    ("This model predicts no tip.", "Take another kind of model."),
    ("This model predicts a tip and no centre line.", "Take another kind of model."),
    (
        "This model does not tell how what a skin rides on moves.",
        "Launch with model:=fem; a learned model tells it without sim-to-real, or with a centre line that is learned.",
    ),
)


class Outputs(ForwardModel):
    """The points of several models of one body, of which parameters choose: u of model i lies in 2 i ... 2 i + 1.

    Without parameters it is the first of them. All share the memory of the first.

    Args:
        first: The first of them, such as the tip.
        others: The others, over the same inputs: of the centre line, and of the bones; None of what is not known.
    """

    def __init__(self, first: ForwardModel, *others: ForwardModel | None) -> None:
        self._first, self._parts, self._inputs = first, (first, *others), first.inputs
        self._chosen: tuple[tuple[ForwardModel, NDArray[np.int64] | slice], ...] = ((first, slice(None)),)

    @property
    def memory(self) -> Memory:
        """Memory of the body."""
        return self._first.memory

    def given(self, state: State) -> Self:
        """Return the shapes that follow a state of its memory."""
        parts = tuple(None if part is None else part.given(state) for part in self._parts)
        if all(part is own for part, own in zip(parts, self._parts, strict=True)):
            return self
        other = copy(self)
        assert parts[0] is not None
        other._first, other._parts = parts[0], parts
        other._chosen = tuple((part.given(state), rows) for part, rows in self._chosen)
        return other

    def at(self, uv: Array) -> Self:
        """Return the points at parameters (M, 2), in their order.

        Raises:
            SoftformError: If they are of a part that is not known.
        """
        other, place = copy(self), (uv[:, 0] // APART).astype(np.int64)
        shift, chosen = np.array([APART, 0.0]), []
        for number in np.unique(place).tolist():
            if number >= len(self._parts) or (part := self._parts[number]) is None:
                raise SoftformError(*_ABSENT[number])
            rows = np.flatnonzero(place == number)
            chosen.append((part.at(uv[rows] - number * shift), rows))
        other._chosen = tuple(chosen)
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
