"""Where the elements of a slender body are, and how they move: products of exponentials.

Each element has piecewise constant strains: bends (phi, epsilon), which are its angles phi = kappa l and its stretch
epsilon. It turns the directors by R' = R exp(phi) and moves its end by l (1 + epsilon) R V(phi) d3, exactly.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.rotations import Turns, mean_tangent_derivative, one_after_another, turns_by


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
