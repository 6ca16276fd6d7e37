"""The torso's surface as a grid of vertices: cells, areas, elements, and the parts that a layer leaves free.

A grid has vertices (U or U + 1, V + 1) over cells (U, V). Its second direction ends at two rims; the first does, too,
unless it is closed: then the last cell ends at the first vertices. Lines of the torso run along the borders of all
chambers.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline, PchipInterpolator
from scipy.sparse import csc_matrix, csr_matrix, diags
from scipy.sparse.linalg import splu

from softform_core.arrays import Array
from softform_core.bodies.layered.description import LAYERS, Core, LayeredBody
from softform_core.bodies.membrane.model import triangles_of
from softform_core.errors import SoftformError

_POINT = 0.5 / np.sqrt(3.0)  # of Gauss's rule on a side of length 1, from its middle


def corners_of_cells(node: NDArray[np.integer], is_closed: bool) -> NDArray[np.int64]:
    """Vertices (U, V, 4) of each cell, counter-clockwise where both directions' cross product points to the viewer."""
    lines = np.concatenate([node, node[:1]]) if is_closed else node
    return np.stack([lines[:-1, :-1], lines[1:, :-1], lines[1:, 1:], lines[:-1, 1:]], axis=-1)


def faces_of_grid(lines: tuple[int, int], is_closed: bool) -> NDArray[np.int32]:
    """Triangles (F, 3) over the vertices of a grid, line by line, outwards as `corners_of_cells`."""
    return triangles_of(corners_of_cells(np.arange(lines[0] * lines[1]).reshape(lines), is_closed).reshape(-1, 4))


def finer_lines(grid: Array, is_closed: bool, parts: int) -> tuple[Array, Array]:
    """Weights (U', U or U + 1) and (V', V + 1) that put lines between those of a grid, along cubic splines.

    A spline through the vertices of a curved sheet is nearer to it than the flat cells are.

    Args:
        grid: (U or U + 1, V + 1, 3) m, whose mean distances between lines are the splines' parameters.
        is_closed: As above.
        parts: Into which each cell is divided along both directions.
    """
    weights = []
    for axis, closed in ((0, is_closed), (1, False)):
        lines = np.concatenate([grid, grid[:1]]) if closed else grid
        steps = np.linalg.norm(np.diff(lines, axis=axis), axis=-1).mean(axis=1 - axis)
        places = np.append(0.0, np.cumsum(steps))
        values = np.eye(grid.shape[axis])
        if closed:
            spline = CubicSpline(places, np.concatenate([values, values[:1]]), bc_type="periodic")
        else:
            spline = CubicSpline(places, values)
        fine = np.interp(np.arange(parts * len(steps) + (not closed)) / parts, np.arange(len(places)), places)
        weights.append(spline(fine))
    return weights[0], weights[1]


