"""Where the elements of a slender body are, how they move, and the weight of what hangs on them.

Each element has piecewise constant strains: bends (phi, epsilon), which are its angles phi = kappa l and its stretch
epsilon. It turns the directors by R' = R exp(phi) and moves its end by l (1 + epsilon) R V(phi) d3, exactly.

The weight has energy, gradient and exact Hessian of - sum_j m_j g . x_j of many samples at once. Each element or joint
moves all that hangs on it as one rigid body: Hessian blocks of different elements are products of the turns of one and
the moved mass of the other.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.rotations import (
    TANGENT,
    Turns,
    mean_tangent_derivative,
    one_after_another,
    turned_hessian,
    turns_by,
)
from softform_core.geometry.rigid import hat


@dataclass(frozen=True, eq=False)
class Elements:
    """E elements of a slender body, some with a rigid link behind them; SI units.

    Attributes:
        length: (E,) of each element.
        section: (E,) section of each element.
        node_mass: (E,) mass at the end of each element, kg.
        link_length: (E,) of the rigid link behind each element; 0 where there is none.
        link_mass: (E,) at the middle of that link.
        base: (3, 3) directors at the base, as columns, in the robot's frame.
        gravity: (3,) m/s².
    """

    length: Array
    section: NDArray[np.int64]
    node_mass: Array
    link_length: Array
    link_mass: Array
    base: Array
    gravity: Array


def in_sections(sections: int, mass: Array, link_length: float, link_mass: float) -> dict[str, Any]:
    """Sections, masses and links of elements of mass (E,) kg in equal sections, each with a link behind it.

    Half of an element's mass is lumped at its beginning.
    """
    count = len(mass) // sections
    last, ahead = np.tile(np.arange(count) == count - 1, sections), np.append(0.5 * mass[1:], 0.0)
    return {
        "section": np.repeat(np.arange(sections), count),
        "node_mass": 0.5 * mass + np.where(last, 0.0, ahead),
        "link_length": np.where(last, link_length, 0.0),
        "link_mass": np.where(last, link_mass + ahead, 0.0),
    }


class Placed(NamedTuple):
    """n samples of E elements.

    Attributes:
        bends: (n, E, 4).
        turns: By the angles (n, E).
        directors: (n, E + 1, 3, 3) before each element and behind the last one, as columns.
        turned: (n, E, 3, 3), R V(phi): how an element's end turns with its angles; the last column leads along it.
    """

    bends: Array
    turns: Turns
    directors: Array
    turned: Array


def place(elements: Elements, bends: Array) -> Placed:
    """Place elements with bends (n, E, 4)."""
    turns = turns_by(bends[..., :3])
    directors = one_after_another(elements.base, turns.turn)
    return Placed(bends, turns, directors, directors[:, :-1] @ turns.mean)


def ends(elements: Elements, placed: Placed) -> tuple[Array, Array]:
    """Places of the ends of elements (n, E, 3) m, and of those of the links behind them."""
    link = elements.link_length[:, None] * placed.directors[:, 1:, :, 2]
    along = elements.length[:, None] * (1.0 + placed.bends[..., 3:]) * placed.turned[..., 2]
    link_ends = np.cumsum(along + link, axis=1)
    return link_ends - link, link_ends


def twists(length: Array, before: Array, turns: Turns, stretch: Array) -> Array:
    """Shift and turn (n, E, 6, 4) of the ends of elements by their own bends.

    Args:
        length: (E,) m.
        before: (n, E, 3, 3) directors before the elements.
        turns: Turns of the elements (n, E).
        stretch: (n, E), epsilon.
    """
    found = np.zeros((*stretch.shape, 6, 4))
    found[..., 3:, :3] = before @ turns.mean
    found[..., :3, 3] = length[:, None] * found[..., 3:, 2]
    found[..., :3, :3] = (length * (1.0 + stretch))[..., None, None] * (before @ mean_tangent_derivative(turns))
    return found


def by_strains(place: Array) -> Array:
    """Derivative (…, 4) of the stretch at places (…, 2) of the cross-section by the strains of the element."""
    x, y = place[..., 0], place[..., 1]
    return np.stack([y, -x, np.zeros_like(x), np.ones_like(x)], axis=-1)


class Weight:
    """The weight of elements over those of their bends that are free.

    Args:
        elements: The elements.
        free: Which of the four bends are free, (d,); all by default.

    Attributes:
        moment: (E, 1) kg m, of all that an element carries at its end.
        link_moment: (E, 1) of all that the link behind it carries.
    """

    def __init__(self, elements: Elements, free: NDArray[np.int64] | None = None) -> None:
        self._gravity = elements.gravity
        self._free = slice(None) if free is None or len(free) == 4 else free  # a slice copies nothing
        beyond = np.cumsum((elements.node_mass + elements.link_mass)[::-1])[::-1]
        self.moment = (elements.length * beyond)[:, None]
        linked = elements.link_length * (beyond - elements.node_mass - 0.5 * elements.link_mass)
        self.link_moment = linked[:, None]
        self._behind = np.triu(np.ones((len(beyond), len(beyond))), 1)

    def energies(self, placed: Placed) -> Array:
        """Energy (n,), J."""
        carried, linked = self._moments(placed)
        return -((carried + linked).sum(1) @ self._gravity)

    def _moments(self, placed: Placed) -> tuple[Array, Array]:
        """Moments (n, E, 3), kg m, of what elements and links carry at their ends about their beginnings."""
        carried = self.moment * (1.0 + placed.bends[..., 3:]) * placed.turned[..., 2]
        return carried, self.link_moment * placed.directors[:, 1:, :, 2]

    def derivatives(self, placed: Placed, blocks: Array) -> tuple[Array, Array]:
        """Gradient (n, E d) J and Hessian (n, E d, E d) J, to which `blocks` (n, E, d, d) of the elements are added."""
        turns, before, behind = placed.turns, placed.directors[:, :-1], placed.directors[:, 1:]
        carried, linked = self._moments(placed)
        arm = self._behind @ (carried + linked) + linked  # of all beyond about the element's end
        bent = mean_tangent_derivative(turns)
        stretched = self.moment * (1.0 + placed.bends[..., 3:])
        turning = np.zeros((*placed.bends.shape, 3))
        turning[:, :, :3] = placed.turned.swapaxes(-1, -2)  # each row one turn
        moved = turning @ hat(arm)
        moved[:, :, :3] += stretched[..., None] * (bent.swapaxes(-1, -2) @ before.swapaxes(-1, -2))
        moved[:, :, 3] = self.moment * placed.turned[..., 2]
        local_gravity = self._gravity @ before
        hung = np.stack([(arm[:, :, None] @ behind)[:, :, 0], stretched * TANGENT])
        own = np.zeros((*placed.bends.shape, 4))
        own[..., :3, :3] = turned_hessian(turns.series, local_gravity, hung, turns.phi)
        own[..., :3, 3] = own[..., 3, :3] = self.moment * (local_gravity[:, :, None] @ bent)[:, :, 0]
        free = self._free
        blocks = blocks - own[:, :, free][..., free]
        return weight_terms(self._gravity, moved[:, :, free], turning[:, :, free], blocks)


def weight_terms(gravity: Array, moved: Array, turning: Array, blocks: Array) -> tuple[Array, Array]:
    """Gradient (n, E d) and Hessian (n, E d, E d) of the weight.

    Args:
        gravity: (3,) m/s².
        moved: (n, E, d, 3) moved mass, kg m, of all beyond an element for a unit of each of its d unknowns.
        turning: (n, E, d, 3) turn of all beyond.
        blocks: (n, E, d, d) second derivatives over an element's own unknowns.
    """
    samples, count, d = moved.shape[:3]
    pulls = (turning @ hat(gravity)).reshape(samples, -1, 3)  # turns x gravity
    upper = pulls @ moved.reshape(samples, -1, 3).swapaxes(1, 2) * _pairs(count, d)
    hessian: Array = upper + upper.swapaxes(1, 2)
    diagonal(hessian, count)[:] = blocks
    return -(moved @ gravity).reshape(samples, -1), hessian


@cache
def _pairs(count: int, d: int) -> Array:
    """1 where the row's element comes before the column's, (E d, E d)."""
    return np.asarray(np.kron(np.triu(np.ones((count, count)), 1), np.ones((d, d))), dtype=np.float64)


def diagonal(hessian: Array, count: int) -> Array:
    """View (n, E, d, d) on the diagonal blocks of Hessians (n, E d, E d)."""
    blocks = hessian.reshape(len(hessian), count, hessian.shape[1] // count, count, -1)
    view: Array = np.einsum("neiej->neij", blocks)
    return view
