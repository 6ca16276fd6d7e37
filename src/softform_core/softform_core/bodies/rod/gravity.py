"""Numba kernels: the weight of a rod, its gradient and its exact Hessian over the free strains."""

import numba
import numpy as np

from softform_core.bodies.rod.kinematics import cross, mean_tangent_derivative, place_rod, rotation_and_mean

_TERMS = 16
_TANGENT = np.array([0.0, 0.0, 1.0])


@numba.njit(cache=True)
def add_gravity(rod, strains, gradient, hessian):  # type: ignore[no-untyped-def]
    """Add the derivatives of - sum_j m_j g . x_j(q) to `gradient` (E d,) and `hessian` (E d, E d)."""
    count, free = strains.shape[0], rod.strains
    d = free.shape[0]
    directors, ends, link_ends = place_rod(rod, strains)
    beyond_mass, beyond_moment = 0.0, np.zeros(3)  # of all that hangs on an element's end; moment: sum of m x
    moved, pulls = np.zeros((count, d, 3)), np.zeros((count, d, 3))
    for e in range(count - 1, -1, -1):
        beyond_mass += rod.node_mass[e] + rod.link_mass[e]
        beyond_moment += rod.node_mass[e] * ends[e] + rod.link_mass[e] * 0.5 * (ends[e] + link_ends[e])
        arm = beyond_moment - beyond_mass * ends[e]
        length, phi = rod.length[e], strains[e, :3] * rod.length[e]
        _, mean = rotation_and_mean(phi)
        bent = mean_tangent_derivative(phi)
        for i in range(d):
            if free[i] == 3:
                moved[e, i] = beyond_mass * length * (directors[e] @ mean[:, 2].copy())
                continue
            turn = length * (directors[e] @ mean[:, free[i]].copy())
            pulls[e, i] = cross(rod.gravity, turn)
            shift = length**2 * (1.0 + strains[e, 3]) * (directors[e] @ bent[:, free[i]].copy())
            moved[e, i] = beyond_mass * shift + cross(turn, arm)
        for i in range(d):
            gradient[e * d + i] -= np.dot(rod.gravity, moved[e, i])
        felt, hung = directors[e].T.copy() @ rod.gravity, directors[e + 1].T.copy() @ arm
        own = _own_hessian(felt, hung, beyond_mass, length, strains[e, 3], phi, bent)
        for i in range(d):
            for j in range(d):
                hessian[e * d + i, e * d + j] -= own[free[i], free[j]]
    for f in range(count):
        for j in range(d):
            u, v, w = moved[f, j]
            for e in range(f):
                for i in range(d):
                    value = pulls[e, i, 0] * u + pulls[e, i, 1] * v + pulls[e, i, 2] * w
                    hessian[e * d + i, f * d + j] -= value
                    hessian[f * d + j, e * d + i] -= value


@numba.njit(cache=True)
def _own_hessian(g, hung, mass, length, stretch, phi, bent):  # type: ignore[no-untyped-def]
    """Second derivatives (4, 4) over one element's strains of m l (1 + epsilon) g . V(phi) d3 + g . exp(phi) w.

    g is gravity in the directors before the element, w = `hung` the sum of m x beyond it in those behind it, `mass`
    their mass m, and `bent` the derivative of V(phi) d3.
    """
    tau = (phi * phi).sum()
    own = np.zeros((4, 4))
    own[:3, :3] = length**2 * (
        mass * length * (1.0 + stretch) * turned_hessian(series(tau, 2), series(tau, 3), g, np.array([0.0, 0, 1]), phi)
        + turned_hessian(series(tau, 1), series(tau, 2), g, hung, phi)
    )
    for i in range(3):
        own[i, 3] = own[3, i] = mass * length**2 * np.dot(g, bent[:, i].copy())
    return own


@numba.njit(cache=True)
def series(tau, first):  # type: ignore[no-untyped-def]
    """sum_i (-tau)^i / (2 i + first)! and its first two derivatives.

    With tau = t² and first = 1, 2, 3 these are sin(t)/t, (1 - cos t)/t² and (t - sin t)/t³.
    """
    value, slope, curvature = 0.0, 0.0, 0.0
    coefficient = 1.0
    for k in range(2, first + 1):
        coefficient /= k
    power, lower, lowest = 1.0, 0.0, 0.0  # tau^i, tau^(i-1), tau^(i-2)
    for i in range(_TERMS):
        value += coefficient * power
        slope += coefficient * i * lower
        curvature += coefficient * i * (i - 1) * lowest
        coefficient /= -(2.0 * i + first + 1.0) * (2.0 * i + first + 2.0)
        power, lower, lowest = power * tau, power, lower
    return value, slope, curvature


@numba.njit(cache=True)
def turned_hessian(q, r, u, w, phi):  # type: ignore[no-untyped-def]
    """Second derivatives (3, 3) over phi of u . w (1 - r tau) + q phi . (w x u) + r (u . phi)(w . phi).

    q and r are functions of tau = |phi|², each given by its value and first two derivatives.
    """
    c = cross(w, u)
    up, wp, cp, uw = np.dot(u, phi), np.dot(w, phi), np.dot(c, phi), np.dot(u, w)
    tau = np.dot(phi, phi)
    first = uw * (-r[0] - r[1] * tau) + q[1] * cp + r[1] * up * wp
    second = uw * (-2.0 * r[1] - r[2] * tau) + q[2] * cp + r[2] * up * wp
    found = np.empty((3, 3))
    for i in range(3):
        for j in range(3):
            found[i, j] = (
                4.0 * second * phi[i] * phi[j]
                + 2.0 * q[1] * (phi[i] * c[j] + phi[j] * c[i])
                + 2.0 * r[1] * (phi[i] * (u[j] * wp + w[j] * up) + phi[j] * (u[i] * wp + w[i] * up))
                + r[0] * (u[i] * w[j] + u[j] * w[i])
            )
        found[i, i] += 2.0 * first
    return found
