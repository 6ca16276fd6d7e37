"""Motion-capture markers on the real body: where they are meant to be, and where they are glued.

A marker is a flat reflective dot: it follows one material point of the body and weighs nothing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import TIP, TIP_MARKER, Robot
from softform_rig.live_body import LiveBody
from softform_rig.motion_capture import WornMarkers

MARKERS = 34
"""As many as the paper used (Sec. V-D)."""

_CANDIDATES = 129
"""A side of the grid of places among which the layout chooses."""

_FROM_RIM = 0.02
"""Of the sheet's size, between its rim and the markers beside it."""


def marker_layout(robot: Robot, count: int) -> Array:
    """Places for `count` markers on the flat sheet, (count, 2) m.

    First what the chambers ask for: their centres, where the sheet rises most; the middle of every wall between two
    chambers; the middle of every chamber's outer sides, close to the rim, where a clamp that slips shows. What is left
    goes, one by one, where the nearest marker or the rim is furthest.

    Raises:
        SoftformError: If there are fewer than four.
    """
    if count < 4:
        raise SoftformError(f"{count} markers are too few.", "Four at least are needed to register them.")
    chamber = robot.body.outlines()[0]
    chambers = np.rint(robot.extent / [chamber.width, chamber.height]).astype(int)
    # In halves of a chamber: odd numbers are centres, even ones walls or the rim.
    halves = np.stack(np.meshgrid(*(np.arange(2 * n + 1) for n in chambers), indexing="ij"), axis=-1).reshape(-1, 2)
    walls = (halves % 2 == 0).sum(axis=1)
    outer = ((halves == 0) | (halves == 2 * chambers)).any(axis=1)
    kinds = (walls == 0, (walls == 1) & ~outer, (walls == 1) & outer)
    places = np.vstack([halves[kind] for kind in kinds]) / (2.0 * chambers) - 0.5
    places = np.clip(places, _FROM_RIM - 0.5, 0.5 - _FROM_RIM)[:count]
    line = np.linspace(-0.5, 0.5, _CANDIDATES)
    grid = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    to_rim = (0.5 - np.abs(grid)).min(axis=1)
    while len(places) < count:
        room = np.minimum(cKDTree(places).query(grid)[0], to_rim)
        places = np.vstack([places, grid[room.argmax()]])
    return places * robot.extent


@dataclass(frozen=True)
class GluedMarkers:
    """Markers at fixed barycentric places of a mesh.

    Attributes:
        names: m01, m02, ...
        corners: (M, 3) vertices of the triangle that each sits on.
        weights: (M, 3) barycentric coordinates in it.
    """

    names: list[str]
    corners: NDArray[np.int64]
    weights: Array

    def positions(self, vertices: Array) -> Array:
        """Where they are on a shape with vertices (V, 3) m: (M, 3) m."""
        return np.einsum("mc,mcx->mx", self.weights, vertices[self.corners])


def glue_markers(
    rest_vertices: Array, faces: NDArray[np.integer], places: Array, placement_error: float, seed: int
) -> GluedMarkers:
    """Glue markers on a flat sheet, each a little beside its place.

    Args:
        rest_vertices: (V, 3) m, in the plane z = 0.
        faces: (F, 3).
        places: (M, 2) m.
        placement_error: Standard deviation along x and y, m.
        seed: Of these errors.
    """
    glued = places + placement_error * np.random.default_rng(seed).standard_normal(places.shape)
    corner = rest_vertices[faces, :2]
    # Solve glued = corner_0 + s (corner_1 - corner_0) + t (corner_2 - corner_0) in every triangle.
    sides = np.linalg.inv(np.stack([corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]], axis=2))
    along = np.einsum("fij,mfj->mfi", sides, glued[:, None] - corner[None, :, 0])
    weights = np.concatenate([1.0 - along.sum(axis=2, keepdims=True), along], axis=2)
    inside = weights.min(axis=2).argmax(axis=1)
    chosen = weights[np.arange(len(places)), inside]
    names = [f"m{number + 1:02d}" for number in range(len(places))]
    return GluedMarkers(names, np.asarray(faces[inside], dtype=np.int64), chosen)


@dataclass(frozen=True)
class TipMarker:
    """The one marker on the tip.

    Attributes:
        point: Which of the body's points the tip is.
        names: Its name, alone.
    """

    point: int
    names = [TIP_MARKER]

    def positions(self, points: Array) -> Array:
        """Where it is on a body with points (P, 3) m: (1, 3) m."""
        return points[[self.point]]


def worn_markers(robot: Robot, body: LiveBody, placement_error: float, seed: int) -> list[WornMarkers]:
    """The markers that the robot's description asks for: over its surface, on its tip, or both.

    Args:
        robot: The robot.
        body: Its body.
        placement_error: As `glue_markers`.
        seed: As `glue_markers`.
    """
    worn: list[WornMarkers] = []
    if robot.surfaces:
        worn.append(glue_markers(body.rest, body.faces, marker_layout(robot, MARKERS), placement_error, seed))
    if TIP in robot.frames:
        worn.append(TipMarker(body.simulated.frames[TIP]))
    return worn
