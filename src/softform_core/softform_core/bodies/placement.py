"""Where the elements of a slender body are, and how they move: products of exponentials.

Each element has piecewise constant strains: bends (phi, epsilon), which are its angles phi = kappa l and its stretch
epsilon. It turns the directors by R' = R exp(phi) and moves its end by l (1 + epsilon) R V(phi) d3, exactly.
"""

from typing import NamedTuple, Protocol

import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.rotations import Turns, mean_tangent_derivative, one_after_another, turns_by


class Elements(Protocol):
    """E elements, some with a rigid link behind them; SI units."""

    @property
    def length(self) -> Array:
        """Of each element, (E,)."""

    @property
    def node_mass(self) -> Array:
        """Mass at the end of each element, (E,) kg."""

    @property
    def link_length(self) -> Array:
        """Of the link behind each element, (E,); 0 where there is none."""

    @property
    def link_mass(self) -> Array:
        """At the middle of that link, (E,)."""

    @property
    def base(self) -> Array:
        """Directors at the base, as columns, (3, 3)."""

    @property
    def gravity(self) -> Array:
        """(3,) m/s²."""


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
