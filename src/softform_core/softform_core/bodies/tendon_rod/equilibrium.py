"""Equilibria of a rod under the pulls of its tendons."""

import numba
import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.rod.energy import gradient_and_hessian, total_energy
from softform_core.bodies.rod.equilibrium import RodProblem
from softform_core.bodies.rod.model import Rod
from softform_core.bodies.tendon_rod.energy import add_tendons, pull_derivatives, stretches_and_tensions, tendon_energy
from softform_core.bodies.tendon_rod.model import Tendons
from softform_core.simulation.hessian import BlockHessian
from softform_core.simulation.simulated_body import TendonLoads


class TendonRodProblem(RodProblem):
    """`SimulatedBody` of a rod with tendons; its actuator values are the pulls of the tendons, m."""

    def __init__(self, rod: Rod, tendons: Tendons) -> None:
        super().__init__(rod)
        self.tendons = tendons
        self.unloaded = np.zeros(len(tendons.stiffness))

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Pi (n,), J."""
        return np.asarray(_energies(self.rod, self.tendons, actuators, self.strains(unknowns)))

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, BlockHessian]:
        """Gradient (n, m) J and Hessian, J; a tendon joins all elements that it runs through."""
        gradient, hessian = _derivatives(self.rod, self.tendons, actuators, self.strains(unknowns))
        hessian *= self._unit[:, None] * self._unit
        return gradient * self._unit, BlockHessian(hessian[:, None])

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """Derivative of the gradient by the pulls, (n, m, k)."""
        found = pull_derivatives(self.rod, self.tendons, actuators, self.strains(unknowns))
        return np.asarray(found * self._unit[:, None])

    def tensions(self, unknowns: Array, actuators: Array) -> Array:
        """Tensions (n, k) N of the tendons."""
        return np.asarray(_stretches_and_tensions(self.rod, self.tendons, actuators, self.strains(unknowns))[:, 1])

    def tendon_loads(self, unknowns: Array, actuators: Array) -> TendonLoads:
        """As `PulledBody`."""
        found = _stretches_and_tensions(self.rod, self.tendons, actuators, self.strains(unknowns))
        return TendonLoads(found[0, 1], found[0, 0], self.tendons.stiffness, actuators[0])


@numba.njit(cache=True, nogil=True)
def _energies(rod, tendons, pulls, strains):  # type: ignore[no-untyped-def]
    found, none = np.empty(pulls.shape[0]), np.empty(0)
    for n in range(found.shape[0]):
        found[n] = total_energy(rod, none, strains[n]) + tendon_energy(rod, tendons, pulls[n], strains[n])
    return found


@numba.njit(cache=True, nogil=True)
def _derivatives(rod, tendons, pulls, strains):  # type: ignore[no-untyped-def]
    samples, width, none = strains.shape[0], strains.shape[1] * rod.strains.shape[0], np.empty(0)
    gradients, hessians = np.empty((samples, width)), np.empty((samples, width, width))
    for n in range(samples):
        gradients[n], hessians[n] = gradient_and_hessian(rod, none, strains[n])
        add_tendons(rod, tendons, pulls[n], strains[n], gradients[n], hessians[n])
    return gradients, hessians


@numba.njit(cache=True, nogil=True)
def _stretches_and_tensions(rod, tendons, pulls, strains):  # type: ignore[no-untyped-def]
    found = np.empty((pulls.shape[0], 2, pulls.shape[1]))
    for n in range(pulls.shape[0]):
        found[n] = stretches_and_tensions(rod, tendons, pulls[n], strains[n])
    return found
