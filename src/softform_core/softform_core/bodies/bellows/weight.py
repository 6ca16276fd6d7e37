"""The weight of what hangs: gradient and exact Hessian of - sum_j m_j g . x_j of many samples at once.

Each element or joint moves all that hangs on it as one rigid body: Hessian blocks of different elements are products
of the turns of one and the moved mass of the other.
"""

from typing import Any

import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.bellows.placement import place_arm
from softform_core.bodies.bellows.rotations import TANGENT, mean_tangent_derivative, turned_hessian


def from_the_end(values: Array) -> Array:
    """Sums (n, E, …) of all that comes at an element or behind it."""
    return np.asarray(np.cumsum(values[:, ::-1], axis=1)[:, ::-1])


def diagonal(hessian: Array, count: int) -> Array:
    """View (E, n, d, d) on the diagonal blocks of Hessians (n, E d, E d)."""
    blocks = hessian.reshape(len(hessian), count, hessian.shape[1] // count, count, -1)
    view: Array = np.einsum("neiej->enij", blocks)
    return view


def weight_terms(gravity: Array, moved: Array, pulls: Array, own: Array) -> tuple[Array, Array]:
    """Gradient (n, E d) and Hessian (n, E d, E d) of the weight.

    Args:
        gravity: (3,) m/s².
        moved: (n, E, d, 3) moved mass, kg m, of all beyond an element for a unit of each of its d unknowns.
        pulls: (n, E, d, 3) gravity's cross product with the turn of all beyond.
        own: (n, E, d, d) second derivatives over an element's own unknowns of the negative potential.
    """
    samples, count, d = moved.shape[:3]
    pairs = pulls.reshape(samples, -1, 3) @ moved.reshape(samples, -1, 3).swapaxes(1, 2)
    pairs *= np.repeat(np.repeat(np.triu(np.ones((count, count)), 1), d, axis=0), d, axis=1)
    hessian = -pairs - pairs.swapaxes(1, 2)
    diagonal(hessian, count)[:] -= own.swapaxes(0, 1)
    return -(moved @ gravity).reshape(samples, -1), hessian


def weight(rod: Any, strains: Array) -> tuple[Array, Array]:
    """Gradient (n, E d) and Hessian (n, E d, E d) of the weight of a `BellowsArm` or `Rod` under strains (n, E, 4)."""
    placed = place_arm(rod, strains)
    of, phi, length = placed.series, placed.angles, rod.length[:, None]
    before, behind = placed.directors[:, :-1], placed.directors[:, 1:]
    turned = before @ placed.mean
    mass = np.cumsum((rod.node_mass + rod.link_mass)[::-1])[::-1, None]
    middle = 0.5 * (placed.ends + placed.link_ends)
    moment = from_the_end(rod.node_mass[:, None] * placed.ends + rod.link_mass[:, None] * middle)
    arm = moment - mass * placed.ends
    bent = mean_tangent_derivative(phi, of)
    stretched = length * (1.0 + strains[..., 3:])
    moved, pulls = np.zeros((2, *strains.shape, 3))
    turns = length[..., None] * turned.swapaxes(-1, -2)  # (n, E, 3, 3), each row one turn
    moved[:, :, :3] = (mass * length * stretched)[..., None] * (before @ bent).swapaxes(-1, -2)
    moved[:, :, :3] += np.cross(turns, arm[:, :, None])
    moved[:, :, 3] = mass * length * turned[..., 2]
    pulls[:, :, :3] = np.cross(rod.gravity, turns)
    felt, hung = rod.gravity @ before, (arm[:, :, None] @ behind)[:, :, 0]
    own = np.zeros((*strains.shape, 4))
    own[..., :3, :3] = (length**2)[..., None] * (
        (mass * stretched)[..., None] * turned_hessian(of[1], of[2], felt, np.broadcast_to(TANGENT, felt.shape), phi)
        + turned_hessian(of[0], of[1], felt, hung, phi)
    )
    own[..., :3, 3] = own[..., 3, :3] = mass * length**2 * (felt[:, :, None] @ bent)[:, :, 0]
    free = rod.strains
    return weight_terms(rod.gravity, moved[:, :, free], pulls[:, :, free], own[:, :, free][..., free])
