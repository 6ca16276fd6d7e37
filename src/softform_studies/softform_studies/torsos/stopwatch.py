"""Where the time of a solve goes: the model and the search for closest points, each call timed."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from softform_core.arrays import Array
from softform_core.forward.forward_model import ForwardModel
from softform_core.inverse.closest_points import ClosestPoints, Matches


@dataclass
class Stopwatch:
    """Processor seconds spent since it was made.

    Attributes:
        forward: Time in predictions.
        gradient: Time in their derivatives.
        closest: Time in searches for closest points.
    """

    forward: float = 0.0
    gradient: float = 0.0
    closest: float = 0.0

    @contextmanager
    def running(self, what: str) -> Iterator[None]:
        """Add the time of a block to one of the attributes."""
        begun = time.process_time()
        yield
        setattr(self, what, getattr(self, what) + time.process_time() - begun)


class TimedModel(ForwardModel):
    """A model whose predictions and derivatives are timed."""

    def __init__(self, model: ForwardModel, stopwatch: Stopwatch) -> None:
        self._model, self._stopwatch = model, stopwatch

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the k inputs."""
        return self._model.inputs

    @property
    def coarse(self) -> "TimedModel":
        """The same shape at few points, timed with it."""
        return TimedModel(self._model.coarse, self._stopwatch)

    def at(self, uv: Array) -> "TimedModel":
        """The same shape at other surface parameters, timed with it."""
        return TimedModel(self._model.at(uv), self._stopwatch)

    def forward(self, actuation: Array) -> Any:
        """As the model."""
        with self._stopwatch.running("forward"):
            return self._model.forward(actuation)

    def jacobian(self, state: Any) -> Array:
        """As the model."""
        with self._stopwatch.running("gradient"):
            return self._model.jacobian(state)

    def jacobian_along(self, state: Any, directions: Array) -> Array:
        """As the model."""
        with self._stopwatch.running("gradient"):
            return self._model.jacobian_along(state, directions)

    def objective_gradient(self, state: Any, residuals: Array) -> Array:
        """As the model."""
        with self._stopwatch.running("gradient"):
            return self._model.objective_gradient(state, residuals)


class TimedSearch:
    """A target whose searches are timed."""

    def __init__(self, search: ClosestPoints, stopwatch: Stopwatch) -> None:
        self._search, self._stopwatch = search, stopwatch

    @property
    def vertices(self) -> Array:
        """Points that span the target, (N, 3) mm."""
        return self._search.vertices

    def query(self, points: Array) -> Matches:
        """As the search."""
        with self._stopwatch.running("closest"):
            return self._search.query(points)