def free_vertices(chamber_of_cell: NDArray[np.int64], is_closed: bool) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which vertices lie within a chamber, for the cells around them are all its own, and the chamber of each of these.

    Args:
        chamber_of_cell: (U, V), -1 where there is none.
        is_closed: As above.
    """
    padded = np.pad(chamber_of_cell, ((0, 0), (1, 1)), constant_values=-1)
    if is_closed:
        padded = np.concatenate([padded[-1:], padded])
    else:
        padded = np.pad(padded, ((1, 1), (0, 0)), constant_values=-1)
    near = np.stack([padded[:-1, :-1], padded[:-1, 1:], padded[1:, :-1], padded[1:, 1:]])
    own = np.asarray((near[0] >= 0) & (near == near[0]).all(axis=0))
    return own, near[0][own]


def neighbours(node: NDArray[np.int64], own: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
    """Vertices after and before the chosen ones, which lie on no rim, along the first direction and the second."""
    return [np.roll(node, step, axis)[own] for axis in (0, 1) for step in (-1, 1)]


def outward_normals(grid: Array) -> Array:
    """Normals at the vertices of a grid (..., 3); those on rims are of no use."""
    first, second = (np.roll(grid, -1, axis) - np.roll(grid, 1, axis) for axis in (0, 1))
    normal = np.cross(first, second)
    return np.asarray(normal / np.maximum(np.linalg.norm(normal, axis=-1, keepdims=True), 1e-300))


def areas_of_vertices(grid: Array, is_closed: bool) -> Array:
    """Area of each vertex, m^2: a quarter of each cell around it."""
    corner = grid.reshape(-1, 3)[corners_of_cells(np.arange(grid[..., 0].size).reshape(grid.shape[:2]), is_closed)]
    across = np.cross(corner[:, :, 2] - corner[:, :, 0], corner[:, :, 3] - corner[:, :, 1])
    quarter = np.pad(0.125 * np.linalg.norm(across, axis=-1), ((0, 0), (1, 1)))
    quarter = np.concatenate([quarter[-1:], quarter]) if is_closed else np.pad(quarter, ((1, 1), (0, 0)))
    return np.asarray(quarter[:-1, :-1] + quarter[:-1, 1:] + quarter[1:, :-1] + quarter[1:, 1:])


def surface_elements(corners: Array, prestretch: Array) -> tuple[Array, Array, Array]:
    """Shapes (4, 4), gradients (E, 4, 4, 2) 1/m and areas (E, 4) m^2 at the points of Gauss's rule.

    Derivatives are by coordinates in the tangent plane of the stress-free sheet at each point.

    Args:
        corners: (E, 4, 3) m of bilinear elements of the mounted sheet.
        prestretch: (E,) at which it is mounted.
    """
    xi, eta = (axis.ravel() for axis in np.meshgrid(*2 * [[0.5 - _POINT, 0.5 + _POINT]], indexing="ij"))
    shapes = np.stack([(1.0 - xi) * (1.0 - eta), xi * (1.0 - eta), xi * eta, (1.0 - xi) * eta])
    by_xi = np.stack([eta - 1.0, 1.0 - eta, eta, -eta])
    by_eta = np.stack([xi - 1.0, -xi, xi, 1.0 - xi])
    first, second = (np.einsum("nq,enk->eqk", by, corners) for by in (by_xi, by_eta))
    length = np.linalg.norm(first, axis=-1)
    beside = np.einsum("eqk,eqk->eq", first, second) / length
    area = np.linalg.norm(np.cross(first, second), axis=-1)
    # In the tangent plane, first is (length, 0) and second (beside, area / length).
    along = by_xi.T[None] / length[..., None]
    across = (by_eta.T[None] - beside[..., None] * along) * (length / area)[..., None]
    gradients = prestretch[:, None, None, None] * np.stack([along, across], axis=-1)
    areas = 0.25 * area / prestretch[:, None] ** 2
    return np.ascontiguousarray(shapes), np.ascontiguousarray(gradients), np.ascontiguousarray(areas)


def unit_domes(own: NDArray[np.bool_], chamber: NDArray[np.int64], chambers: int) -> Array:
    """Shape of a taut sheet under even pressure over each chamber, 1 at its top, at a layer's own vertices.

    Args:
        own: (U or U + 1, V + 1) whether each vertex lies within a chamber.
        chamber: (O,) of those; `chambers` where there is no pressure, and no dome.
        chambers: Number k.

    Returns:
        (O, k).
    """
    size, number = len(chamber), np.full(own.shape, -1)
    number[own] = np.arange(size)
    beside = np.stack(neighbours(number, own))
    rows = np.broadcast_to(np.arange(size), beside.shape)[beside >= 0]
    joined = csr_matrix((np.ones(len(rows)), (rows, beside[beside >= 0])), shape=(size, size))
    domes, active = np.zeros((size, chambers)), np.flatnonzero(chamber < chambers)
    if active.size:
        system = (diags(np.full(size, 4.0)) - joined).tocsr()[active][:, active]
        domes[active, chamber[active]] = splu(csc_matrix(system)).solve(np.ones(active.size))
    return np.asarray(domes / np.maximum(domes.max(axis=0, initial=0.0), 1e-300))


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
