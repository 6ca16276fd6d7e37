"""The energy of tendons along a rod, and its derivatives over the free bends, of many samples.

A tendon at the place x(s) of the cross-section runs along the rod by v = x' + kappa x x + (1 + epsilon) d3 per length
of the rod's axis, in the rod's directors, so that its way is

    L(q) = sum_e l_e |v_e|,   v = (x1' - kappa3 x2,  x2' + kappa3 x1,  1 + epsilon + kappa1 x2 - kappa2 x1),

and its motor stretches it by d = L(q) - L(0) + u. Its energy is k phi(d), see `bodies.take_up`.
"""

import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.placement import by_strains
from softform_core.bodies.rod.model import Rod
from softform_core.bodies.take_up import taut_energy, taut_slopes
from softform_core.bodies.tendon_rod.model import Tendons


class TendonEnergy:
    """Energy of tendons under pulls; `bends` are the free ones of the rod, (n, E, d), see `bodies.placement`.

    Args:
        rod: The rod.
        tendons: The tendons along it.
    """

    def __init__(self, rod: Rod, tendons: Tendons) -> None:
        self._tendons, length = tendons, rod.length[:, None]
        self._length = tendons.inside * rod.length  # (k, E)
        x, y = tendons.place[..., 0], tendons.place[..., 1]
        by_bends = np.zeros((*x.shape, 3, 4))  # of the course v
        by_bends[..., 0, 2], by_bends[..., 1, 2], by_bends[..., 2, :] = -y, x, by_strains(tendons.place)
        by_bends[..., :3] /= length[..., None]
        self._by_bends = np.ascontiguousarray(by_bends[..., rod.strains])
        self._square = self._by_bends.swapaxes(-1, -2) @ self._by_bends
        self._straight = np.concatenate([tendons.slope, np.ones((*x.shape, 1))], axis=-1)

    def energies(self, bends: Array, pulls: Array) -> Array:
        """Energy (n,), J, of all tendons under pulls (n, k) m."""
        return taut_energy(self.stretches(bends, pulls)) @ self._tendons.stiffness

    def stretches(self, bends: Array, pulls: Array) -> Array:
        """Stretch d (n, k) m; below 0 by how much a tendon is slack."""
        return self._stretches(self._courses(bends)[1], pulls)

    def tensions(self, stretches: Array) -> tuple[Array, Array]:
        """Tensions (n, k) N under stretches (n, k), and their derivatives N/m."""
        slope, curvature = taut_slopes(stretches)
        return self._tendons.stiffness * slope, self._tendons.stiffness * curvature

    def derivatives(self, bends: Array, pulls: Array) -> tuple[Array, Array, Array]:
        """Gradient (n, E d) and Hessian (n, E d, E d), J, and the part (n, E, d, d) of each element to be added."""
        size, along, longer = self._longer(bends)
        tension, stiffness = self.tensions(self._stretches(size, pulls))
        hessian = longer.swapaxes(1, 2) @ (stiffness[..., None] * longer)
        turn = self._square - along[..., :, None] * along[..., None, :]
        pull = tension[..., None] * self._length / size
        return (tension[:, None] @ longer)[:, 0], hessian, (pull[..., None, None] * turn).sum(1)

    def pull_derivatives(self, bends: Array, pulls: Array) -> Array:
        """Derivative (n, E d, k) of the gradient by the pulls: k phi''(d) dL/dq."""
        size, _, longer = self._longer(bends)
        return (self.tensions(self._stretches(size, pulls))[1][..., None] * longer).swapaxes(1, 2)

    def _courses(self, bends: Array) -> tuple[Array, Array]:
        """Courses v (n, k, E, 3) and their sizes (n, k, E)."""
        v = self._straight + (self._by_bends @ bends[:, None, :, :, None])[..., 0]
        return v, np.sqrt(np.vecdot(v, v))

    def _stretches(self, size: Array, pulls: Array) -> Array:
        return np.vecdot(self._length, size) - self._tendons.rest_length + pulls

    def _longer(self, bends: Array) -> tuple[Array, Array, Array]:
        """Sizes of the courses, and derivatives: of the sizes (n, k, E, d), and of the ways L (n, k, E d)."""
        v, size = self._courses(bends)
        along = ((v / size[..., None])[..., None, :] @ self._by_bends)[..., 0, :]
        return size, along, (self._length[..., None] * along).reshape(*size.shape[:2], -1)
