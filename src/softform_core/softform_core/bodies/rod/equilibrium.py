"""Equilibria of a rod, and how its tip moves with the actuators; `RodProblem` is driven by chamber pressures."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.rod.energy import derivatives, energies, load_derivatives
from softform_core.bodies.rod.kinematics import place_rod, tips_and_derivatives
from softform_core.bodies.rod.model import Rod
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

    The unknowns are its free strains, curvatures times the element's length.
    """

    batch = 64
    faces: NDArray[np.int32] = np.zeros((0, 3), dtype=np.int32)
    frames = {"tip": 0}
    is_slack = False
    largest_step = _MAX_STEP

    def __init__(self, rod: Rod) -> None:
        self.rod = rod
        self.unloaded = np.zeros(rod.chambers)
        self._unit = np.where(rod.strains == 3, 1.0, 1.0 / rod.length[:, None]).ravel()
        weightless, rest = rod._replace(gravity=np.zeros(3)), np.zeros((1, rod.elements, 4))
        blocks = derivatives(weightless, self.unloaded[None], rest)[1][0]
        stiffness = np.diagonal(blocks, axis1=1, axis2=2).ravel() * self._unit**2
        self.rest = np.zeros(len(self._unit))
        self._tolerance = _TOLERANCE * float(stiffness.min())
        self.rounding = _ROUNDING * float(stiffness.sum())

    def strains(self, unknowns: Array) -> Array:
        """Strains (n, E, 4) of unknowns (n, m)."""
        strains = np.zeros((len(unknowns), self.rod.elements, 4))
        strains[:, :, self.rod.strains] = (unknowns * self._unit).reshape(len(unknowns), self.rod.elements, -1)
        return strains

    def unknowns(self, strains: Array) -> Array:
        """Unknowns (n, m) of strains (n, E, 4)."""
        return np.asarray(strains[:, :, self.rod.strains].reshape(len(strains), -1) / self._unit)

    def points(self, unknowns: Array) -> Array:
        """Tips (n, 1, 3) m of unknowns (n, m)."""
        return np.asarray(tips_and_derivatives(self.rod, self.strains(unknowns))[0][:, None])

    def turns(self, unknowns: Array) -> Array:
        """As `TurningBody`, of the tip: its directors over those of the straight rod, which are the base's."""
        directors = [place_rod(self.rod, strains)[0][-1] for strains in self.strains(unknowns)]
        return np.array([[one @ self.rod.base.T] for one in directors])

    def moved_points(self, unknowns: Array, moves: Array) -> Array:
        """As `SimulatedBody`, (n, 1, 3, k) m."""
        by_strains = tips_and_derivatives(self.rod, self.strains(unknowns))[1].reshape(len(unknowns), 3, -1)
        return np.asarray((by_strains * self._unit) @ moves)[:, None]

    def tolerance(self, actuators: Array) -> Array:
        """Gradient (n,) J below which the rod is in balance."""
        return np.full(len(actuators), self._tolerance)

    def start(self, actuators: Array) -> Array:
        """The straight rod."""
        return np.zeros((len(actuators), len(self._unit)))

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Pi (n,), J."""
        return np.asarray(energies(self.rod, actuators, self.strains(unknowns)))

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, BlockHessian]:
        """Gradient (n, m) J and Hessian, J."""
        gradient, blocks = derivatives(self.rod, actuators, self.strains(unknowns))
        unit = self._unit.reshape(blocks.shape[1], -1)
        blocks *= unit[:, :, None] * unit[:, None, :]
        return gradient.reshape(len(unknowns), -1) * self._unit, BlockHessian(blocks)

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """Derivative of the gradient by the pressures, (n, m, k)."""
        one = load_derivatives(self.rod).reshape(len(self._unit), -1) * self._unit[:, None]
        return np.broadcast_to(one, (len(unknowns), *one.shape))

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
    return RodEquilibria(strains, tips_and_derivatives(problem.rod, strains)[0], found.iterations, found.failures)


def tip_sensitivities(problem: RodProblem, strains: Array, actuators: Array) -> Array:
    """Derivative (n, 3, k) of the tip by actuators (n, k) at equilibria (n, E, 4): implicit function theorem."""
    unknowns = problem.unknowns(strains)
    return problem.moved_points(unknowns, equilibrium_sensitivities(problem, unknowns, actuators))[:, 0]
