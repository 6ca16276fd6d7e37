"""What both models of an arm of bellows, the simulator's rod and a reality's chain, give to the solver."""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.bellows.skin import Skin, faces_of, moves_on, vertices_on
from softform_core.simulation.hessian import BlockHessian
from softform_core.simulation.simulated_body import equilibrium_unknowns

_TOLERANCE = 1e-10  # of the least stiffness at rest
_ROUNDING = 1e-14  # of the stiffness
_MAX_STEP = 0.5
_RUNAWAY = 3.0


class SkinnedArm(ABC):
    """`SimulatedBody` whose points are the vertices of a skin; its unknowns are strains and angles.

    Args:
        skin: The skin.
        unknowns: Number m of unknowns.
        bellows: Number k of bellows.
    """

    batch = 32
    frames: ClassVar[dict[str, int]] = {}
    is_slack = False
    largest_step = _MAX_STEP

    def __init__(self, skin: Skin, unknowns: int, bellows: int) -> None:
        self._skin = skin
        self.faces: NDArray[np.int32] = faces_of(skin)
        self.unloaded = np.zeros(bellows)
        straight = np.zeros((1, unknowns))
        stiffness = np.diagonal(self.derivatives(straight, self.unloaded[None])[1].blocks[0, 0])
        self._tolerance, self.rounding = _TOLERANCE * float(stiffness.min()), _ROUNDING * float(stiffness.sum())

    @cached_property
    def rest(self) -> Array:
        """Unknowns (m,) of the vented arm under its own weight."""
        return equilibrium_unknowns(self, self.unloaded[None])[0]

    @abstractmethod
    def start(self, actuators: Array) -> Array:
        """Unknowns (n, m) from which Newton's method begins."""

    @abstractmethod
    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Pi (n,), J."""

    @abstractmethod
    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """Derivative of the gradient by the pressures, (n, m, k)."""

    @abstractmethod
    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, BlockHessian]:
        """Gradient (n, m) J and Hessian, J."""

    @abstractmethod
    def _rings(self, unknowns: Array) -> tuple[Array, Array]:
        """Places (n, R, 3) m and directors (n, R, 3, 3) of the rings."""

    @abstractmethod
    def _twists(self, unknowns: Array, moves: Array) -> Array:
        """Shifts and turns (n, R, 6, c) of the rings as the unknowns move by (n, m, c)."""

    def points(self, unknowns: Array) -> Array:
        """Vertices (n, V, 3) m of unknowns (n, m)."""
        return vertices_on(self._skin, *self._rings(unknowns))

    def moved_points(self, unknowns: Array, moves: Array) -> Array:
        """As `SimulatedBody`, (n, V, 3, c) m."""
        return moves_on(self._skin, self._rings(unknowns)[1], self._twists(unknowns, moves))

    def tolerance(self, actuators: Array) -> Array:
        """Gradient (n,) J below which the arm is in balance."""
        return np.full(len(actuators), self._tolerance)

    def has_run_away(self, unknowns: Array) -> NDArray[np.bool_]:
        """Whether (n,) it is stretched or bent beyond every measure."""
        return np.asarray(np.abs(unknowns).max(axis=1) > _RUNAWAY)
