"""Numba kernels: total potential of a pneumatic rod, its gradient and its Hessian over the free strains.

    Pi(q) = sum_e l_e w(q_e) - sum_i p_i V_i(q) - sum_j m_j g . x_j(q)

w is the hyperelastic energy of the wall's fibres, of stretch 1 + epsilon - kappa_2 x_1 + kappa_1 x_2 each, with the
strain limiter and the torsion; V_i is the volume of chamber i, so that pressure is a bending moment p A x and a force
p A.
"""

import numba
import numpy as np

from softform_core.bodies.rod.gravity import add_gravity
from softform_core.bodies.rod.kinematics import place_rod
from softform_core.simulation.materials import strain_energy

_LEAST_STRETCH = 0.05


@numba.njit(cache=True)
def _elastic_energy(rod, pressures, e, q):  # type: ignore[no-untyped-def]
    """Energy of one element of strains q (4,) without gravity, J per m; infinite if a fibre would be crushed."""
    energy, scale = 0.0, rod.scale[e]
    for f in range(rod.fibre_area.shape[0]):
        stretch = 1.0 + q[3] - q[1] * scale * rod.fibre_place[f, 0] + q[0] * scale * rod.fibre_place[f, 1]
        if stretch < _LEAST_STRETCH:
            return np.inf
        w, _, _ = strain_energy(rod.law, rod.coefficients[e], stretch * stretch + 2.0 / stretch)
        energy += rod.fibre_area[f] * w
    chambers = rod.chamber_area.shape[0] // (rod.section[-1] + 1)
    for c in range(rod.section[e] * chambers, (rod.section[e] + 1) * chambers):
        stretch = 1.0 + q[3] - q[1] * scale * rod.chamber_place[c, 0] + q[0] * scale * rod.chamber_place[c, 1]
        energy -= pressures[c] * rod.chamber_area[c] * stretch
    return scale**2 * energy + 0.5 * (rod.limiter[e] * q[3] ** 2 + rod.torsion[e] * q[2] ** 2)


@numba.njit(cache=True)
def _elastic_terms(rod, pressures, e, q, gradient, hessian):  # type: ignore[no-untyped-def]
    """Gradient (4,) and Hessian (4, 4) of `_elastic_energy`."""
    gradient[:] = 0.0
    hessian[:] = 0.0
    scale, area_scale = rod.scale[e], rod.scale[e] ** 2
    for f in range(rod.fibre_area.shape[0]):
        x1, x2 = scale * rod.fibre_place[f, 0], scale * rod.fibre_place[f, 1]
        stretch = 1.0 + q[3] - q[1] * x1 + q[0] * x2
        _, dw, ddw = strain_energy(rod.law, rod.coefficients[e], stretch * stretch + 2.0 / stretch)
        area = area_scale * rod.fibre_area[f]
        slope = 2.0 * stretch - 2.0 / stretch**2
        stress = area * dw * slope
        stiffness = area * (ddw * slope * slope + dw * (2.0 + 4.0 / stretch**3))
        gradient[0] += stress * x2
        gradient[1] -= stress * x1
        gradient[3] += stress
        hessian[0, 0] += stiffness * x2 * x2
        hessian[0, 1] -= stiffness * x1 * x2
        hessian[0, 3] += stiffness * x2
        hessian[1, 1] += stiffness * x1 * x1
        hessian[1, 3] -= stiffness * x1
        hessian[3, 3] += stiffness
    chambers = rod.chamber_area.shape[0] // (rod.section[-1] + 1)
    for c in range(rod.section[e] * chambers, (rod.section[e] + 1) * chambers):
        x1, x2 = scale * rod.chamber_place[c, 0], scale * rod.chamber_place[c, 1]
        force = pressures[c] * area_scale * rod.chamber_area[c]
        gradient[0] -= force * x2
        gradient[1] += force * x1
        gradient[3] -= force
    gradient[2] += rod.torsion[e] * q[2]
    gradient[3] += rod.limiter[e] * q[3]
    hessian[2, 2] += rod.torsion[e]
    hessian[3, 3] += rod.limiter[e]
    for i in range(4):
        for j in range(i):
            hessian[i, j] = hessian[j, i]


