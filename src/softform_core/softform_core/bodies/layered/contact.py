"""Numba kernels: frictionless contact of a sheet with what lies under it.

A vertex x of the upper sheet meets the tangent plane of the lower surface at the vertex y that lay under it at rest:

    gap g = n . (x - y),   n = N / |N|,   N = a x b

with a and b the differences of the lower surface's neighbouring vertices along both mesh lines, so that the plane turns
and moves with that surface. Sheets may slide along it freely; sliding by s misses the surface by about s^2 / (2 R),
R its radius of curvature. Where g < 0 the sheets press on each other with K A g, A the vertex's share of the area:

    energy = 1/2 K A min(g, 0)^2

Derivatives by d = x - y, a and b, with w = (d - g n) / |N| and P = (1 - n n^T) / |N|:

    g_d = n,   g_a = b x w,   g_b = w x a
    g_dN = P,   g_NN = -(g P + n w^T + w n^T) / |N|,   and a . (b x w) gives g_ab one more term, -[w]x

A vertex that a Newton step took far below its plane is pushed with a force that no equilibrium has; times the curvature
of g it would make the Hessian indefinite, and the next step useless. There the curvature is left out.
"""

import numba
import numpy as np


@numba.njit(cache=True)
def contact_gaps(positions, contacts):  # type: ignore[no-untyped-def]
    """Gap (C,) m of each contact.

    Args:
        positions: (V, 3) m.
        contacts: (C, 6) upper vertex, lower vertex, and the lower one's neighbours: after and before it along each of
            two lines, whose cross product points outwards.
    """
    gaps = np.empty(contacts.shape[0])
    for c in range(contacts.shape[0]):
        d = positions[contacts[c, 0]] - positions[contacts[c, 1]]
        a = positions[contacts[c, 2]] - positions[contacts[c, 3]]
        b = positions[contacts[c, 4]] - positions[contacts[c, 5]]
        normal = _cross(a, b)
        gaps[c] = np.dot(normal, d) / np.sqrt(np.dot(normal, normal))
    return gaps


@numba.njit(cache=True)
def add_contacts(positions, contacts, areas, stiffness, highest, slots, gradient, hessian):  # type: ignore[no-untyped-def]
    """Add the derivatives of the contacts' energy to `gradient` (V, 3) and `hessian`; an empty one is left alone.

    Args:
        positions: (V, 3) m.
        contacts: As `contact_gaps`.
        areas: (C,) A, m^2.
        stiffness: K, Pa/m.
        highest: Pressure above which g'' is left out of the Hessian, Pa.
        slots: (C, 18, 18) place of each entry in `hessian`, -1 for a fixed one.
        gradient: (V, 3) N.
        hessian: Values of the sparse Hessian, N/m.
    """
    first = np.zeros((3, 3))  # derivatives of g by d, a, b
    second = np.zeros((3, 3, 3, 3))  # by two of them
    for c in range(contacts.shape[0]):
        d = positions[contacts[c, 0]] - positions[contacts[c, 1]]
        a = positions[contacts[c, 2]] - positions[contacts[c, 3]]
        b = positions[contacts[c, 4]] - positions[contacts[c, 5]]
        normal = _cross(a, b)
        size = np.sqrt(np.dot(normal, normal))
        normal /= size
        gap = np.dot(normal, d)
        if not gap < 0.0:
            continue
        aside = (d - gap * normal) / size
        first[0], first[1], first[2] = normal, _cross(b, aside), _cross(aside, a)
        modulus = stiffness * areas[c]
        force = modulus * gap
        for node in range(6):
            sign = 1.0 if node % 2 == 0 else -1.0
            for i in range(3):
                gradient[contacts[c, node], i] += sign * force * first[node // 2, i]
        if not hessian.size:
            continue
        share = force if -stiffness * gap < highest else 0.0
        _second_derivatives(normal, size, gap, aside, a, b, second)
        for node in range(6):
            for other in range(6):
                sign = 1.0 if (node + other) % 2 == 0 else -1.0
                for i in range(3):
                    for j in range(3):
                        slot = slots[c, 3 * node + i, 3 * other + j]
                        if slot >= 0:
                            k, m = node // 2, other // 2
                            value = modulus * first[k, i] * first[m, j] + share * second[k, m, i, j]
                            hessian[slot] += sign * value


@numba.njit(cache=True)
def _second_derivatives(normal, size, gap, aside, a, b, second):  # type: ignore[no-untyped-def]
    """Fill `second` (3, 3, 3, 3): the derivative of g by the i-th coordinate of one and the j-th of another."""
    across = (np.eye(3) - np.outer(normal, normal)) / size
    turned = -(gap * across + np.outer(normal, aside) + np.outer(aside, normal)) / size
    by_a, by_b = -_skew(b), _skew(a)  # of N
    second[0, 0] = 0.0
    second[0, 1], second[0, 2] = across @ by_a, across @ by_b
    second[1, 1], second[2, 2] = by_a.T @ turned @ by_a, by_b.T @ turned @ by_b
    second[1, 2] = by_a.T @ turned @ by_b - _skew(aside)
    second[1, 0], second[2, 0], second[2, 1] = second[0, 1].T, second[0, 2].T, second[1, 2].T


@numba.njit(cache=True)
def _cross(a, b):  # type: ignore[no-untyped-def]
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


@numba.njit(cache=True)
def _skew(a):  # type: ignore[no-untyped-def]
    """Matrix of the cross product with a."""
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])
