"""Where the elements of an arm and its rings are, and how they move: products of exponentials, as `bodies.rod`'s.

Element e turns the directors by R' = R exp(phi), phi = kappa l, and moves its end by l (1 + epsilon) R V(phi) d3.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.bellows.model import BellowsArm
from softform_core.bodies.bellows.rotations import mean_tangent_derivative, rotations, series
from softform_core.bodies.bellows.skin import Skin


class PlacedArm(NamedTuple):
    """n samples of E elements.

    Attributes:
        angles: (n, E, 3) phi, rad.
        series: (3, 3, n, E), `series` of |phi|².
        mean: (n, E, 3, 3), V(phi).
        directors: (n, E + 1, 3, 3) before each element and behind the last one, as columns.
        ends: (n, E, 3) m.
        link_ends: (n, E, 3) m, of the plates behind the elements.
    """

    angles: Array
    series: Array
    mean: Array
    directors: Array
    ends: Array
    link_ends: Array


def place_arm(arm: Any, strains: Array) -> PlacedArm:
    """Place a `BellowsArm`, or a `Rod`, under strains (n, E, 4)."""
    angles = strains[..., :3] * arm.length[:, None]
    of = series((angles**2).sum(-1))
    turn, mean = rotations(angles, of)
    directors = np.empty((len(strains), len(arm.length) + 1, 3, 3))
    directors[:, 0] = arm.base
    for e in range(len(arm.length)):
        directors[:, e + 1] = directors[:, e] @ turn[:, e]
    link = arm.link_length[:, None] * directors[:, 1:, :, 2]
    along = (directors[:, :-1] @ mean[..., 2:])[..., 0]
    link_ends = np.cumsum(arm.length[:, None] * (1.0 + strains[..., 3:]) * along + link, axis=1)
    return PlacedArm(angles, of, mean, directors, link_ends - link, link_ends)


def ring_frames(arm: BellowsArm, skin: Skin, strains: Array) -> tuple[Array, Array]:
    """Places (n, R, 3) m and directors (n, R, 3, 3) of the rings under strains (n, E, 4)."""
    placed, e = place_arm(arm, strains), skin.element
    length = (skin.share * arm.length[e])[:, None]
    angles = strains[:, e, :3] * length
    turn, mean = rotations(angles, series((angles**2).sum(-1)))
    before = placed.directors[:, e]
    frames = before @ turn
    places = length * (1.0 + strains[:, e, 3:]) * (before @ mean[..., 2:])[..., 0]
    places += np.concatenate([np.zeros_like(placed.ends[:, :1]), placed.link_ends], axis=1)[:, e]
    return places + (skin.beyond * arm.link_length[e])[:, None] * frames[..., 2], frames


def element_twists(arm: BellowsArm, element: NDArray[np.int64], share: Array, strains: Array) -> Array:
    """Shift and turn (n, R, 6, 4), by the strains (n, E, 4) of their own elements, of R places along elements."""
    directors = place_arm(arm, strains).directors[:, element]
    length = (share * arm.length[element])[:, None, None]
    own = strains[:, element]
    angles = own[..., :3] * length[..., 0]
    of = series((angles**2).sum(-1))
    found = np.zeros((*own.shape[:2], 6, 4))
    found[..., 3:, :3] = length * (directors @ rotations(angles, of)[1])
    found[..., :3, 3] = found[..., 3:, 2]
    stretched = length**2 * (1.0 + own[..., 3, None, None])
    found[..., :3, :3] = stretched * (directors @ mean_tangent_derivative(angles, of))
    return found
