"""Total potential of an arm of bellows without its weight, its gradient and its Hessian, of many samples.

    Pi(q) = sum_e l_e (sum_j phi_j(e_j) + B (kappa_1² + kappa_2²) / 2 + C kappa_3² / 2) - sum_j p_j A_j L_j(q)

e_j = epsilon - kappa_2 x_1 + kappa_1 x_2 is the strain of bellow j at its axis and L_j its length: the pressure of a
bellow works on its effective area times the change of its length. The axial law is

    phi(e) = - K m² / 2 ln(1 - (e / m)²),   phi'(e) = K e / (1 - (e / m)²),

a soft spring at the natural length that stiffens without bound as the folds touch (m below 0) or lie flat (m above 0);
both branches agree at 0 up to the third derivative.
"""

import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.bellows.model import BellowsArm
from softform_core.bodies.placement import by_strains


class BellowsEnergy:
    """Energy of an arm under pressures; its bends (n, E, 4) are those of `bodies.placement`.

    Args:
        arm: The arm.

    Attributes:
        pushes: (4 E, k) derivative of the gradient by the pressures: the same everywhere.
    """

    def __init__(self, arm: BellowsArm) -> None:
        elements, bellows, self._length = len(arm.length), len(arm.area), arm.length[:, None]
        self._joined = np.arange(bellows).reshape(int(arm.section[-1]) + 1, -1)[arm.section]  # (E, c)
        self._by_bends = by_strains(arm.place)[self._joined]  # (E, c, 4) of the bellows' strains
        self._by_bends[..., :3] /= self._length[..., None]
        self._lengthened = self._length[..., None] * self._by_bends
        nil, torsion = np.zeros(elements), arm.torsion / arm.length
        self._linear = np.stack([arm.bending / arm.length, arm.bending / arm.length, torsion, nil], axis=1)
        self._linear_blocks = self._linear[:, :, None] * np.eye(4)
        self._stiffness = arm.stiffness[self._joined]
        self._shortest, self._longest = arm.shortest[self._joined], arm.longest[self._joined]
        self._area = arm.area
        pushes = np.zeros((elements, 4, bellows))
        pushes[np.arange(elements)[:, None], :, self._joined] = -arm.area[self._joined][..., None] * self._lengthened
        self.pushes = pushes.reshape(-1, bellows)

    def _law(self, bends: Array) -> tuple[Array, Array, Array]:
        """Strain e of the bellows (n, E, c), m² and 1 - (e / m)²."""
        strain = (self._by_bends @ bends[..., None])[..., 0]
        limit = np.where(strain < 0.0, self._shortest, self._longest)
        return strain, limit**2, 1.0 - (strain / limit) ** 2

    def energies(self, bends: Array, pressures: Array) -> Array:
        """Pi (n,), J, under pressures (n, k); infinite where folds would pass each other."""
        strain, limit2, left = self._law(bends)
        own = -0.5 * self._stiffness * limit2 * np.log(np.where(left > 0.0, left, 1.0))
        own -= (pressures * self._area)[:, self._joined] * strain
        energy = (self._length * own).sum(axis=(1, 2)) + 0.5 * (self._linear * bends**2).sum(axis=(1, 2))
        return np.where((left <= 0.0).any(axis=(1, 2)), np.inf, energy)

    def derivatives(self, bends: Array, pressures: Array) -> tuple[Array, Array]:
        """Gradient (n, 4 E) and Hessian of each element (n, E, 4, 4), J."""
        strain, _, left = self._law(bends)
        force = self._stiffness * strain / left - (pressures * self._area)[:, self._joined]
        slope = self._stiffness * (2.0 - left) / left**2
        gradient = (force[:, :, None] @ self._lengthened)[:, :, 0] + self._linear * bends
        blocks = self._lengthened.swapaxes(1, 2) @ (slope[..., None] * self._by_bends)
        return gradient.reshape(len(bends), -1), blocks + self._linear_blocks


def strain_under(force: Array, stiffness: Array, shortest: Array, longest: Array) -> Array:
    """Strain (…) at which bellows pull with `force` (…) N: phi'(e) = force, in closed form."""
    limit = np.where(force < 0.0, shortest, longest)
    # force e² / m² + K e - force = 0
    return 2.0 * force / (stiffness + np.sqrt(stiffness**2 + (2.0 * force / limit) ** 2))
