"""The mesh of a solid: the cross-section drawn out along the body, the faces of its cavities, points of its surface.

The cross-section is triangles of six nodes, mapped from a polar grid: no mesher, no file.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, kron, vstack

from softform_core.arrays import Array
from softform_core.bodies.elements import TURNED_TRIANGLE, line_shapes
from softform_core.bodies.solid.description import Cells, CrossSection, SolidBody

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


_SPACING = 0.018
"""Distance of the surface's points along the body, of its length; around there are three a cell."""
_AROUND = 3


class SolidMesh(NamedTuple):
    """Wedges over V nodes, or tetrahedra; node l N + n of an extruded mesh is node n of the cross-section on level l.

    Attributes:
        nodes: (V, 3) m.
        elements: (E, 18), or (E, 10) of tetrahedra.
        is_plate: (E,) whether each belongs to a plate.
        is_wall: (E,) whether it belongs to the outer wall of a segment.
        rectangles: (R, 9) faces of the cavities along the body, outwards from the cavity.
        cavity_of_rectangle: (R,).
        caps: (C, 6) faces across it, likewise.
        cavity_of_cap: (C,).
        base: (B,) nodes of the base: those of the base plate, if there is one.
        foot: (b,) those of them on its underside.
    """

    nodes: Array
    elements: NDArray[np.int32]
    is_plate: NDArray[np.bool_]
    is_wall: NDArray[np.bool_]
    rectangles: NDArray[np.int32]
    cavity_of_rectangle: NDArray[np.int64]
    caps: NDArray[np.int32]
    cavity_of_cap: NDArray[np.int64]
    base: NDArray[np.int64]
    foot: NDArray[np.int64]


def layers_of(body: SolidBody, layers: int) -> tuple[Array, NDArray[np.int64]]:
    """Heights (L + 1,) of the borders of all layers, m, and the segment (L,) of each, -1 of a plate."""
    heights, segment = [0.0], []
    for number in range(body.segments):
        begin = heights[-1] + body.plate
        heights += np.linspace(begin, begin + body.segment_length, layers + 1).tolist()
        segment += [-1] + [number] * layers
    return np.array([*heights, body.length]), np.array([*segment, -1])


def extrude(body: SolidBody, section: SectionMesh, layers: int, *, base_moves: bool) -> SolidMesh:
    """The mesh of a body.

    Args:
        body: The description.
        section: Mesh of its cross-section.
        layers: Cells along each segment.
        base_moves: Whether the base plate has elements; if not it is a part of the support.
    """
    heights, segment = layers_of(body, layers)
    levels = np.interp(np.arange(2 * len(segment) + 1), 2 * np.arange(len(heights)), heights)
    count, chambers = len(section.nodes), body.cross_section.chambers
    nodes = np.column_stack([np.tile(section.nodes, (len(levels), 1)), levels.repeat(count)])
    elements, plates, walls = [], [], []
    sides, side_cavity, caps, cap_cavity = [], [], [], []
    edge, edge_chamber = _chamber_edges(section)
    for layer, of_segment in enumerate(segment):
        level = count * (2 * layer + np.arange(3))
        if layer == 0 and not base_moves:
            continue
        here = section.triangles if of_segment < 0 else section.triangles[section.chamber < 0]
        elements.append((level[:, None] + here[:, None, :]).reshape(-1, 18))
        plates.append(np.full(len(here), of_segment < 0))
        walls.append(section.is_wall[section.chamber < 0] if of_segment >= 0 else np.zeros(len(here), dtype=bool))
        if of_segment < 0:
            continue
        sides.append((level[:, None] + edge[:, None, :]).reshape(-1, 9))
        side_cavity.append(of_segment * chambers + edge_chamber)
        void = section.chamber >= 0
        cap = section.triangles[void]
        if segment[layer - 1] < 0:
            caps.append(level[0] + cap[:, TURNED_TRIANGLE])
            cap_cavity.append(of_segment * chambers + section.chamber[void])
        if segment[layer + 1] < 0:
            caps.append(level[2] + cap)
            cap_cavity.append(of_segment * chambers + section.chamber[void])
    return SolidMesh(
        nodes=nodes,
        elements=np.concatenate(elements).astype(np.int32),
        is_plate=np.concatenate(plates),
        is_wall=np.concatenate(walls),
        rectangles=np.concatenate(sides).astype(np.int32),
        cavity_of_rectangle=np.concatenate(side_cavity),
        caps=np.concatenate(caps).astype(np.int32),
        cavity_of_cap=np.concatenate(cap_cavity),
        base=np.arange(3 * count),
        foot=np.arange(count),
    )


