"""Named points of a surface: the mean of some of its points, as a forward model and as a frame."""

from typing import Any, NamedTuple

import numpy as np

from softform_core.arrays import Array
from softform_core.forward.forward_model import ForwardModel
from softform_core.geometry.rigid import RigidTransform, centroid, kabsch

_LEAST_SPREAD = 0.05
"""Least spread of points in their second direction, over that in the first, at which they tell a turn."""


class MeanState(NamedTuple):
    """The mean (n, 1, 3) mm of the points of a model, and the model's own state."""

    points: Array
    averaged: Any


class MeanPoint(ForwardModel):
    """The mean of all points of another model: linear in them, so that nothing new has to be learned."""

    def __init__(self, averaged: ForwardModel) -> None:
        self._averaged = averaged

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the model's inputs."""
        return self._averaged.inputs

    def forward(self, actuation: Array) -> MeanState:
        """Evaluate (n, k)."""
        state = self._averaged.forward(actuation)
        return MeanState(state.points.mean(axis=1, keepdims=True), state)

    def jacobian(self, state: MeanState) -> Array:
        """Return the derivative of the mean, (n, 1, 3, k) mm per unit of the input."""
        return np.asarray(self._averaged.jacobian(state.averaged).mean(axis=1, keepdims=True))


def frame_of_points(rest: Array, points: Array) -> RigidTransform:
    """Return the frame in the mean of points (M, 3), turned as they are as a whole from where they rest, (M, 3).

    Points on a line, and one alone, tell no turn: the frame's axes then stay as at rest.
    """
    spread = np.linalg.svd(rest - centroid(rest), compute_uv=False)
    tells_turn = len(rest) > 2 and spread[1] > _LEAST_SPREAD * spread[0]
    return RigidTransform(kabsch(rest, points).rotation if tells_turn else np.eye(3), centroid(points))
