"""Total potential of an arm of bellows, its gradient and its Hessian over the strains, of many samples.

    Pi(q) = sum_e l_e (sum_j phi_j(e_j) + B (kappa_1² + kappa_2²) / 2 + C kappa_3² / 2) - sum_j p_j A_j L_j(q) - weight

e_j = epsilon - kappa_2 x_1 + kappa_1 x_2 is the strain of bellow j at its axis and L_j its length: the pressure of a
bellow works on its effective area times the change of its length. The axial law is

    phi(e) = - K m² / 2 ln(1 - (e / m)²),   phi'(e) = K e / (1 - (e / m)²),

a soft spring at the natural length that stiffens without bound as the folds touch (m below 0) or lie flat (m above 0);
both branches agree at 0 up to the third derivative.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.bellows.model import BellowsArm
from softform_core.bodies.bellows.placement import place_arm
from softform_core.bodies.bellows.weight import diagonal, weight


def _of_elements(arm: BellowsArm, values: NDArray[Any]) -> NDArray[Any]:
    """Values (…, k) of the bellows as (…, E, c) of those of each element."""
    sections = int(arm.section[-1]) + 1
    return values.reshape(*values.shape[:-1], sections, -1)[..., arm.section, :]


def _by_strain(arm: BellowsArm) -> Array:
    """Derivative (E, c, 4) of the bellows' strains by those of their element."""
    x, y = _of_elements(arm, arm.place.T)
    return np.stack([y, -x, np.zeros_like(x), np.ones_like(x)], axis=-1)


def _linear(arm: BellowsArm) -> Array:
    """Stiffness (E, 4) in bending and torsion."""
    return arm.length[:, None] * np.stack([arm.bending, arm.bending, arm.torsion, np.zeros_like(arm.torsion)], axis=1)


def _law(arm: BellowsArm, strains: Array) -> tuple[Array, Array, Array, Array]:
    """Strain e of the bellows (n, E, c), K, m² and 1 - (e / m)²."""
    strain = (_by_strain(arm) @ strains[..., None])[..., 0]
    limit = np.where(strain < 0.0, _of_elements(arm, arm.shortest), _of_elements(arm, arm.longest))
    return strain, _of_elements(arm, arm.stiffness), limit**2, 1.0 - (strain / limit) ** 2


def energies(arm: BellowsArm, pressures: Array, strains: Array) -> Array:
    """Pi (n,) J of many samples: pressures (n, k), strains (n, E, 4); infinite where folds would pass each other."""
    strain, stiffness, limit2, left = _law(arm, strains)
    passed = (left <= 0.0).any(axis=(1, 2))
    own = -0.5 * stiffness * limit2 * np.log(np.where(left > 0.0, left, 1.0))
    own -= _of_elements(arm, pressures * arm.area) * strain
    energy = (arm.length[:, None] * own).sum(axis=(1, 2)) + 0.5 * (_linear(arm) * strains**2).sum(axis=(1, 2))
    placed = place_arm(arm, strains)
    middles = 0.5 * (placed.ends + placed.link_ends)
    energy -= (arm.node_mass * (placed.ends @ arm.gravity) + arm.link_mass * (middles @ arm.gravity)).sum(axis=1)
    return np.where(passed, np.inf, energy)


def derivatives(arm: BellowsArm, pressures: Array, strains: Array) -> tuple[Array, Array]:
    """Gradients (n, 4 E) and Hessians (n, 4 E, 4 E) of many samples."""
    by_strain, linear, length = _by_strain(arm), _linear(arm), arm.length[:, None, None]
    strain, stiffness, _, left = _law(arm, strains)
    force = stiffness * strain / left - _of_elements(arm, pressures * arm.area)
    slope = stiffness * (2.0 - left) / left**2
    gradient, hessian = weight(arm, strains)
    own = (force[:, :, None] @ (length * by_strain))[:, :, 0] + linear * strains
    blocks = diagonal(hessian, len(arm.length))
    blocks += ((length * by_strain).swapaxes(1, 2) @ (slope[..., None] * by_strain)).swapaxes(0, 1)
    blocks[..., range(4), range(4)] += linear[:, None]
    return gradient + own.reshape(len(strains), -1), hessian


def load_derivatives(arm: BellowsArm) -> Array:
    """Derivative of the gradient by the pressures, (4 E, k): the same at all strains."""
    elements, bellows = len(arm.length), len(arm.area)
    joined = _of_elements(arm, np.arange(bellows))
    found = np.zeros((elements, 4, bellows))
    pushed = -arm.length[:, None, None] * arm.area[joined][..., None] * _by_strain(arm)
    found[np.arange(elements)[:, None], :, joined] = pushed
    return found.reshape(-1, bellows)


def strain_under(force: Array, stiffness: Array, shortest: Array, longest: Array) -> Array:
    """Strain (…) at which bellows pull with `force` (…) N: phi'(e) = force, in closed form."""
    limit = np.where(force < 0.0, shortest, longest)
    # force e² / m² + K e - force = 0
    return 2.0 * force / (stiffness + np.sqrt(stiffness**2 + (2.0 * force / limit) ** 2))
