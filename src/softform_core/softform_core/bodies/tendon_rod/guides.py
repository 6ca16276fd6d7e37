"""Tendons through the holes of discs: their straight ways between two discs, and how far they wrap in each hole.

In the directors at the beginning of a section, the chord of a tendon from the hole of the disc before, at x_0, to that
of the disc behind, at x_1 in its own directors, is

    c = l (1 + epsilon) V(phi) d3 + exp(phi) x_1 - x_0,

with the bends (phi, epsilon) of `bodies.placement`; its way is |c|. In the rigid disc it runs straight.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.placement import Placed
from softform_core.bodies.rod.model import Rod
from softform_core.bodies.rotations import TANGENT, mean_tangent_derivative, turned_hessian
from softform_core.bodies.tendon_rod.description import TendonRodBody
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import hat


class Chords(NamedTuple):
    """Chords of k tendons through E sections of n samples.

    Attributes:
        chord: c (n, k, E, 3) m, in the directors at the beginning of its section.
        length: (n, k, E) m.
        by_bends: (n, k, E, 3, 4), derivative of c by the bends of its section.
        longer: (n, k, E, 4), that of the length.
    """

    chord: Array
    length: Array
    by_bends: Array
    longer: Array


@dataclass(frozen=True, eq=False)
class Guides:
    """Holes of k tendons in the base plate and in E discs, one behind each section; m.

    Attributes:
        begin: (k, E, 3) where a tendon enters a section: x_0, the far face of the disc before.
        end: (k, E, 3) where it leaves it: x_1, the near face of the disc behind.
        thickness: (E,) of the discs.
        section: (E,) length of each section.
    """

    begin: Array
    end: Array
    thickness: Array
    section: Array

    def chords(self, placed: Placed) -> Chords:
        """Return the chords of placed elements, one a section."""
        turns, stretched = placed.turns, self.section * (1.0 + placed.bends[..., 3])
        along, ends = turns.mean[..., 2], (turns.turn[:, None] @ self.end[..., None])[..., 0]
        chord = (stretched[..., None] * along)[:, None] + ends - self.begin
        length = np.sqrt(np.vecdot(chord, chord))
        by_bends = np.empty((*chord.shape, 4))
        by_bends[..., :3] = (stretched[..., None, None] * mean_tangent_derivative(turns))[:, None]
        by_bends[..., :3] -= hat(ends) @ turns.mean[:, None]
        by_bends[..., 3] = (self.section[:, None] * along)[:, None]
        longer = ((chord / length[..., None])[..., None, :] @ by_bends)[..., 0, :]
        return Chords(chord, length, by_bends, longer)

    def lengths(self, placed: Placed) -> Array:
        """Return the ways (n, k, E) m alone."""
        turns, stretched = placed.turns, self.section * (1.0 + placed.bends[..., 3])
        chord = (stretched[..., None] * turns.mean[..., 2])[:, None] + (turns.turn[:, None] @ self.end[..., None])[
            ..., 0
        ]
        chord -= self.begin
        return np.asarray(np.sqrt(np.vecdot(chord, chord)))

    def curvature(self, placed: Placed, chords: Chords, tension: Array) -> Array:
        """Return the sum over the tendons of T times the second derivatives of |c| by the bends, (n, E, 4, 4)."""
        turns, bends = placed.turns, placed.bends
        samples, count, sections = tension.shape
        unit = chords.chord / chords.length[..., None]
        pull = tension / chords.length
        flat = chords.by_bends.swapaxes(-1, -2) @ chords.by_bends
        own = (pull[..., None, None] * (flat - chords.longer[..., :, None] * chords.longer[..., None, :])).sum(1)
        # The second derivatives of c: of its turned end, one tendon after another, and of the axis, all at once.
        of, phi = turns.series, bends[..., :3]
        pulls = tension[..., None] * unit
        for tendon in range(count):
            ends = np.broadcast_to(self.end[tendon], (samples, sections, 3))[None]
            own[..., :3, :3] += turned_hessian(of[:2], pulls[:, tendon], ends, phi)
        whole, stretched = pulls.sum(1), self.section * (1.0 + bends[..., 3])
        axis = (stretched[..., None] * TANGENT)[None]
        own[..., :3, :3] += turned_hessian(of[1:], whole, axis, phi)
        mixed = self.section[:, None] * (whole[..., None, :] @ mean_tangent_derivative(turns))[..., 0, :]
        own[..., :3, 3] += mixed
        own[..., 3, :3] += mixed
        return np.asarray(own)

    def wraps(self, placed: Placed, chord: Array) -> Array:
        """Return the angles theta (n, k, E) rad by which tendons are turned in base plate and discs but the last.

        They are those from the chord before to the hole, and from there to the chord behind; in the last disc they end.
        """
        incoming = (placed.turns.turn.swapaxes(-1, -2)[:, None] @ chord[..., None])[..., 0][:, :, :-1]
        hole = self.begin[:, 1:] - self.end[:, :-1]
        hole = hole + self.thickness[:-1, None] * TANGENT
        wraps = np.empty(chord.shape[:3])
        wraps[..., 0] = _angle(TANGENT, chord[:, :, 0])
        wraps[..., 1:] = _angle(incoming, hole) + _angle(hole, chord[:, :, 1:])
        return wraps


def _angle(first: Array, second: Array) -> Array:
    """Return the angle between vectors (..., 3), rad: well conditioned near zero."""
    across = np.linalg.norm(np.cross(first, second), axis=-1)
    return np.asarray(np.arctan2(across, np.vecdot(first, second)))


def build_guides(body: TendonRodBody, rod: Rod, shift: Array) -> Guides:
    """Return the holes of a rod's tendons, their places shifted by (k, 2) m; one element a section.

    Raises:
        SoftformError: If the rod moves in a plane, has no discs, or a tendon does not run through all sections.
    """
    if (
        body.planar
        or not body.link_length
        or any(tendon.sections not in (None, (1, body.sections)) for tendon in body.tendons)
    ):
        raise SoftformError(
            "Only a rod in space with a disc behind each section, whose tendons run to its end, depends on its path.",
            "Take --robot tendon_robot, or give this one discs (link_length), or another reality.",
        )
    thickness = np.full(body.sections, body.link_length)
    far = np.concatenate([[0.0], np.cumsum(rod.length + thickness)])
    near, total = far[:-1] + rod.length, far[-1]
    begin, end = np.zeros((2, len(body.tendons), body.sections, 3))
    for index, tendon in enumerate(body.tendons):
        x, y = np.array(tendon.place) + shift[index]
        for places, along in ((begin, far[:-1]), (end, near)):
            turned = 2.0 * np.pi * tendon.turns * along / total
            places[index, :, 0] = np.cos(turned) * x - np.sin(turned) * y
            places[index, :, 1] = np.sin(turned) * x + np.cos(turned) * y
    return Guides(begin, end, thickness, rod.length)
