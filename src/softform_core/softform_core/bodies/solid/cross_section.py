"""The cross-section as triangles of six nodes, mapped from a polar grid: no mesher, no file."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softform_core.arrays import Array
from softform_core.bodies.solid.description import Cells, CrossSection

Places = list[tuple[int, int]]
"""Nodes of the grid: line from the axis, place around."""


class SectionMesh(NamedTuple):
    """Triangles over N nodes.

    Attributes:
        nodes: (N, 2) m.
        triangles: (T, 6) corners counter-clockwise, then the middles of their sides 01, 12, 20.
        chamber: (T,) chamber that each lies in, -1 where it is solid.
        is_wall: (T,) whether it belongs to the outer wall.
        rim: (2 c,) nodes of the c cells around the outer wall, corners at even places, from the first chamber on.
    """

    nodes: Array
    triangles: NDArray[np.int64]
    chamber: NDArray[np.int64]
    is_wall: NDArray[np.bool_]
    rim: NDArray[np.int64]


def mesh_section(
    section: CrossSection, cells: Cells, *, wall_scale: float = 1.0, shift: ArrayLike = 0.0, turn: ArrayLike = 0.0
) -> SectionMesh:
    """Mesh of a cross-section.

    Args:
        section: Its description.
        cells: Cells of the mesh.
        wall_scale: Thickness of the outer wall over the described one.
        shift: Outward shift of each chamber, (k,) m or a number.
        turn: Turn of each chamber about the axis, (k,) rad or a number.
    """
    outer = section.radius - wall_scale * (section.radius - section.outer)
    shifts, turns = (np.asarray(each, dtype=np.float64) * np.ones(section.chambers) for each in (shift, turn))
    angles, moved = _around(section, cells, shifts, turns)
    count = len(angles)
    rows = [np.zeros(count)]
    borders = np.zeros(count), section.inner + moved, outer + moved, np.full(count, section.radius)
    for number, begin, end in zip((cells.core, cells.depth, cells.wall), borders, borders[1:], strict=False):
        part = np.linspace(begin, end, 2 * number + 1)
        rows += list(part[1:])
    radius = np.stack(rows)  # (2 S + 1, 2 c) of the nodes of all lines around
    places = np.stack([radius * np.cos(angles), radius * np.sin(angles)], axis=-1).reshape(-1, 2)
    grid = np.arange(len(places)).reshape(radius.shape)
    grid[0] = 0
    triangles, chamber, is_wall = _triangles(section, cells, grid)
    used, renumbered = np.unique(triangles, return_inverse=True)
    rim = np.searchsorted(used, grid[-1])
    return SectionMesh(places[used], renumbered.reshape(triangles.shape), chamber, is_wall, rim)


def _around(section: CrossSection, cells: Cells, shift: Array, turn: Array) -> tuple[Array, Array]:
    """Angles of the nodes around, two a cell from the start of the first chamber, and their outward shift, (2 c,)."""
    starts = 2.0 * np.pi / section.chambers * np.arange(section.chambers) + turn - 0.5 * section.angle
    ends, following = starts + section.angle, np.append(starts[1:], starts[0] + 2.0 * np.pi)
    along, across = np.arange(2 * cells.chamber) / (2 * cells.chamber), np.arange(2 * cells.rib) / (2 * cells.rib)
    angles = np.concatenate(
        [starts[:, None] + section.angle * along, ends[:, None] + (following - ends)[:, None] * across], axis=1
    )
    step = np.roll(shift, -1) - shift
    moved = shift[:, None] + step[:, None] * np.concatenate([0.0 * along, across])
    return angles.ravel(), moved.ravel()


def _triangles(
    section: CrossSection, cells: Cells, grid: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Triangles (T, 6) over the grid of nodes, the chamber and whether each is of the outer wall."""
    count = grid.shape[1]
    pitch = cells.chamber + cells.rib
    triangles: list[list[np.int64]] = []
    chamber: list[int] = []
    is_wall: list[bool] = []

    def add(corners: Places, middles: Places, void: int = -1, wall: bool = False) -> None:
        triangles.append([grid[line, place % count] for line, place in (*corners, *middles)])
        chamber.append(void)
        is_wall.append(wall)

    for cell in range(count // 2):
        t = 2 * cell
        add([(0, t), (2, t), (2, t + 2)], [(1, t), (2, t + 1), (1, t + 2)])  # the fan around the axis
        for ring in range(1, cells.core + cells.depth + cells.wall):
            s = 2 * ring
            in_chamber = cells.core <= ring < cells.core + cells.depth and cell % pitch < cells.chamber
            void, wall = cell // pitch if in_chamber else -1, ring >= cells.core + cells.depth
            a, b, c, d = (s, t), (s + 2, t), (s + 2, t + 2), (s, t + 2)
            # Diagonals lean to both sides in turn: an even number of cells is then its own mirror image.
            for corners in ([a, b, c], [a, c, d]) if cell % 2 else ([a, b, d], [b, c, d]):
                following = corners[1:] + corners[:1]
                middles = [((i + m) // 2, (j + n) // 2) for (i, j), (m, n) in zip(corners, following, strict=True)]
                add(corners, middles, void, wall)
    return np.array(triangles), np.array(chamber), np.array(is_wall)
