"""Centre lines by few curvatures, their skin, and their fit to clouds.

A shape is what is learned instead of unordered points: the bends (phi_1, phi_2), rad, of each of C sections in a frame
that does not twist, and the stretch of them all, times `STRETCH`: (n, 2 C + 1). Its stations are those of
`bodies.swept`. Lengths are in mm.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.placement import Elements, Placed, ends, in_sections, place, twists
from softform_core.bodies.swept import STEPS
from softform_core.units import MM_PER_M

STRETCH = 10.0
"""By which the stretch is multiplied, so that it is about as large as the bends."""
_ROUNDS, _LAST, _EVERY = 10, 3, 2
"""Rounds of a fit, in all but the last of which it looks at every second point of the cloud."""
_BLOCK = 64
_FAR = 6.0
"""Distance from the skin, mm, beyond which a point of a cloud weighs ever less."""
_STIFF = 0.3
"""Weight of a bend's change from where the fit begins, mm / rad: it decides what a cloud leaves open."""
_ROUGH = 3.0
"""Weight of differences between neighbouring sections in that change, mm / rad."""

_TIP, _FIRM = 0.3, 0.05
"""Weight of the tip, and mm^2 for a bend's own change, of a metric."""


@dataclass(frozen=True, eq=False)
class Line:
    """Centre lines of n shapes: `points` (n, S, 3) mm, `directors` (n, S, 3, 3) as columns, the last one along."""

    points: Array
    directors: Array

    @property
    def tip(self) -> Array:
        """Tips (n, 3) mm."""
        return np.asarray(self.points[:, -1])


