"""Numba kernels: total potential of an arm of bellows, its gradient and its Hessian over the strains.

    Pi(q) = sum_e l_e (sum_j phi_j(e_j) + B (kappa_1² + kappa_2²) / 2 + C kappa_3² / 2) - sum_j p_j A_j L_j(q) - weight

e_j = epsilon - kappa_2 x_1 + kappa_1 x_2 is the strain of bellow j at its axis and L_j its length: the pressure of a
bellow works on its effective area times the change of its length. The axial law is

    phi(e) = - K m² / 2 ln(1 - (e / m)²),   phi'(e) = K e / (1 - (e / m)²),

a soft spring at the natural length that stiffens without bound as the folds touch (m below 0) or lie flat (m above 0);
both branches agree at 0 up to the third derivative.
"""

import numba
import numpy as np

from softform_core.bodies.rod.gravity import add_gravity
from softform_core.bodies.rod.kinematics import place_rod


@numba.njit(cache=True)
def _law(stiffness, shortest, longest, e):  # type: ignore[no-untyped-def]
    """phi(e), J/m, and its first two derivatives; infinite where the folds would pass through each other."""
    limit = shortest if e < 0.0 else longest
    share = (e / limit) ** 2
    if share >= 1.0:
        return np.inf, 0.0, 0.0
    left = 1.0 - share
    return (
        -0.5 * stiffness * limit**2 * np.log(left),
        stiffness * e / left,
        stiffness * (1.0 + share) / left**2,
    )


@numba.njit(cache=True)
def _strain(arm, j, q):  # type: ignore[no-untyped-def]
    """Strain of bellow j under the strains q (4,) of an element."""
    return q[3] - q[1] * arm.place[j, 0] + q[0] * arm.place[j, 1]


@numba.njit(cache=True)
def _energy(arm, pressures, strains):  # type: ignore[no-untyped-def]
    energy, count = 0.0, arm.area.shape[0] // (arm.section[-1] + 1)
    for e in range(strains.shape[0]):
        q, own = strains[e], 0.0
        for j in range(arm.section[e] * count, (arm.section[e] + 1) * count):
            strain = _strain(arm, j, q)
            own += _law(arm.stiffness[j], arm.shortest[j], arm.longest[j], strain)[0]
            own -= pressures[j] * arm.area[j] * strain
        own += 0.5 * (arm.bending[e] * (q[0] ** 2 + q[1] ** 2) + arm.torsion[e] * q[2] ** 2)
        energy += arm.length[e] * own
    if not np.isfinite(energy):
        return np.inf
    _, ends, link_ends = place_rod(arm, strains)
    for e in range(strains.shape[0]):
        middle = 0.5 * (ends[e] + link_ends[e])
        energy -= arm.node_mass[e] * np.dot(arm.gravity, ends[e]) + arm.link_mass[e] * np.dot(arm.gravity, middle)
    return energy


@numba.njit(cache=True)
def _add_elastic(arm, pressures, strains, gradient, hessian):  # type: ignore[no-untyped-def]
    count, by_strain = arm.area.shape[0] // (arm.section[-1] + 1), np.zeros(4)
    for e in range(strains.shape[0]):
        q, length, at = strains[e], arm.length[e], 4 * e
        for j in range(arm.section[e] * count, (arm.section[e] + 1) * count):
            _, force, slope = _law(arm.stiffness[j], arm.shortest[j], arm.longest[j], _strain(arm, j, q))
            force -= pressures[j] * arm.area[j]
            by_strain[0], by_strain[1], by_strain[3] = arm.place[j, 1], -arm.place[j, 0], 1.0
            for a in range(4):
                gradient[at + a] += length * force * by_strain[a]
                for b in range(4):
                    hessian[at + a, at + b] += length * slope * by_strain[a] * by_strain[b]
        for a in range(3):
            stiffness = length * (arm.torsion[e] if a == 2 else arm.bending[e])
            gradient[at + a] += stiffness * q[a]
            hessian[at + a, at + a] += stiffness


@numba.njit(cache=True, nogil=True)
def energies(arm, pressures, strains):  # type: ignore[no-untyped-def]
    """Pi (n,) J of many samples: pressures (n, k), strains (n, E, 4); infinite where folds would pass each other."""
    found = np.empty(pressures.shape[0])
    for n in range(found.shape[0]):
        found[n] = _energy(arm, pressures[n], strains[n])
    return found


@numba.njit(cache=True, nogil=True)
def derivatives(arm, pressures, strains):  # type: ignore[no-untyped-def]
    """Gradients (n, 4 E) and Hessians (n, 4 E, 4 E) of many samples."""
    samples, width = strains.shape[0], 4 * strains.shape[1]
    gradients, hessians = np.zeros((samples, width)), np.zeros((samples, width, width))
    for n in range(samples):
        _add_elastic(arm, pressures[n], strains[n], gradients[n], hessians[n])
        add_gravity(arm, strains[n], gradients[n], hessians[n])
    return gradients, hessians


@numba.njit(cache=True, nogil=True)
def load_derivatives(arm):  # type: ignore[no-untyped-def]
    """Derivative of the gradient by the pressures, (4 E, k): the same at all strains."""
    elements, bellows = arm.length.shape[0], arm.area.shape[0]
    found, count = np.zeros((4 * elements, bellows)), bellows // (arm.section[-1] + 1)
    for e in range(elements):
        for j in range(arm.section[e] * count, (arm.section[e] + 1) * count):
            force = arm.length[e] * arm.area[j]
            found[4 * e, j] = -force * arm.place[j, 1]
            found[4 * e + 1, j] = force * arm.place[j, 0]
            found[4 * e + 3, j] = -force
    return found


def strain_under(force, stiffness, shortest, longest):  # type: ignore[no-untyped-def]
    """Strain (…) at which bellows pull with `force` (…) N: phi'(e) = force, in closed form."""
    limit = np.where(force < 0.0, shortest, longest)
    # force e² / m² + K e - force = 0
    return 2.0 * force / (stiffness + np.sqrt(stiffness**2 + (2.0 * force / limit) ** 2))
