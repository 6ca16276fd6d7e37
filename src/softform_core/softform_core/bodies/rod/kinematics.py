"""Where a rod with given strains is: products of exponentials, exact for piecewise constant strains (numba).

Element e turns the directors by R' = R exp(phi), phi = kappa l, and moves its end by l (1 + epsilon) R V(phi) d3, where
V(phi) is the mean of exp(s phi) over the element (the left Jacobian of SO(3)).
"""

import numba
import numpy as np

_SMALL = 1e-4  # rad; below it the series of the coefficients are exact to rounding


@numba.njit(cache=True)
def coefficients(angle):  # type: ignore[no-untyped-def]
    """sin(t)/t, (1 - cos t)/t², (t - sin t)/t³, and of the last two the derivatives over t."""
    t2 = angle * angle
    if angle < _SMALL:
        return 1.0 - t2 / 6.0, 0.5 - t2 / 24.0, 1.0 / 6.0 - t2 / 120.0, -1.0 / 12.0, -1.0 / 60.0
    sine, cosine = np.sin(angle), np.cos(angle)
    a, b = (1.0 - cosine) / t2, (angle - sine) / (t2 * angle)
    if angle < 0.05:  # the closed forms of the derivatives cancel
        return sine / angle, a, b, -1.0 / 12.0 + t2 / 180.0, -1.0 / 60.0 + t2 / 1260.0
    return sine / angle, a, b, (sine / angle - 2.0 * a) / t2, (a - 3.0 * b) / t2


@numba.njit(cache=True)
def cross(u, v):  # type: ignore[no-untyped-def]
    """Cross product of u and v, (3,)."""
    return np.array([u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]])


@numba.njit(cache=True)
def rotation_and_mean(phi):  # type: ignore[no-untyped-def]
    """exp(phi) and its mean V(phi) over the element, (3, 3) each."""
    s, a, b, _, _ = coefficients(np.sqrt((phi * phi).sum()))
    hat = np.array([[0.0, -phi[2], phi[1]], [phi[2], 0.0, -phi[0]], [-phi[1], phi[0], 0.0]])
    square = hat @ hat
    return np.eye(3) + s * hat + a * square, np.eye(3) + a * hat + b * square


@numba.njit(cache=True)
def mean_tangent_derivative(phi):  # type: ignore[no-untyped-def]
    """Derivative of V(phi) d3 over phi, (3, 3)."""
    _, a, b, da, db = coefficients(np.sqrt((phi * phi).sum()))
    once = np.array([phi[1], -phi[0], 0.0])  # phi x d3
    twice = cross(phi, once)
    derivative = np.empty((3, 3))
    for k in range(3):
        e = np.zeros(3)
        e[k] = 1.0
        e_once = np.array([e[1], -e[0], 0.0])
        change = da * phi[k] * once + a * e_once + db * phi[k] * twice + b * (cross(e, once) + cross(phi, e_once))
        for i in range(3):
            derivative[i, k] = change[i]
    return derivative


@numba.njit(cache=True)
def place_rod(rod, strains):  # type: ignore[no-untyped-def]
    """Directors before each element (E + 1, 3, 3) and places (m): ends of elements (E, 3), ends of links (E, 3)."""
    count = rod.length.shape[0]
    directors, ends, link_ends = np.empty((count + 1, 3, 3)), np.empty((count, 3)), np.empty((count, 3))
    directors[0] = rod.base
    place = np.zeros(3)
    for e in range(count):
        turn, mean = rotation_and_mean(strains[e, :3] * rod.length[e])
        place = place + rod.length[e] * (1.0 + strains[e, 3]) * (directors[e] @ mean[:, 2].copy())
        directors[e + 1] = directors[e] @ turn
        ends[e] = place
        place = place + rod.link_length[e] * directors[e + 1][:, 2]
        link_ends[e] = place
    return directors, ends, link_ends


@numba.njit(cache=True, nogil=True)
def tips_and_derivatives(rod, strains):  # type: ignore[no-untyped-def]
    """End of the last link of many rods (n, 3) m, and its derivative by the free strains (n, 3, E, d)."""
    samples, count, free = strains.shape[0], strains.shape[1], rod.strains
    tips, found = np.empty((samples, 3)), np.empty((samples, 3, count, free.shape[0]))
    for n in range(samples):
        directors, ends, link_ends = place_rod(rod, strains[n])
        tips[n] = link_ends[-1]
        for e in range(count):
            length, phi = rod.length[e], strains[n, e, :3] * rod.length[e]
            _, mean = rotation_and_mean(phi)
            bent = mean_tangent_derivative(phi)
            for i in range(free.shape[0]):
                if free[i] == 3:
                    found[n, :, e, i] = length * (directors[e] @ mean[:, 2].copy())
                    continue
                turn = length * (directors[e] @ mean[:, free[i]].copy())
                shift = length**2 * (1.0 + strains[n, e, 3]) * (directors[e] @ bent[:, free[i]].copy())
                found[n, :, e, i] = shift + cross(turn, tips[n] - ends[e])
    return tips, found
