"""The rigid torso: its surface, and a mesh of it whose lines run along the borders of all chambers."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

from softform_core.arrays import Array
from softform_core.bodies.layered.description import LAYERS, Core, LayeredBody
from softform_core.errors import SoftformError

_SAME_LINE = 1e-6  # of a turn, and of the height: borders that are nearer share a mesh line
_FINE = 720  # places by which lengths on the torso are measured


class TorsoMesh(NamedTuple):
    """Cells (U, V) of the torso's surface; U lines around, closed, and V + 1 along.

    Attributes:
        turns: (U,) turns of the lines, from the first on, rising.
        heights: (V + 1,) m.
        chambers: (U, V) of each layer: the chamber of each cell, -1 where there is none.
    """

    turns: Array
    heights: Array
    chambers: list[NDArray[np.int64]]


def torso_points(core: Core, turns: Array, heights: Array) -> Array:
    """Points (..., 3) m of the torso's surface at turns and heights of equal shape."""
    stations = core.stations
    values = np.array([[s.side, 0.5 * (s.front + s.back), 0.5 * (s.front - s.back)] for s in stations])
    side, depth, centre = PchipInterpolator([s.height for s in stations], values)(heights).T
    angle = 2.0 * np.pi * np.asarray(turns)
    wider = 1.0 + core.squareness * np.sin(2.0 * angle) ** 2
    x = centre.T + depth.T * wider * np.cos(angle)
    return np.stack([x, side.T * wider * np.sin(angle), np.broadcast_to(heights, x.shape)], axis=-1)


def mesh_torso(body: LayeredBody) -> TorsoMesh:
    """Mesh lines along all borders of chambers, and between them cells of about the described size.

    Raises:
        SoftformError: If a chamber is too small to be meshed.
    """
    core = body.core
    turned, upwards = np.linspace(0.0, 2.0, 2 * _FINE + 1), np.linspace(0.0, core.height, _FINE + 1)
    borders = np.unique([turn % 1.0 for chamber in body.chambers for turn in chamber.turn])
    borders = borders[np.diff(borders, append=borders[0] + 1.0) > _SAME_LINE]
    along = torso_points(core, *np.meshgrid(turned, upwards[:: _FINE // 30], indexing="ij"))
    turns = _filled(np.append(borders, borders[0] + 1.0), turned, along, body.cell)[:-1]
    borders = np.unique([0.0, core.height, *(height for chamber in body.chambers for height in chamber.height)])
    borders = borders[np.diff(borders, append=np.inf) > _SAME_LINE * core.height]
    heights = _filled(borders, upwards, torso_points(core, *np.meshgrid(turns, upwards)), body.cell)
    middle_turn = turns + 0.5 * np.diff(np.append(turns, turns[0] + 1.0))
    middle_height = 0.5 * (heights[1:] + heights[:-1])
    layers = [np.full((len(turns), len(middle_height)), -1) for _ in LAYERS]
    for number, chamber in enumerate(body.chambers):
        within = (middle_turn - chamber.turn[0]) % 1.0 < chamber.turn[1] - chamber.turn[0]
        level = (middle_height > chamber.height[0]) & (middle_height < chamber.height[1])
        if within.sum() < 2 or level.sum() < 2:
            raise SoftformError(
                f"Chamber c{number + 1} is less than two mesh cells wide or high.", "Enlarge it, or reduce cell."
            )
        layers[LAYERS.index(chamber.layer)][np.ix_(within, level)] = number
    return TorsoMesh(turns, heights, layers)


def _filled(borders: Array, fine: Array, points: Array, cell: float) -> Array:
    """Lines at borders and between them, at even lengths on the surface of about a cell.

    Args:
        borders: Places of the borders, rising.
        fine: (F,) places that cover them.
        points: (F, L, 3) m on the surface at these places, along several lines across the borders.
        cell: Length of a cell, m.
    """
    steps = np.linalg.norm(np.diff(points, axis=0), axis=-1).mean(axis=1)
    way = np.concatenate([[0.0], np.cumsum(steps)])
    ends = np.interp(borders, fine, way)
    parts = [np.linspace(a, b, max(1, round((b - a) / cell)) + 1)[:-1] for a, b in zip(ends, ends[1:], strict=False)]
    return np.interp(np.concatenate([*parts, ends[-1:]]), way, fine)
