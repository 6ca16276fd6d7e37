"""Motion-capture markers on the real body: where they are meant to be, and where they are glued.

A marker is a flat reflective dot: it follows one material point of the body and weighs nothing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.registration.rest_surface import RestSurface, rest_surface_of
from softform_core.robots import TIP, TIP_MARKER, Robot
from softform_core.surface.patch import ParametrisedMesh, Patch
from softform_rig.live_body import LiveBody

_CANDIDATES = 129
"""A side of the grid of places among which the layout chooses."""

_FROM_RIM = 0.02
"""Distance between the rim of the surface and the markers beside it, over the surface's size."""


def marker_layout(surface: RestSurface, count: int) -> Array:
    """Places for `count` markers, spread evenly over the resting surface, (count, 2) parameters.

    Each patch gets its share. It is divided into equal, nearly square cells. Markers are in the middle of the cells and
    in the middle of their sides, those on the rim a little inside it, where a clamp that slips shows. With the 34
    markers of the paper, the cells of a square sheet under nine chambers are the chambers. The markers that are left
    are put, one by one, where the nearest marker or the rim is furthest.

    Raises:
        SoftformError: If there are fewer than four.
    """
    if count < 4:
        raise SoftformError(f"{count} markers are too few.", "Four at least are needed to register them.")
    patches = surface.mesh.patches
    grids = zip(patches.patches, patches.grids(surface.points), strict=True)
    counts = [(count + later) // len(patches) for later in range(len(patches))][::-1]
    own = [_layout_on_patch(*patch, number) for patch, number in zip(grids, counts, strict=True)]
    return np.concatenate([patches.joined(number, places) for number, places in enumerate(own)])


def _layout_on_patch(patch: Patch, points: Array, count: int) -> Array:
    """`marker_layout` of one patch over the grid of its points (g, g, 3) m."""
    size = _lengths(points)
    cells = _cells(size, count, patch.periodic)
    places = np.empty((0, 2)) if cells is None else _middles(*cells, patch.periodic)
    for side in patch.sides:
        places[:, side.axis] = np.clip(places[:, side.axis], _FROM_RIM, 1.0 - _FROM_RIM)
    grid = patch.samples(_CANDIDATES**2)
    to_rim = np.min([np.abs(grid[:, side.axis] - side.end) * size[side.axis] for side in patch.sides], axis=0)
    turns = (-1.0, 0.0, 1.0) if patch.periodic else (0.0,)
    while len(places) < count:
        room = to_rim
        if len(places):
            around = np.concatenate([places + [turn, 0.0] for turn in turns])
            room = np.minimum(cKDTree(around * size).query(grid * size)[0], to_rim)
        # To the nanometre: of places that are as good by symmetry each machine takes the first.
        places = np.vstack([places, grid[room.round(9).argmax()]])
    return places


def _lengths(grid: Array) -> Array:
    """Mean lengths (2,) m of a resting patch along u and along v, from the grid (m, n, 3) of its points."""
    steps = (np.linalg.norm(np.diff(grid, axis=axis), axis=-1) for axis in (0, 1))
    return np.array([step.sum(axis=axis).mean() for axis, step in enumerate(steps)])


def _cells(size: Array, count: int, periodic: bool) -> tuple[int, int] | None:
    """Numbers of cells along u and v, as square as they can be, whose middles are at most `count`; None if too few."""
    best = None
    for along_u in range(1, count):
        along_v = max(1, round(along_u * size[1] / size[0]))
        if len(_middles(along_u, along_v, periodic)) <= count:
            best = along_u, along_v
    return best


def _middles(along_u: int, along_v: int, periodic: bool) -> Array:
    """Middles of cells and of their sides, (n, 2) parameters: the cells first, then inner sides, then the rim."""
    # In halves of a cell: odd numbers are middles, even ones lines between cells or the rim.
    numbers = np.arange(2 * along_u + (0 if periodic else 1)), np.arange(2 * along_v + 1)
    halves = np.stack(np.meshgrid(*numbers, indexing="ij"), axis=-1).reshape(-1, 2)
    lines = (halves % 2 == 0).sum(axis=1)
    rim = (halves[:, 1] == 0) | (halves[:, 1] == 2 * along_v)
    if not periodic:
        rim |= (halves[:, 0] == 0) | (halves[:, 0] == 2 * along_u)
    kinds = (lines == 0, (lines == 1) & ~rim, (lines == 1) & rim)
    return np.vstack([halves[kind] for kind in kinds]) / [2.0 * along_u, 2.0 * along_v]


@dataclass(frozen=True)
class GluedMarkers:
    """Named markers on a body: the points (M, 3), corners of a triangle, that carry each, and their weights (M, 3)."""

    names: list[str]
    corners: NDArray[np.int64]
    weights: Array

    def positions(self, vertices: Array) -> Array:
        """Where they are on a shape with vertices (V, 3) m: (M, 3) m."""
        return np.einsum("mc,mcx->mx", self.weights, vertices[self.corners])


def glue_markers(surface: RestSurface, places: Array, placement_error: float, seed: int) -> GluedMarkers:
    """Glue markers on a resting surface, beside places (M, 2) by random errors of that standard deviation, m."""
    patches = surface.mesh.patches
    slopes = [matrix @ surface.control_points for matrix in patches.derivatives(places)]
    per_parameter = np.stack([np.linalg.norm(slope, axis=1) for slope in slopes], axis=1)
    errors = placement_error * np.random.default_rng(seed).standard_normal(places.shape)
    place, local = patches.split(places)
    corners, weights = np.empty((len(places), 3), dtype=np.int64), np.empty((len(places), 3))
    for number, mesh in enumerate(surface.mesh.meshes):
        on = place == number
        corners[on], weights[on] = _barycentric(mesh, mesh.patch.wrapped(local[on] + (errors / per_parameter)[on]))
    return GluedMarkers([f"m{number + 1:02d}" for number in range(len(places))], corners, weights)


def _barycentric(mesh: ParametrisedMesh, places: Array) -> tuple[NDArray[np.int64], Array]:
    """Vertices (M, 3) of the triangles that hold parameters (M, 2) of a patch, and the coordinates (M, 3) in them."""
    corner = mesh.corners
    # Solve place = corner_0 + s (corner_1 - corner_0) + t (corner_2 - corner_0) in every triangle.
    sides = np.linalg.inv(np.stack([corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]], axis=2))
    offset = places[:, None] - corner[None, :, 0]
    if mesh.patch.periodic:
        offset[..., 0] -= np.round(offset[..., 0])
    along = np.einsum("fij,mfj->mfi", sides, offset)
    weights = np.concatenate([1.0 - along.sum(axis=2, keepdims=True), along], axis=2)
    inside = weights.min(axis=2).argmax(axis=1)
    chosen = weights[np.arange(len(places)), inside]
    return np.asarray(mesh.kept[mesh.faces[inside]], dtype=np.int64), chosen


def described_markers(robot: Robot, body: LiveBody, placement_error: float, seed: int) -> GluedMarkers:
    """The markers that the robot's description asks for: over its surface, or the one on its tip."""
    if not robot.surfaces:
        return GluedMarkers([TIP_MARKER], np.full((1, 3), body.simulated.frames[TIP]), np.array([[1.0, 0.0, 0.0]]))
    surface = rest_surface_of(robot, body.simulated)
    return glue_markers(surface, marker_layout(surface, robot.markers), placement_error, seed)
