"""Equilibria of a rod under the pulls of its tendons."""

import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.rod.equilibrium import RodProblem
from softform_core.bodies.rod.model import Rod
from softform_core.bodies.tendon_rod.energy import TendonEnergy
from softform_core.bodies.tendon_rod.model import Tendons
from softform_core.bodies.weight import diagonal
from softform_core.simulation.hessian import BlockHessian
from softform_core.simulation.simulated_body import TendonLoads


class TendonRodProblem(RodProblem):
    """`SimulatedBody` of a rod with tendons; its actuator values are the pulls of the tendons, m."""

    def __init__(self, rod: Rod, tendons: Tendons) -> None:
        super().__init__(rod)
        self.tendons, self._tendons = tendons, TendonEnergy(rod, tendons)
        self.unloaded = np.zeros(len(tendons.stiffness))

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Pi (n,), J."""
        own = super().energy(unknowns, actuators[:, :0])  # the rod has no chambers
        return own + self._tendons.energies(self._free(unknowns), actuators)

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, BlockHessian]:
        """Gradient (n, m) J and Hessian, J; a tendon joins all elements that it runs through."""
        gradient, own = super().derivatives(unknowns, actuators[:, :0])
        pulled, hessian, blocks = self._tendons.derivatives(self._free(unknowns), actuators)
        if own.blocks.shape[1] == 1:
            hessian += own.blocks[:, 0]
        else:
            blocks += own.blocks
        diagonal(hessian, self.rod.elements)[:] += blocks
        return gradient + pulled, BlockHessian(hessian[:, None])

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """Derivative of the gradient by the pulls, (n, m, k)."""
        return self._tendons.pull_derivatives(self._free(unknowns), actuators)

    def tensions(self, unknowns: Array, actuators: Array) -> Array:
        """Tensions (n, k) N of the tendons."""
        return self._tendons.tensions(self._tendons.stretches(self._free(unknowns), actuators))[0]

    def tendon_loads(self, unknowns: Array, actuators: Array) -> TendonLoads:
        """As `PulledBody`."""
        stretch = self._tendons.stretches(self._free(unknowns), actuators)
        return TendonLoads(self._tendons.tensions(stretch)[0][0], stretch[0], self.tendons.stiffness, actuators[0])
