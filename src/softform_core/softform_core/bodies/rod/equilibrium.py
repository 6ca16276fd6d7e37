"""Equilibria of a rod, and how its tip moves with the actuators; `RodProblem` is driven by chamber pressures."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.placement import Placed, ends, place, twists
from softform_core.bodies.rod.energy import RodEnergy
from softform_core.bodies.rod.model import Rod
from softform_core.bodies.rotations import crossed
from softform_core.bodies.weight import Weight
from softform_core.errors import SoftformError
from softform_core.simulation.hessian import BlockHessian
from softform_core.simulation.newton import find_equilibria
from softform_core.simulation.sensitivity import equilibrium_sensitivities

_TOLERANCE = 1e-11  # of the rod's least stiffness at rest: strains, or rad an element
_ROUNDING = 1e-14  # of its stiffness
_MAX_STEP = 1.0
_RUNAWAY = 3.0  # strain, or rad an element


class RodProblem:
    """`SimulatedBody` of a rod, whose one point is its tip.

    The unknowns are its free bends, see `bodies.placement`: strains, curvatures times the element's length.
    """

    batch = 32
    faces: NDArray[np.int32] = np.zeros((0, 3), dtype=np.int32)
    frames = {"tip": 0}
    is_slack = False
    largest_step = _MAX_STEP

    def __init__(self, rod: Rod) -> None:
        self.rod, self.wall = rod, RodEnergy(rod)
        self._weight = Weight(rod, rod.strains) if rod.gravity.any() else None
        self.unloaded = np.zeros(rod.chambers)
        self.rest = np.zeros(rod.elements * len(rod.strains))
        self._unit = np.where(np.arange(4) == 3, 1.0, rod.length[:, None])  # (E, 4) of bends, over strains
        blocks = self.wall.derivatives(self._free(self.rest[None]), self.unloaded[None])[1]
        stiffness = np.diagonal(blocks, axis1=2, axis2=3)
        self._tolerance = _TOLERANCE * float(stiffness.min())
        self.rounding = _ROUNDING * float(stiffness.sum())

    def strains(self, unknowns: Array) -> Array:
        """Strains (n, E, 4) of unknowns (n, m)."""
        return self._bends(unknowns) / self._unit

    def unknowns(self, strains: Array) -> Array:
        """Unknowns (n, m) of strains (n, E, 4)."""
        return np.asarray((strains * self._unit)[:, :, self.rod.strains].reshape(len(strains), -1))

    def _free(self, unknowns: Array) -> Array:
        """Free bends (n, E, d)."""
        return unknowns.reshape(len(unknowns), self.rod.elements, -1)

    def _bends(self, unknowns: Array) -> Array:
        """Bends (n, E, 4)."""
        if len(self.rod.strains) == 4:
            return self._free(unknowns)
        bends = np.zeros((len(unknowns), self.rod.elements, 4))
        bends[:, :, self.rod.strains] = self._free(unknowns)
        return bends

    def _placed(self, unknowns: Array) -> Placed:
        return place(self.rod, self._bends(unknowns))

    def points(self, unknowns: Array) -> Array:
        """Tips (n, 1, 3) m of unknowns (n, m)."""
        return ends(self.rod, self._placed(unknowns))[1][:, -1:]

    def turns(self, unknowns: Array) -> Array:
        """As `TurningBody`, of the tip: its directors over those of the straight rod, which are the base's."""
        return np.asarray(self._placed(unknowns).directors[:, -1:] @ self.rod.base.T)

    def moved_points(self, unknowns: Array, moves: Array) -> Array:
        """As `SimulatedBody`, (n, 1, 3, k) m."""
        placed = self._placed(unknowns)
        own = twists(self.rod.length, placed.directors[:, :-1], placed.turns, placed.bends[..., 3])
        middle, behind = ends(self.rod, placed)
        by_bends = own[:, :, :3].swapaxes(2, 3)
        by_bends += crossed(own[:, :, 3:].swapaxes(2, 3), (behind[:, -1:] - middle)[:, :, None])
        by_unknowns = by_bends[:, :, self.rod.strains].reshape(len(unknowns), -1, 3).swapaxes(1, 2)
        return np.asarray(by_unknowns @ moves)[:, None]

    def tolerance(self, actuators: Array) -> Array:
        """Gradient (n,) J below which the rod is in balance."""
        return np.full(len(actuators), self._tolerance)

    def start(self, actuators: Array) -> Array:
        """The straight rod."""
        return np.zeros((len(actuators), len(self.rest)))

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Pi (n,), J."""
        energy = self.wall.energies(self._free(unknowns), actuators)
        return energy if self._weight is None else energy + self._weight.energies(self._placed(unknowns))

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, BlockHessian]:
        """Gradient (n, m) J and Hessian, J; without weight the elements do not feel each other."""
        gradient, blocks = self.wall.derivatives(self._free(unknowns), actuators)
        if self._weight is None:
            return gradient, BlockHessian(blocks)
        pulled, hessian = self._weight.derivatives(self._placed(unknowns), blocks)
        return gradient + pulled, BlockHessian(hessian[:, None])

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """Derivative of the gradient by the pressures, (n, m, k)."""
        return np.broadcast_to(self.wall.pushes, (len(unknowns), *self.wall.pushes.shape))

    def has_run_away(self, unknowns: Array) -> NDArray[np.bool_]:
        """Whether (n,) an element is stretched or bent beyond every measure."""
        return np.asarray(np.abs(unknowns).max(axis=1) > _RUNAWAY)


@dataclass(frozen=True)
class RodEquilibria:
    """Equilibria of n actuations.

    Attributes:
        strains: (n, E, 4), see `bodies.rod.model`; NaN where none was found.
        tips: (n, 3) m, end of the last link in the robot's frame.
        iterations: (n,) of Newton's method.
        failures: (n,) why none was found; empty where one was.
    """

    strains: Array
    tips: Array
    iterations: NDArray[np.int64]
    failures: list[str]


def solve_equilibria(problem: RodProblem, actuators: Array, starts: Array | None = None) -> RodEquilibria:
    """Equilibria under values of the actuators (n, k), from strains (n, E, 4) or from the straight rod.

    Raises:
        SoftformError: If values are not finite or of another number than the rod's actuators.
    """
    actuators = np.ascontiguousarray(actuators, dtype=np.float64)
    needed = len(problem.unloaded)
    if actuators.ndim != 2 or actuators.shape[1] != needed or not np.isfinite(actuators).all():
        raise SoftformError(
            f"Values of shape {actuators.shape} are no finite values of {needed} actuators.", "Give (n, k) of them."
        )
    found = find_equilibria(problem, actuators, None if starts is None else problem.unknowns(starts))
    strains = problem.strains(found.unknowns)
    strains[~found.found] = np.nan
    return RodEquilibria(strains, problem.points(found.unknowns)[:, 0], found.iterations, found.failures)


def tip_sensitivities(problem: RodProblem, strains: Array, actuators: Array) -> Array:
    """Derivative (n, 3, k) of the tip by actuators (n, k) at equilibria (n, E, 4): implicit function theorem."""
    unknowns = problem.unknowns(strains)
    return problem.moved_points(unknowns, equilibrium_sensitivities(problem, unknowns, actuators))[:, 0]
