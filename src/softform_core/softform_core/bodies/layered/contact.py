"""Frictionless contact of a sheet with what lies under it.

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

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.geometry.rigid import hat

_OF_NODES = np.kron(np.eye(3), np.kron([[1.0, -1.0]], np.eye(3)))
"""(9, 18): d, a and b, each a node less the next one."""


def contact_gaps(positions: Array, contacts: NDArray[np.int32]) -> Array:
    """Gap (C,) m of each contact.

    Args:
        positions: (V, 3) m.
        contacts: (C, 6) upper vertex, lower vertex, and the lower one's neighbours: after and before it along each of
            two lines, whose cross product points outwards.
    """
    d, a, b = _differences(positions, contacts)
    normal = np.cross(a, b)
    return np.asarray((normal * d).sum(axis=1) / np.linalg.norm(normal, axis=1))


def add_contacts(
    positions: Array,
    contacts: NDArray[np.int32],
    areas: Array,
    stiffness: float,
    highest: float,
    slots: NDArray[np.int32],
    gradient: Array,
    hessian: Array,
) -> None:
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
    pressing = np.flatnonzero(contact_gaps(positions, contacts) < 0.0)
    contacts, modulus = contacts[pressing], stiffness * areas[pressing]
    d, a, b = _differences(positions, contacts)
    normal = np.cross(a, b)
    size = np.linalg.norm(normal, axis=1)[:, None]
    normal /= size
    gap = (normal * d).sum(axis=1)
    aside = (d - gap[:, None] * normal) / size
    first = np.concatenate([normal, np.cross(b, aside), np.cross(aside, a)], axis=1)  # (C, 9) by d, a, b
    force = modulus * gap
    np.add.at(gradient, contacts, ((force[:, None] * first) @ _OF_NODES).reshape(-1, 6, 3))
    if not hessian.size:
        return
    share = np.where(-stiffness * gap < highest, force, 0.0)
    second = modulus[:, None, None] * first[:, :, None] * first[:, None]
    second += share[:, None, None] * _second_derivatives(normal, size, gap, aside, a, b)
    slots = slots[pressing]
    free = slots >= 0
    hessian += np.bincount(slots[free], (_OF_NODES.T @ second @ _OF_NODES)[free], minlength=hessian.size)


def _differences(positions: Array, contacts: NDArray[np.int32]) -> list[Array]:
    """d, a, b (C, 3)."""
    return [positions[contacts[:, i]] - positions[contacts[:, i + 1]] for i in (0, 2, 4)]


def _second_derivatives(normal: Array, size: Array, gap: Array, aside: Array, a: Array, b: Array) -> Array:
    """Of the gap by the coordinates of d, a and b, (C, 9, 9)."""
    size, gap = size[:, :, None], gap[:, None, None]
    across = (np.eye(3) - normal[:, :, None] * normal[:, None]) / size
    turned = normal[:, :, None] * aside[:, None]
    turned = -(gap * across + turned + turned.swapaxes(1, 2)) / size
    by_a, by_b = -hat(b), hat(a)  # of N
    upper = np.zeros((len(a), 9, 9))  # without half of the blocks on the diagonal
    upper[:, :3, 3:6], upper[:, :3, 6:] = across @ by_a, across @ by_b
    upper[:, 3:6, 3:6] = 0.5 * by_a.swapaxes(1, 2) @ turned @ by_a
    upper[:, 3:6, 6:] = by_a.swapaxes(1, 2) @ turned @ by_b - hat(aside)
    upper[:, 6:, 6:] = 0.5 * by_b.swapaxes(1, 2) @ turned @ by_b
    return upper + upper.swapaxes(1, 2)
