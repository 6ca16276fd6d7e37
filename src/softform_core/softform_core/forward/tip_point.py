"""A tip as a forward model of one point, for the inverse kinematics that surfaces have, too."""

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from softform_core.arrays import Array
from softform_core.forward.forward_model import ForwardModel


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
    """A tip at one actuation.

    Attributes:
        points: (1, 1, 3) mm; z is 0 for a robot in a plane.
        slope: (1, 1, 3, m) mm/Pa.
    """

    points: Array
    slope: Array


class TipPoint(ForwardModel):
    """The one point of a tip."""

    def __init__(self, model: TipMap) -> None:
        self._model = model
        self._inputs = tuple(f"actuation_{number + 1}" for number in range(len(model.actuation_min)))

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the m actuations."""
        return self._inputs

    def forward(self, actuation: Array) -> TipState:
        """Evaluate (1, m); N_J gives the Jacobian (paper 001, Eq. 4) for little more."""
        tip, jacobian = self._model.tip_and_jacobian(actuation[0])
        points, slope = np.zeros((1, 1, 3)), np.zeros((1, 1, 3, len(self._inputs)))
        points[0, 0, : len(tip)], slope[0, 0, : len(tip)] = tip, jacobian
        return TipState(points, slope)

    def jacobian(self, state: TipState) -> Array:
        """Return the derivative of the tip, (1, 1, 3, m) mm/Pa."""
        return state.slope
