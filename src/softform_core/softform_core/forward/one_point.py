"""Forward models of one point: a robot's tip, and the mean of some points of a surface, which is a frame, too."""

from copy import copy
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from softform_core.arrays import Array
from softform_core.forward.forward_model import DerivedState, ForwardModel
from softform_core.forward.memory import Memory, State
from softform_core.geometry.rigid import RigidTransform, centroid, kabsch
from softform_core.surface.anchors import Anchors
from softform_core.units import MM_PER_M


class TipMap(Protocol):
    """A map from actuations to the tip's position and Jacobian; `TipModel` is one."""

    @property
    def actuation_min(self) -> Array:
        """Lowest actuation, (m,)."""

    @property
    def actuation_max(self) -> Array:
        """Highest actuation, (m,)."""

    @property
    def workspace_width_mm(self) -> float:
        """Unit of tolerances."""

    @property
    def memory(self) -> Memory:
        """Memory that converts commands to the actuations that the map takes."""

    def tip(self, actuation: ArrayLike) -> Array:
        """Return tips (…, n) mm at actuations (…, m)."""

    def tip_and_jacobian(self, actuation: ArrayLike) -> tuple[Array, Array]:
        """Return the tip (n,) mm and Jacobian (n, m) mm/Pa at one actuation (m,)."""


@runtime_checkable
class ServedTip(TipMap, Protocol):
    """The tip of a robot, as far as it is known; `TipModel` is one, and a simulated tip."""

    @property
    def dimensions(self) -> int:
        """Number n of the tip's coordinates."""

    @property
    def sim_to_real(self) -> object | None:
        """Correction of the simulated tip; None without it."""

    @property
    def without_sim_to_real(self) -> "ServedTip":
        """The simulated tip."""


class TipState(NamedTuple):
    """A tip at one actuation, as often as it was asked for.

    Attributes:
        points: (1, P, 3) mm; z is 0 for a robot in a plane.
        actuation: (m,).
    """

    points: Array
    actuation: Array


class TipPoint(ForwardModel):
    """The one point of a tip."""

    def __init__(self, model: TipMap) -> None:
        self._model, self._count = model, 1
        self._inputs = tuple(f"actuation_{number + 1}" for number in range(len(model.actuation_min)))

    @property
    def memory(self) -> Memory:
        """Memory of the tip's map."""
        return self._model.memory

    def at(self, uv: Array) -> "TipPoint":
        """Return the tip once for each of the parameters (P, 2)."""
        if len(uv) == self._count:
            return self
        other = copy(self)
        other._count = len(uv)
        return other

    def forward(self, actuation: Array) -> TipState:
        """Evaluate (1, m)."""
        tip, points = self._model.tip(actuation[0]), np.zeros((1, self._count, 3))
        points[..., : len(tip)] = tip
        return TipState(points, actuation[0])

    def jacobian(self, state: TipState) -> Array:
        """Return the derivative of the tip, (1, P, 3, m) mm/Pa (paper 001, Eq. 4), where a solve asks for it."""
        _, jacobian = self._model.tip_and_jacobian(state.actuation)
        slope = np.zeros((1, self._count, 3, len(self._inputs)))
        slope[:, :, : len(jacobian)] = jacobian
        return slope


_LEAST_SPREAD = 0.05
"""Least spread of points in their second direction, over that in the first, at which they tell a turn."""


class MeanPoint(ForwardModel):
    """The mean of all points of another model, or a place that rides on them: nothing new has to be learned.

    Args:
        model: The other model.
        place: One anchor, lengths in m; the mean by default.
    """

    def __init__(self, model: ForwardModel, place: Anchors | None = None) -> None:
        self._model, self._place, self._inputs = model, place, model.inputs

    @property
    def memory(self) -> Memory:
        """Memory of the other model."""
        return self._model.memory

    def given(self, state: State) -> "MeanPoint":
        """Return the mean of the shapes that follow a state of the other model's memory."""
        return MeanPoint(self._model.given(state), self._place)

    def forward(self, actuation: Array) -> DerivedState:
        """Evaluate (n, k)."""
        state = self._model.forward(actuation)
        if self._place is None:
            return DerivedState(state.points.mean(axis=1, keepdims=True), state)
        return DerivedState(np.stack([MM_PER_M * self._place.points(one / MM_PER_M) for one in state.points]), state)

    def jacobian(self, state: DerivedState) -> Array:
        """Return the derivative of the place, (n, 1, 3, k) mm per unit of the input."""
        slopes = self._model.jacobian(state.source)
        if self._place is None:
            return np.asarray(slopes.mean(axis=1, keepdims=True))
        each = zip(state.source.points / MM_PER_M, slopes, strict=True)
        return np.stack([self._place.jacobian(points, slope) for points, slope in each])


def frame_of_points(rest: Array, points: Array) -> RigidTransform:
    """Return the frame in the mean of points (M, 3), turned as they are as a whole from where they rest, (M, 3).

    Points on a line, and one alone, tell no turn: the frame's axes then stay as at rest.
    """
    spread = np.linalg.svd(rest - centroid(rest), compute_uv=False)
    tells_turn = len(rest) > 2 and spread[1] > _LEAST_SPREAD * spread[0]
    return RigidTransform(kabsch(rest, points).rotation if tells_turn else np.eye(3), centroid(points))
