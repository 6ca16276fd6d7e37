"""Where the rings of an arm are, and how they move: `bodies.placement` of its elements and of parts of them."""

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.bellows.skin import Skin
from softform_core.bodies.placement import Elements, Placed, ends, twists
from softform_core.bodies.rotations import turns_by


def ring_frames(arm: Elements, skin: Skin, placed: Placed) -> tuple[Array, Array]:
    """Places (n, R, 3) m and directors (n, R, 3, 3) of the rings of placed elements."""
    e = skin.element
    turns, before = turns_by(skin.share[:, None] * placed.bends[:, e, :3]), placed.directors[:, e]
    frames, link_ends = before @ turns.turn, ends(arm, placed)[1]
    along = (skin.share * arm.length[e])[:, None] * (1.0 + placed.bends[:, e, 3:])
    places = along * (before @ turns.mean[..., 2:])[..., 0]
    places += np.concatenate([np.zeros_like(link_ends[:, :1]), link_ends], axis=1)[:, e]
    return places + (skin.beyond * arm.link_length[e])[:, None] * frames[..., 2], frames


def element_twists(arm: Elements, element: NDArray[np.int64], share: Array, placed: Placed) -> Array:
    """Shift and turn (n, R, 6, 4), by the bends of their own elements, of R places along elements."""
    own = placed.bends[:, element]
    turns = turns_by(share[:, None] * own[..., :3])
    found = twists(share * arm.length[element], placed.directors[:, element], turns, own[..., 3])
    found[..., :3] *= share[:, None, None]
    return found
