"""Total potential of a rod without its weight, its gradient and its Hessian over the free bends, of many samples.

    Pi(q) = sum_e l_e w(q_e) - sum_i p_i V_i(q)

w is the hyperelastic energy of the wall's fibres, of stretch 1 + epsilon - kappa_2 x_1 + kappa_1 x_2 each, with the
strain limiter and the torsion; V_i is the volume of chamber i, so that pressure is a bending moment p A x and a force
p A. Elements do not feel each other.
"""

import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.placement import by_strains
from softform_core.bodies.rod.model import Rod
from softform_core.simulation.materials import energy_densities, energy_slopes

_LEAST_STRETCH = 0.05


class RodEnergy:
    """Energy of a rod under pressures; `bends` are its free ones, (n, E, d), see `bodies.placement`.

    Args:
        rod: The rod.

    Attributes:
        pushes: (E d, k) derivative of the gradient by the pressures: the same everywhere.
        weights: (E,) of each element's strain energy: its length, and its area over that of the first.
        unit: (E, d) strains of unit bends at a place of the first cross-section.
        linear: (E, d) stiffness of limiter and torsion, J.
    """

    def __init__(self, rod: Rod) -> None:
        self._rod, free = rod, rod.strains
        alike = (rod.coefficients == rod.coefficients[0]).all()
        self._coefficients = rod.coefficients[:1] if alike else rod.coefficients  # numpy is quicker with one number
        length, weights = rod.length, rod.length * rod.scale**2
        in_fibres = np.where(np.arange(4) < 2, (rod.scale / length)[:, None], 1.0)  # (E, 4) strains of unit bends
        self.weights, self.unit = weights, in_fibres[:, free]
        self._gradient_unit = 2.0 * weights[:, None] * self.unit
        self._hessian_unit = self._gradient_unit[:, :, None] * self.unit[:, None, :]
        linear = np.zeros((len(length), 4))
        linear[:, 2], linear[:, 3] = rod.torsion / length, length * rod.limiter
        self.linear = linear[:, free]
        self._linear_blocks = self.linear[:, :, None] * np.eye(len(free))
        arms = by_strains(rod.fibre_place)[:, free]  # (F, d)
        weighted = rod.fibre_area[:, None] * arms
        self._arms, self._weighted = np.ascontiguousarray(arms.T), weighted
        self._products = (weighted[:, :, None] * arms[:, None]).reshape(len(arms), -1)
        of_section = np.arange(rod.chambers) // max(1, rod.chambers // (int(rod.section[-1]) + 1))
        volumes = (rod.section[:, None] == of_section) * weights[:, None] * rod.chamber_area  # (E, k), at rest
        grown = volumes[..., None] * in_fibres[:, None] * by_strains(rod.chamber_place)
        self.pushes = -grown[..., free].swapaxes(1, 2).reshape(self.linear.size, -1)
        self._volumes = volumes.sum(0)

    def energies(self, bends: Array, pressures: Array) -> Array:
        """Pi (n,), J, under pressures (n, k); infinite where a fibre would be crushed."""
        stretch = self._stretch(bends)
        crushed = stretch.min(axis=(1, 2)) < _LEAST_STRETCH
        if crushed.any():
            stretch = np.maximum(stretch, _LEAST_STRETCH)
        density = energy_densities(self._rod.law, self._coefficients, stretch * stretch + 2.0 / stretch)
        energy = density @ self._rod.fibre_area @ self.weights + 0.5 * np.vecdot(bends, self.linear * bends).sum(1)
        energy -= np.vecdot(pressures, self._volumes - bends.reshape(len(bends), -1) @ self.pushes)
        energy[crushed] = np.inf
        return np.asarray(energy)

    def derivatives(self, bends: Array, pressures: Array) -> tuple[Array, Array]:
        """Gradient (n, E d) and Hessian of each element (n, E, d, d), J."""
        stretch = self._stretch(bends)
        inverse = 1.0 / stretch
        inverse_square = inverse * inverse
        slope, curvature = energy_slopes(self._rod.law, self._coefficients, stretch * stretch + 2.0 * inverse)
        rise = stretch - inverse_square  # half of dI1 by the stretch
        stiffness = 2.0 * curvature * rise * rise + slope * (1.0 + 2.0 * inverse * inverse_square)
        gradient = self._gradient_unit * ((slope * rise) @ self._weighted) + self.linear * bends
        blocks = self._hessian_unit * (stiffness @ self._products).reshape(len(bends), *self._hessian_unit.shape)
        blocks += self._linear_blocks
        return gradient.reshape(len(bends), -1) + pressures @ self.pushes.T, blocks

    def _stretch(self, bends: Array) -> Array:
        """Of the fibres, (n, E, F)."""
        return 1.0 + (self.unit * bends) @ self._arms