@numba.njit(cache=True)
def elastic_derivatives(rod, pressures, strains, gradient, blocks):  # type: ignore[no-untyped-def]
    """Derivatives of Pi without gravity over the free strains of each element: (E, d) and (E, d, d)."""
    free = rod.strains
    own_gradient, own_hessian = np.empty(4), np.empty((4, 4))
    for e in range(strains.shape[0]):
        _elastic_terms(rod, pressures, e, strains[e], own_gradient, own_hessian)
        for i in range(free.shape[0]):
            gradient[e, i] = rod.length[e] * own_gradient[free[i]]
            for j in range(free.shape[0]):
                blocks[e, i, j] = rod.length[e] * own_hessian[free[i], free[j]]


@numba.njit(cache=True)
def total_energy(rod, pressures, strains):  # type: ignore[no-untyped-def]
    """Pi, J, of strains (E, 4); infinite if a fibre would be crushed."""
    energy = 0.0
    for e in range(strains.shape[0]):
        energy += rod.length[e] * _elastic_energy(rod, pressures, e, strains[e])
    if np.any(rod.gravity != 0.0):
        _, ends, link_ends = place_rod(rod, strains)
        for e in range(strains.shape[0]):
            middle = 0.5 * (ends[e] + link_ends[e])
            energy -= rod.node_mass[e] * np.dot(rod.gravity, ends[e]) + rod.link_mass[e] * np.dot(rod.gravity, middle)
    return energy


@numba.njit(cache=True)
def gradient_and_hessian(rod, pressures, strains):  # type: ignore[no-untyped-def]
    """Derivatives of Pi over the free strains, element by element: (E d,) and (E d, E d)."""
    count, d = strains.shape[0], rod.strains.shape[0]
    own_gradient, blocks = np.empty((count, d)), np.empty((count, d, d))
    elastic_derivatives(rod, pressures, strains, own_gradient, blocks)
    gradient, hessian = own_gradient.ravel(), np.zeros((count * d, count * d))
    for e in range(count):
        hessian[e * d : e * d + d, e * d : e * d + d] = blocks[e]
    if np.any(rod.gravity != 0.0):
        add_gravity(rod, strains, gradient, hessian)
    return gradient, hessian


@numba.njit(cache=True, nogil=True)
def energies(rod, pressures, strains):  # type: ignore[no-untyped-def]
    """Pi (n,) of many samples: pressures (n, k), strains (n, E, 4)."""
    found = np.empty(pressures.shape[0])
    for n in range(found.shape[0]):
        found[n] = total_energy(rod, pressures[n], strains[n])
    return found


@numba.njit(cache=True, nogil=True)
def derivatives(rod, pressures, strains):  # type: ignore[no-untyped-def]
    """Gradients (n, E, d) and Hessians of many samples.

    Under gravity one block (n, 1, E d, E d); without it the elements do not feel each other: (n, E, d, d).
    """
    samples, count, d = strains.shape[0], strains.shape[1], rod.strains.shape[0]
    heavy = np.any(rod.gravity != 0.0)
    groups, width = (1, count * d) if heavy else (count, d)
    gradients, blocks = np.empty((samples, count, d)), np.empty((samples, groups, width, width))
    for n in range(samples):
        if heavy:
            gradient, hessian = gradient_and_hessian(rod, pressures[n], strains[n])
            gradients[n] = gradient.reshape(count, d)
            blocks[n, 0] = hessian
        else:
            elastic_derivatives(rod, pressures[n], strains[n], gradients[n], blocks[n])
    return gradients, blocks


@numba.njit(cache=True, nogil=True)
def load_derivatives(rod):  # type: ignore[no-untyped-def]
    """Derivative of the gradient by the pressures, (E, d, k): the same at all strains."""
    count, free, chambers = rod.length.shape[0], rod.strains, rod.chamber_area.shape[0]
    found = np.zeros((count, free.shape[0], chambers))
    of_section = chambers // (rod.section[-1] + 1)
    for e in range(count):
        scale = rod.scale[e]
        for c in range(rod.section[e] * of_section, (rod.section[e] + 1) * of_section):
            force = rod.length[e] * scale**2 * rod.chamber_area[c]
            arms = (scale * rod.chamber_place[c, 1], -scale * rod.chamber_place[c, 0], 0.0, 1.0)
            for i in range(free.shape[0]):
                found[e, i, c] = -force * arms[free[i]]
    return found
