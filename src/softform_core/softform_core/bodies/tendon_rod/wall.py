"""The printed wall over a metal tube: elastic tube, polymer that softens and creeps, discs that touch.

Per section with the bends b = (phi, epsilon), see `bodies.placement`, and W(b) = 1/2 b . K b of the polymer:

- softening (Mullins effect; Ogden and Roxburgh, Proc. R. Soc. A 455, 1999, pp. 2861-2877): a wall that was once
  strained to the energy W_m gives below it the stress eta dW/db, eta = 1 - erf((W_m - W) / M) / r, M = m + beta W_m;
- creep (Prony series): each term adds the stress g K h, where the strain h of its spring follows the whole one and
  fades like exp(-t / tau). For a steady strain rate within a step of dt it is h = e^(-dt/tau) h_before +
  (tau/dt) (1 - e^(-dt/tau)) (b - b_before), exactly (Simo, Comput. Methods Appl. Mech. Eng. 60, 1987, pp. 153-173),
  so that a step has the potential g h . K h / (2 (tau/dt) (1 - e^(-dt/tau)));
- contact: the inner fibre between the rims of two discs keeps the length l (1 + epsilon) - R |phi_12| above nothing.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import erf

from softform_core.arrays import Array

_CONTACT = 1e5
"""Stiffness of the rims of two discs, N/m."""


class Softening(NamedTuple):
    """Constants of Ogden and Roxburgh: r, m (J of a section) and beta."""

    r: float
    m: float
    beta: float


class Fading(NamedTuple):
    """What P terms of a Prony series remember in one step.

    Attributes:
        carried: (n, P, E, 4), h less its share of the strain reached: h = carried + gain b.
        gain: (n, P), (tau/dt) (1 - e^(-dt/tau)).
    """

    carried: Array
    gain: Array


class Wall(NamedTuple):
    """The wall of E sections; stiffnesses over bends, J.

    Attributes:
        tube: (E, 4) of the tube.
        polymer: (E, 4) of the polymer, K.
        softening: Of the polymer.
        shares: (P,) g of the Prony terms.
        times: (P,) tau, s.
        length: (E,) m, of each section.
        rim: Radius of the discs, m.
    """

    tube: Array
    polymer: Array
    softening: Softening
    shares: Array
    times: Array
    length: Array
    rim: float

    def work(self, bends: Array) -> Array:
        """Return W (n, E), J, of bends (n, E, 4)."""
        return np.asarray(0.5 * np.vecdot(bends, self.polymer * bends))

    def fading(self, overstrain: Array, bends: Array, seconds: Array) -> Fading:
        """Return what is remembered in a step of (n,) s from bends (n, E, 4), with strains h (n, P, E, 4) so far."""
        share = seconds[:, None] / self.times
        kept = np.exp(-share)
        gain = np.where(share > 1e-9, -np.expm1(-share) / np.maximum(share, 1e-12), 1.0)
        return Fading(kept[..., None, None] * overstrain - gain[..., None, None] * bends[:, None], gain)

    def energies(self, bends: Array, peak: Array, fading: Fading) -> Array:
        """Return the potential (n,), J, of bends (n, E, 4) after the greatest W (n, E)."""
        soft = self.softening
        work, scale = self.work(bends), soft.m + soft.beta * peak
        below = np.maximum(peak - work, 0.0)
        softened = work - scale / soft.r * (_integral(peak / scale) - _integral(below / scale))
        strain = fading.carried + fading.gain[..., None, None] * bends[:, None]
        creep = (0.5 * self.shares / fading.gain) * (strain * self.polymer * strain).sum((2, 3))
        touching = np.minimum(self._gap(bends), 0.0)
        tube = 0.5 * np.vecdot(bends, self.tube * bends)
        return np.asarray((softened + tube + 0.5 * _CONTACT * touching**2).sum(1) + creep.sum(1))

    def derivatives(self, bends: Array, peak: Array, fading: Fading) -> tuple[Array, Array]:
        """Return gradient (n, E, 4) and Hessian of each section (n, E, 4, 4), J."""
        soft = self.softening
        work, scale = self.work(bends), soft.m + soft.beta * peak
        below = np.maximum(peak - work, 0.0) / scale
        eta = 1.0 - erf(below) / soft.r
        firmer = np.where(below > 0.0, 2.0 / np.sqrt(np.pi) / (soft.r * scale) * np.exp(-(below**2)), 0.0)
        stress = self.polymer * bends
        strain = fading.carried + fading.gain[..., None, None] * bends[:, None]
        creeping = (self.shares[:, None, None] * strain).sum(1) * self.polymer
        gradient = eta[..., None] * stress + self.tube * bends + creeping
        stiffness = self.tube + (eta + (fading.gain @ self.shares)[:, None])[..., None] * self.polymer
        hessian = stiffness[..., None] * np.eye(4)
        hessian += firmer[..., None, None] * stress[..., :, None] * stress[..., None, :]
        gap = self._gap(bends)
        if (gap < 0.0).any():
            self._add_contact(bends, gap, gradient, hessian)
        return gradient, hessian

    def _gap(self, bends: Array) -> Array:
        return np.asarray(self.length * (1.0 + bends[..., 3]) - self.rim * np.hypot(bends[..., 0], bends[..., 1]))

    def _add_contact(self, bends: Array, gap: Array, gradient: Array, hessian: Array) -> None:
        touch = gap < 0.0
        bent = np.hypot(bends[..., 0], bends[..., 1])[touch]
        slope = np.zeros((len(bent), 4))
        slope[:, :2], slope[:, 3] = (
            -self.rim * bends[..., :2][touch] / bent[:, None],
            np.broadcast_to(self.length, gap.shape)[touch],
        )
        gradient[touch] += _CONTACT * gap[touch][:, None] * slope
        own = _CONTACT * slope[:, :, None] * slope[:, None, :]
        across = bends[..., :2][touch] / bent[:, None]
        turn = (np.eye(2) - across[:, :, None] * across[:, None, :]) / bent[:, None, None]
        own[:, :2, :2] -= _CONTACT * self.rim * gap[touch][:, None, None] * turn
        hessian[touch] += own


def _integral(y: Array) -> Array:
    """An antiderivative of erf."""
    return np.asarray(y * erf(y) + np.exp(-y * y) / np.sqrt(np.pi))
