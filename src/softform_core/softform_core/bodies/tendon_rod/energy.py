"""Numba kernels: the energy of tendons along a rod, and its derivatives over the free strains.

A tendon at the place x(s) of the cross-section runs along the rod by v = x' + kappa x x + (1 + epsilon) d3 per length
of the rod's axis, in the rod's directors, so that its way is

    L(q) = sum_e l_e |v_e|,   v = (x1' - kappa3 x2,  x2' + kappa3 x1,  1 + epsilon + kappa1 x2 - kappa2 x1),

and its motor stretches it by d = L(q) - L(0) + u. It pulls and never pushes: its energy k phi(d) is nought for d <= 0,
k d^2 / 2 less a constant slope for d >= w, and between these a cubic that makes the stiffness continuous.
"""

import numba
import numpy as np

TAKE_UP = 2e-5
"""Stretch w over which a slack tendon takes up its stiffness, m."""


@numba.njit(cache=True)
def _taut(stretch):  # type: ignore[no-untyped-def]
    """phi(d), m², and its first two derivatives."""
    if stretch <= 0.0:
        return 0.0, 0.0, 0.0
    if stretch < TAKE_UP:
        return stretch**3 / (6.0 * TAKE_UP), stretch**2 / (2.0 * TAKE_UP), stretch / TAKE_UP
    past = stretch - 0.5 * TAKE_UP
    return 0.5 * past**2 + TAKE_UP**2 / 24.0, past, 1.0


@numba.njit(cache=True)
def _course(tendons, i, e, q):  # type: ignore[no-untyped-def]
    """Course v (3,) of tendon i in element e of strains q (4,), and its derivative by them (3, 4)."""
    x1, x2 = tendons.place[i, e, 0], tendons.place[i, e, 1]
    by_strains = np.array([[0.0, 0.0, -x2, 0.0], [0.0, 0.0, x1, 0.0], [x2, -x1, 0.0, 1.0]])
    straight = np.array([tendons.slope[i, e, 0], tendons.slope[i, e, 1], 1.0])
    return straight + by_strains @ q, by_strains


@numba.njit(cache=True)
def way(rod, tendons, i, strains):  # type: ignore[no-untyped-def]
    """L(q) of tendon i, m."""
    length = 0.0
    for e in range(strains.shape[0]):
        if tendons.inside[i, e]:
            v, _ = _course(tendons, i, e, strains[e])
            length += rod.length[e] * np.sqrt((v * v).sum())
    return length


@numba.njit(cache=True)
def tendon_energy(rod, tendons, pulls, strains):  # type: ignore[no-untyped-def]
    """Energy of all tendons under pulls (k,) m and strains (E, 4), J."""
    energy = 0.0
    for i in range(pulls.shape[0]):
        stretch = way(rod, tendons, i, strains) - tendons.rest_length[i] + pulls[i]
        energy += tendons.stiffness[i] * _taut(stretch)[0]
    return energy


@numba.njit(cache=True)
def stretches_and_tensions(rod, tendons, pulls, strains):  # type: ignore[no-untyped-def]
    """Stretch d of each tendon, m, below 0 by how much it is slack, and its tension, N: (2, k)."""
    found = np.empty((2, pulls.shape[0]))
    for i in range(pulls.shape[0]):
        found[0, i] = way(rod, tendons, i, strains) - tendons.rest_length[i] + pulls[i]
        found[1, i] = tendons.stiffness[i] * _taut(found[0, i])[1]
    return found


@numba.njit(cache=True)
def add_tendons(rod, tendons, pulls, strains, gradient, hessian):  # type: ignore[no-untyped-def]
    """Add the derivatives of `tendon_energy` to `gradient` (E d,) and `hessian` (E d, E d)."""
    count, free = strains.shape[0], rod.strains
    d = free.shape[0]
    for i in range(pulls.shape[0]):
        stretch = way(rod, tendons, i, strains) - tendons.rest_length[i] + pulls[i]
        _, slope, curvature = _taut(stretch)
        if slope == 0.0:
            continue
        tension, stiffness = tendons.stiffness[i] * slope, tendons.stiffness[i] * curvature
        longer = np.zeros(count * d)
        for e in range(count):
            if not tendons.inside[i, e]:
                continue
            v, by_strains = _course(tendons, i, e, strains[e])
            size = np.sqrt((v * v).sum())
            along = (v / size) @ by_strains
            square = by_strains.T @ by_strains
            for a in range(d):
                longer[e * d + a] = rod.length[e] * along[free[a]]
                for b in range(d):
                    turn = square[free[a], free[b]] - along[free[a]] * along[free[b]]
                    hessian[e * d + a, e * d + b] += tension * rod.length[e] * turn / size
        gradient += tension * longer
        hessian += stiffness * np.outer(longer, longer)


@numba.njit(cache=True, nogil=True)
def pull_derivatives(rod, tendons, pulls, strains):  # type: ignore[no-untyped-def]
    """Derivative of the gradient by the pulls of many samples, (n, E d, k): k phi''(d) dL/dq."""
    samples, count, free = strains.shape[0], strains.shape[1], rod.strains
    d = free.shape[0]
    found = np.zeros((samples, count * d, pulls.shape[1]))
    for n in range(samples):
        for i in range(pulls.shape[1]):
            stretch = way(rod, tendons, i, strains[n]) - tendons.rest_length[i] + pulls[n, i]
            stiffness = tendons.stiffness[i] * _taut(stretch)[2]
            for e in range(count):
                if stiffness == 0.0 or not tendons.inside[i, e]:
                    continue
                v, by_strains = _course(tendons, i, e, strains[n, e])
                along = (v / np.sqrt((v * v).sum())) @ by_strains
                for a in range(d):
                    found[n, e * d + a, i] = stiffness * rod.length[e] * along[free[a]]
    return found
