"""The skin of an arm: a tube around its bellows, carried by cross-sections ("rings") along it.

The true surface has folds; the skin is what a sleeve drawn over the bellows shows, and what markers are glued to. Its
outline is the convex hull of the bellows' outer circles. Every vertex moves rigidly with its ring.
"""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.bellows.description import BellowsBody, BellowsSection
from softform_core.bodies.placement import Elements, Placed, ends, twists
from softform_core.bodies.rotations import turns_by
from softform_core.simulation.hessian import BlockHessian
from softform_core.simulation.simulated_body import equilibrium_unknowns

_AROUND = 36  # vertices of a ring, at least
_RINGS = 4  # of an element


class Skin(NamedTuple):
    """R rings and the outline that they carry.

    Attributes:
        element: (R,) element that each ring belongs to.
        share: (R,) place along the element, 0 ... 1.
        beyond: (R,) place along the plate behind the element, 0 ... 1.
        outline: (A, 2) m in the cross-section, in the sense from its first axis to its second.
    """

    element: NDArray[np.int64]
    share: Array
    beyond: Array
    outline: Array


def skin_of(body: BellowsBody, elements: int | None = None, rings: int = _RINGS) -> Skin:
    """The skin of a body with so many elements in each section and rings in each element."""
    element, share, beyond = [0], [0.0], [0.0]
    count = elements or body.elements
    for e in range(body.sections * count):
        for ring in range(rings):
            element.append(e)
            share.append((ring + 1.0) / rings)
            beyond.append(0.0)
        if (e + 1) % count == 0 and body.plate_length > 0.0:
            element.append(e)
            share.append(1.0)
            beyond.append(1.0)
    return Skin(np.array(element), np.array(share), np.array(beyond), outline_of(body.section))