class CentreLines:
    """Lines of bends, and bends of clouds, of one robot.

    Args:
        body: The robot's slender body, with a disc behind each section.

    Attributes:
        width: 2 C + 1, number of bends and stretch.
    """

    def __init__(self, body: Any) -> None:
        self.sections, self.width = body.sections, 2 * body.sections + 1
        count = STEPS * body.sections
        length = np.full(count, MM_PER_M * body.section.length / STEPS)
        self._elements = Elements(
            **in_sections(body.sections, np.ones(count), MM_PER_M * body.link_length, 0.0),
            length=length,
            base=np.eye(3),
            gravity=np.zeros(3),
        )
        self._behind = (np.arange(count) + 1) // STEPS + np.arange(count) + 1 - ((np.arange(count) + 1) % STEPS == 0)
        stations = 1 + body.sections * (STEPS + 1)
        far = (np.arange(body.sections) + 1) * (STEPS + 1)
        self._station_element = np.zeros(stations, dtype=np.int64)  # how many elements lie before a station
        self._station_element[self._behind] = np.arange(count) + 1
        self._station_element[far] = self._station_element[far - 1]
        self._far = far
        self.samples = _samples(body, stations)

    def lines(self, bends: Array) -> Line:
        """Return the lines of bends (n, 2 C + 1)."""
        placed = place(self._elements, self._full(bends))
        return self._line(placed, *ends(self._elements, placed))

    def metric(self, bends: Array) -> Array:
        """Return L (2 C + 1, 2 C + 1), mm, by which small changes of bends are moves of the line.

        |change L|^2 is about the mean square of the moves of its stations, and of the tip's with a weight of `_TIP`:
        bends near the base move all beyond them, and what a cloud leaves open moves little. Of lines (n, 2 C + 1).
        """
        moves = self._placed(bends)[1]
        square = np.einsum("nsxw,nsxv->wv", moves, moves) / (moves.shape[0] * moves.shape[1])
        square += _TIP * np.einsum("nxw,nxv->wv", moves[:, -1], moves[:, -1]) / len(moves)
        return np.asarray(np.linalg.cholesky(square + _FIRM * np.eye(self.width)))

    def _line(self, placed: Placed, element_end: Array, link_end: Array) -> Line:
        points = np.zeros((len(element_end), len(self._station_element), 3))
        points[:, self._behind] = element_end
        points[:, self._far] = link_end[:, self._station_element[self._far] - 1]
        return Line(points, placed.directors[:, self._station_element])

    def stretch(self, points: Array) -> Array:
        """Return the mean stretch (n,) of lines (n, S, 3) mm; a step is hardly longer than its chord."""
        steps = np.linalg.norm(np.diff(points, axis=1), axis=2)
        bent = steps.reshape(len(points), self.sections, STEPS + 1)[:, :, :STEPS]
        return np.asarray(bent.mean(axis=(1, 2)) / self._elements.length[0] - 1.0)

    def _full(self, bends: Array) -> Array:
        """Bends (n, E, 4) of the elements."""
        found = np.zeros((len(bends), len(self._elements.length), 4))
        found[..., :2] = np.repeat(bends[:, :-1].reshape(len(bends), self.sections, 2), STEPS, axis=1) / STEPS
        found[..., 3] = bends[:, -1:] / STRETCH
        return found

    def _placed(self, bends: Array) -> tuple[Line, Array, Array]:
        """Lines, and moves of stations (n, S, 3, 2 C + 1) mm and their turns by unit bends."""
        placed = place(self._elements, self._full(bends))
        element_end, link_end = ends(self._elements, placed)
        line = self._line(placed, element_end, link_end)
        own = twists(self._elements.length, placed.directors[:, :-1], placed.turns, placed.bends[..., 3])
        shift, turn = own[:, :, :3, :2], own[:, :, 3:, :2]  # (n, E, 3, 2) of each element's end
        reached = (self._station_element[:, None] > np.arange(len(self._elements.length)))[None, :, :, None, None]
        arm = line.points[:, :, None] - element_end[:, None]  # (n, S, E, 3)
        moves = shift[:, None] + np.cross(turn[:, None].swapaxes(3, 4), arm[:, :, :, None]).swapaxes(3, 4)
        shape = (len(bends), len(self._station_element), self.sections, STEPS, 3, 2)
        flat = (*shape[:2], 3, self.width - 1)
        moves, turns = (
            ((what * reached).reshape(shape).sum(axis=3) / STEPS).swapaxes(2, 3).reshape(flat)
            for what in (moves, np.broadcast_to(turn[:, None], moves.shape))
        )
        stretched = (own[:, None, :, :3, 3] * reached[..., 0]).sum(axis=2)[..., None] / STRETCH
        moves = np.concatenate([moves, stretched], axis=3)
        turns = np.concatenate([turns, np.zeros_like(stretched)], axis=3)
        return line, moves, turns

    def carried(self, line: Line) -> Array:
        """Return the samples (n, P, 3) mm of the skin over lines."""
        station, offset = self.samples.station, self.samples.offset
        return np.asarray(line.points[:, station] + (line.directors[:, station] @ offset[:, :, None])[..., 0])

    def nearest(self, clouds: NDArray[np.floating], candidates: Array) -> Array:
        """Return, for each of clouds (n, M, 3) mm, of its candidates (n, c, 2 C + 1) the one whose skin is nearest."""
        points = torch.as_tensor(clouds[:, :: 2 * _EVERY], dtype=torch.float32)
        apart = np.zeros(candidates.shape[:2])
        for number in range(candidates.shape[1]):
            for part in np.array_split(np.arange(len(clouds)), max(1, len(clouds) // _BLOCK)):
                carried = torch.as_tensor(self.carried(self.lines(candidates[part, number])), dtype=torch.float32)
                apart[part, number] = torch.cdist(points[part], carried).min(dim=2).values.mean(dim=1).numpy()
        return np.asarray(candidates[np.arange(len(clouds)), apart.argmin(axis=1)])

    def fitted_from(self, clouds: NDArray[np.floating], candidates: Array) -> Array:
        """Return the bends (n, 2 C + 1) `fitted` to clouds (n, M, 3) mm from the `nearest` of candidates."""
        return self.fitted(clouds, self.nearest(clouds, candidates))

    def fitted(self, clouds: NDArray[np.floating], start: Array) -> Array:
        """Return the bends (n, 2 C + 1) whose skin comes next to clouds (n, M, 3) mm, from a start (n, 2 C + 1).

        Each round pairs the points with the nearest samples of the skin and takes a Gauss-Newton step of the distances
        along its normals, Huber's weights beyond some mm; what a cloud leaves open stays as at the start.
        """
        parts = range(0, len(clouds), _BLOCK)
        return np.concatenate([self._fit(clouds[one : one + _BLOCK], start[one : one + _BLOCK]) for one in parts])

    def _fit(self, clouds: NDArray[np.floating], start: Array) -> Array:
        bends, samples = start.copy(), self.samples
        rough = np.kron(np.diff(np.eye(self.sections), axis=0), np.eye(2))
        firm = _STIFF**2 * np.eye(self.width)
        firm[:-1, :-1] += _ROUGH**2 * rough.T @ rough
        whole, each = clouds, np.arange(len(clouds))[:, None]
        for number in range(_ROUNDS):
            clouds = whole if number >= _ROUNDS - _LAST else whole[:, ::_EVERY]
            points = torch.as_tensor(clouds, dtype=torch.float32)
            line, moves, turns = self._placed(bends)
            carried = self.carried(line)
            near = torch.cdist(points, torch.as_tensor(carried, dtype=torch.float32)).argmin(dim=2).numpy()
            station = samples.station[near]
            normal = (line.directors[each, station] @ samples.normal[near][..., None])[..., 0]
            place = carried[each, near]
            off = ((clouds - place) * normal).sum(axis=2)
            weight = np.minimum(1.0, _FAR / np.maximum(np.linalg.norm(clouds - place, axis=2), 1e-9))
            moment = np.cross(place - line.points[each, station], normal)
            # n . dp of a sample is the same sum over station moves for all that share a station.
            by_bends = (normal[:, :, None] @ moves[each, station])[:, :, 0]
            by_bends += (moment[:, :, None] @ turns[each, station])[:, :, 0]
            weighted = by_bends * weight[..., None]
            matrix = weighted.swapaxes(1, 2) @ by_bends / off.shape[1] + firm / off.shape[1]
            slope = (weighted * off[..., None]).mean(axis=1) - (bends - start) @ firm / off.shape[1]
            bends = bends + np.clip(np.linalg.solve(matrix, slope[..., None])[..., 0], -0.2, 0.2)
        return bends


@dataclass(frozen=True, eq=False)
class Samples:
    """P samples of the skin: `station` (P,), `offset` (P, 3) mm and outward `normal` (P, 3) in its directors."""

    station: NDArray[np.int64]
    offset: Array
    normal: Array


def _samples(body: Any, stations: int) -> Samples:
    """Rings on the tube and on the rim and both faces of each disc, 2 to 5 mm apart."""
    parts: list[tuple[int, float, int, Array]] = []  # station, radius, number around, normal: radial or along
    radial = np.array([1.0, 0.0])
    tube, disc = 0.5 * MM_PER_M * body.section.width, MM_PER_M * body.disc_radius
    far = (np.arange(body.sections) + 1) * (STEPS + 1)
    discs = set(far.tolist()) | set((far - 1).tolist())
    parts += [(station, tube, 10, radial) for station in range(stations) if station not in discs]
    for station in far.tolist():
        for face, along in ((station - 1, -1.0), (station, 1.0)):
            parts.append((face, disc, 20, radial))
            parts += [(face, radius, around, np.array([0.0, along])) for radius, around in ((5.5, 12), (8.0, 18))]
    parts += [(stations - 1, radius, 6, np.array([0.0, 1.0])) for radius in (1.0, 3.0)]
    found: list[list[Array]] = [[], [], []]
    for station, radius, around, normal in parts:
        angle = 2.0 * np.pi * (np.arange(around) + 0.5 * (station % 2)) / around
        circle = np.stack([np.cos(angle), np.sin(angle), np.zeros(around)], axis=1)
        found[0].append(np.full(around, station))
        found[1].append(radius * circle)
        found[2].append(normal[0] * circle + normal[1] * np.array([0.0, 0.0, 1.0]))
    stations_of, offsets, normals = (np.concatenate(one) for one in found)
    return Samples(stations_of.astype(np.int64), offsets, normals)