def _chamber_edges(section: SectionMesh) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sides (e, 3) of chambers against the solid, end, middle, end, the chamber on the left; the chamber (e,)."""
    void = section.chamber >= 0
    triangles, chamber = section.triangles[void], section.chamber[void]
    sides = np.concatenate([triangles[:, [0, 3, 1]], triangles[:, [1, 4, 2]], triangles[:, [2, 5, 0]]])
    _, first, times = np.unique(sides[:, 1], return_index=True, return_counts=True)
    single = first[times == 1]  # by its middle: a side between two triangles of the chamber has the same
    return sides[single], np.tile(chamber, 3)[single]


def surface_points(
    body: SolidBody, section: SectionMesh, layers: int, around: int
) -> tuple[csr_matrix, NDArray[np.int32]]:
    """Points on the outer wall, on rings from the base to the end, then the middle of the end.

    Args:
        body: The description.
        section: Mesh of its cross-section.
        layers: Cells along each segment.
        around: Cells around the first chamber; the first point of each ring is in its middle.

    Returns:
        Weights (P, V) of the nodes in each point, and triangles (F, 3) over the points, outwards.
    """
    heights, _ = layers_of(body, layers)
    step = _SPACING * body.length
    parts = [np.linspace(0.0, 2.0, max(2, round(thick / step)) + 1)[1:] for thick in np.diff(heights)]
    along = np.concatenate([[0.0], *(2.0 * layer + part for layer, part in enumerate(parts))])
    cells = len(section.rim) // 2
    turns = (around + np.arange(_AROUND * cells) * 2.0 / _AROUND) % (2 * cells)
    ring = _line_weights(turns, cells, section.rim, len(section.nodes))
    level = _line_weights(along, len(heights) - 1, np.arange(2 * len(heights) - 1), 2 * len(heights) - 1)
    centre = np.flatnonzero(np.linalg.norm(section.nodes, axis=1) < 1e-12)[0]
    size = len(section.nodes) * (2 * len(heights) - 1)
    end = csr_matrix(([1.0], ([0], [size - len(section.nodes) + centre])), shape=(1, size))
    return csr_matrix(vstack([kron(level, ring), end])), _tube_faces(len(turns), len(along))


def _line_weights(places: Array, cells: int, nodes: NDArray[np.int64], size: int) -> csr_matrix:
    """Weights (p, size) of the nodes in points of a chain of cells of three nodes, two a cell further on."""
    cell = np.minimum(places.astype(np.int64) // 2, cells - 1)
    values, _ = line_shapes(places - 2.0 * cell - 1.0)
    columns = nodes[(2 * cell[:, None] + np.arange(3)) % len(nodes)]
    rows = np.repeat(np.arange(len(places)), 3)
    matrix = csr_matrix((values.ravel(), (rows, columns.ravel())), shape=(len(places), size))
    matrix.eliminate_zeros()
    return matrix


def _tube_faces(around: int, rings: int) -> NDArray[np.int32]:
    """Triangles over rings of points, and a fan over the end; diagonals lean to both sides in turn."""
    cell, ring = np.meshgrid(np.arange(around), np.arange(rings - 1))
    a = (ring * around + cell).ravel()
    b = (ring * around + (cell + 1) % around).ravel()
    c, d, odd = b + around, a + around, (cell % 2 == 1).ravel()[:, None]
    first = np.where(odd, np.column_stack([a, b, c]), np.column_stack([a, b, d]))
    second = np.where(odd, np.column_stack([a, c, d]), np.column_stack([b, c, d]))
    last = (rings - 1) * around + np.arange(around)
    fan = np.column_stack([last, np.roll(last, -1), np.full(around, rings * around)])
    return np.concatenate([first, second, fan]).astype(np.int32)