def outline_of(section: BellowsSection) -> Array:
    """Points (A, 2) m at even distances on the convex hull of the bellows' circles, from the x axis on."""
    around = section.count * -(-_AROUND // section.count)
    side = 2.0 * section.pitch_radius * np.sin(np.pi / section.count)
    arc = 2.0 * np.pi * section.radius / section.count
    # From the middle of one bellow's arc to that of the next: half an arc, a straight line, half an arc.
    way = (side + arc) * np.arange(around) * section.count / around
    turn, within = np.divmod(way + 1e-12, side + arc)
    half = 0.5 * arc
    on_line = np.clip(within - half, 0.0, side)
    angle = np.minimum(within, half) / section.radius + np.maximum(within - half - side, 0.0) / section.radius
    between, middle = np.pi / section.count, np.array([section.pitch_radius, 0.0])
    normal = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    along = np.array([-np.sin(between), np.cos(between)])
    points = middle + on_line[:, None] * along + section.radius * normal
    turned = 2.0 * np.pi * turn / section.count
    cosine, sine = np.cos(turned), np.sin(turned)
    return np.stack([cosine * points[:, 0] - sine * points[:, 1], sine * points[:, 0] + cosine * points[:, 1]], axis=1)


def faces_of(skin: Skin) -> NDArray[np.int32]:
    """Triangles (F, 3) over the vertices, ring by ring; normals look outwards."""
    rings, around = len(skin.element), len(skin.outline)
    here = np.arange(around)
    beside = (here + 1) % around
    start = around * np.arange(rings - 1)[:, None]
    a, b = (start + here).ravel(), (start + beside).ravel()
    c, d = a + around, b + around
    return np.concatenate([np.stack([a, b, d], axis=1), np.stack([a, d, c], axis=1)]).astype(np.int32)


def vertices_on(skin: Skin, places: Array, frames: Array) -> Array:
    """Vertices (n, R A, 3) m on rings at places (n, R, 3) with directors (n, R, 3, 3)."""
    vertices = places[:, :, None] + np.einsum("nrij,aj->nrai", frames[..., :2], skin.outline)
    return vertices.reshape(len(places), -1, 3)


def carried_twists(places: Array, before: NDArray[np.int64], twists: Array, ends: Array) -> Array:
    """Shifts and turns (n, R, 6, c) of rings that whole elements carry along.

    Args:
        places: (n, R, 3) m of the rings.
        before: (R,) number of elements that carry each ring.
        twists: (n, E, 6, c) shift and turn of the end of each element by itself.
        ends: (n, E, 3) m of these ends.
    """
    about_origin = twists.copy()
    about_origin[:, :, :3] -= np.cross(twists[:, :, 3:], ends[..., None], axis=2)
    sums = np.concatenate([np.zeros_like(twists[:, :1]), np.cumsum(about_origin, axis=1)], axis=1)[:, before]
    sums[:, :, :3] += np.cross(sums[:, :, 3:], places[..., None], axis=2)
    return sums


def moves_on(skin: Skin, frames: Array, twists: Array) -> Array:
    """Moves (n, R A, 3, c) of the vertices as their rings shift and turn by twists (n, R, 6, c)."""
    arms = np.einsum("nrij,aj->nrai", frames[..., :2], skin.outline)
    shift, turn = twists[:, :, None, :3], twists[:, :, None, 3:]
    moved = shift + np.cross(turn, arms[..., None], axis=3)
    return moved.reshape(len(frames), -1, 3, twists.shape[-1])


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


_TOLERANCE = 1e-10  # of the least stiffness at rest
_ROUNDING = 1e-14  # of the stiffness
_MAX_STEP = 0.5
_RUNAWAY = 3.0


class SkinnedArm(ABC):
    """`SimulatedBody` whose points are the vertices of a skin; its unknowns are strains and angles.

    Args:
        skin: The skin.
        unknowns: Number m of unknowns.
        bellows: Number k of bellows.
    """

    batch = 32
    frames: ClassVar[dict[str, int]] = {}
    is_slack = False
    largest_step = _MAX_STEP

    def __init__(self, skin: Skin, unknowns: int, bellows: int) -> None:
        self._skin = skin
        self.faces: NDArray[np.int32] = faces_of(skin)
        self.unloaded = np.zeros(bellows)
        straight = np.zeros((1, unknowns))
        stiffness = np.diagonal(self.derivatives(straight, self.unloaded[None])[1].blocks[0, 0])
        self._tolerance, self.rounding = _TOLERANCE * float(stiffness.min()), _ROUNDING * float(stiffness.sum())

    @cached_property
    def rest(self) -> Array:
        """Unknowns (m,) of the vented arm under its own weight."""
        return equilibrium_unknowns(self, self.unloaded[None])[0]

    @abstractmethod
    def start(self, actuators: Array) -> Array:
        """Unknowns (n, m) from which Newton's method begins."""

    @abstractmethod
    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Pi (n,), J."""

    @abstractmethod
    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """Derivative of the gradient by the pressures, (n, m, k)."""

    @abstractmethod
    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, BlockHessian]:
        """Gradient (n, m) J and Hessian, J."""

    @abstractmethod
    def _rings(self, unknowns: Array) -> tuple[Array, Array]:
        """Places (n, R, 3) m and directors (n, R, 3, 3) of the rings."""

    @abstractmethod
    def _twists(self, unknowns: Array, moves: Array) -> Array:
        """Shifts and turns (n, R, 6, c) of the rings as the unknowns move by (n, m, c)."""

    def points(self, unknowns: Array) -> Array:
        """Vertices (n, V, 3) m of unknowns (n, m)."""
        return vertices_on(self._skin, *self._rings(unknowns))

    def moved_points(self, unknowns: Array, moves: Array) -> Array:
        """As `SimulatedBody`, (n, V, 3, c) m."""
        return moves_on(self._skin, self._rings(unknowns)[1], self._twists(unknowns, moves))

    def tolerance(self, actuators: Array) -> Array:
        """Gradient (n,) J below which the arm is in balance."""
        return np.full(len(actuators), self._tolerance)

    def has_run_away(self, unknowns: Array) -> NDArray[np.bool_]:
        """Whether (n,) it is stretched or bent beyond every measure."""
        return np.asarray(np.abs(unknowns).max(axis=1) > _RUNAWAY)
