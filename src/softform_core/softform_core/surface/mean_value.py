"""Flattening of a disk-like mesh to the unit square by mean-value coordinates (Floater, CAGD 20, 2003).

Every inner vertex is a convex combination of its neighbours, so on a convex outline no triangle folds over (Tutte).
Left open by paper 000 (Sec. II-A, Fig. 3): the corners of the square are the four sharpest corners of the outline, or
four vertices at even distances along it where it has no four sharp ones; those between are placed by chord length.
(0, 0) is the corner nearest to the lower left of the mesh (least x + y + z), and the outline runs (0, 0), (1, 0),
(1, 1), (0, 1) in the sense of the faces, so that du x dv points to the side where they turn counter-clockwise. For a
membrane with faces upwards: u is along x, v along y.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_matrix, csc_matrix, diags
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from softform_core.errors import SoftformError

Array = NDArray[np.float64]
Faces = NDArray[np.int64]

# An outline that turns by more than this (rad) at a vertex has a corner there.
_SHARP_TURN = np.pi / 4

_SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])


class ParametrisationError(SoftformError):
    """The mesh cannot be flattened to a square."""


def parametrise(vertices: ArrayLike, faces: ArrayLike) -> Array:
    """Parameters of the vertices of a rest mesh.

    Args:
        vertices: (V, 3), any unit.
        faces: (F, 3) indices of a connected, consistently oriented mesh with the topology of a disk.

    Returns:
        uv (V, 2) in the unit square; every triangle keeps its orientation.

    Raises:
        ParametrisationError: If the mesh holds NaN, is not a disk, is not manifold, has degenerate triangles, or has a
            triangle that must fold flat because all of its vertices lie on one side of the square.
    """
    points, triangles = _checked_mesh(vertices, faces)
    outline = _outline(triangles, len(points))
    uv = np.zeros((len(points), 2))
    uv[outline] = _outline_on_square(points, triangles, outline)

    inner = np.ones(len(points), dtype=bool)
    inner[outline] = False
    if inner.any():
        weights = _mean_value_weights(points, triangles)[inner]
        weights = diags(1.0 / np.asarray(weights.sum(axis=1)).ravel()) @ weights
        system = csc_matrix(diags(np.ones(inner.sum())) - weights[:, inner])
        uv[inner] = splu(system).solve(weights[:, ~inner] @ uv[~inner])
    uv = np.clip(uv, 0.0, 1.0)

    flipped = np.flatnonzero(_signed_areas(uv, triangles) <= 1e-14)
    if flipped.size:
        raise ParametrisationError(
            f"{flipped.size} of {len(triangles)} triangles would fold flat, the first is face {flipped[0]}.",
            "Refine the mesh so that no triangle has all of its vertices on one side of the outline.",
        )
    return uv


def _checked_mesh(vertices: ArrayLike, faces: ArrayLike) -> tuple[Array, Faces]:
    points, triangles = np.asarray(vertices, dtype=np.float64), np.asarray(faces)
    if points.ndim != 2 or points.shape[1] != 3 or triangles.ndim != 2 or triangles.shape[1] != 3 or not len(triangles):
        raise ParametrisationError(
            f"Vertices of shape {points.shape} and faces of shape {triangles.shape} are no triangle mesh.",
            "Give vertices (V, 3) and faces (F, 3).",
        )
    if not np.issubdtype(triangles.dtype, np.integer) or triangles.min() < 0 or triangles.max() >= len(points):
        raise ParametrisationError("Faces must be indices of the vertices.", "Check the mesh.")
    if not np.isfinite(points).all():
        bad = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
        raise ParametrisationError(f"Vertex {bad} is not finite.", "Mend the mesh.")
    unused = np.setdiff1d(np.arange(len(points)), triangles)
    if unused.size:
        raise ParametrisationError(f"{unused.size} vertices belong to no face.", "Remove them.")
    a, b, c = points[triangles].transpose(1, 0, 2)
    doubled_area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    if (doubled_area <= 1e-12 * np.ptp(points, axis=0).max() ** 2).any():
        raise ParametrisationError(
            f"Face {int(doubled_area.argmin())} has no area.", "Remove degenerate triangles from the mesh."
        )
    return points, triangles.astype(np.int64)


def _outline(faces: Faces, count: int) -> NDArray[np.int64]:
    """Vertices of the one boundary loop, in the sense of the faces."""
    directed = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    keys = directed[:, 0] * count + directed[:, 1]
    reverse = directed[:, 1] * count + directed[:, 0]
    edges, uses = np.unique(np.sort(directed, axis=1), axis=0, return_counts=True)
    if (uses > 2).any():
        first, second = edges[int(np.argmax(uses > 2))]
        raise ParametrisationError(
            f"The mesh is not manifold: {uses.max()} faces meet at the edge of vertices {first} and {second}.",
            "Separate the faces.",
        )
    if np.unique(keys).size != keys.size:
        raise ParametrisationError("Neighbouring faces turn in opposite senses.", "Orient all faces alike.")
    parts, _ = connected_components(
        coo_matrix((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(count, count)), directed=False
    )
    if parts != 1:
        raise ParametrisationError(f"The mesh has {parts} separate parts.", "Give one connected mesh.")
    boundary = directed[~np.isin(keys, reverse)]
    if not len(boundary):
        raise ParametrisationError("The mesh is closed, it has no outline.", "Cut it along a seam first.")
    following = dict(boundary.tolist())
    if len(following) != len(boundary):
        raise ParametrisationError("Parts of the mesh touch in a single vertex of the outline.", "Separate them.")
    loop = [int(boundary[0, 0])]
    while (vertex := following[loop[-1]]) != loop[0]:
        loop.append(vertex)
    if len(loop) != len(boundary) or count - len(edges) + len(faces) != 1:
        raise ParametrisationError(
            "The mesh is no disk: it has holes, handles, or vertices where sheets touch.", "Fill or cut them first."
        )
    return np.array(loop)


def _angles(points: Array, faces: Faces) -> Array:
    """Angles of the triangles at their vertices, (F, 3) rad."""
    corners = points[faces]
    to_next = np.roll(corners, -1, axis=1) - corners
    to_last = np.roll(corners, 1, axis=1) - corners
    sine = np.linalg.norm(np.cross(to_next, to_last), axis=2)
    return np.arctan2(sine, np.einsum("fij,fij->fi", to_next, to_last))


def _signed_areas(uv: Array, faces: Faces) -> Array:
    a, b, c = (uv[faces[:, corner]].T for corner in range(3))
    return 0.5 * ((b - a)[0] * (c - a)[1] - (b - a)[1] * (c - a)[0])


def _mean_value_weights(points: Array, faces: Faces) -> csc_matrix:
    """(tan(a / 2) + tan(b / 2)) / |p_i - p_j| at row i, column j, for the angles a and b beside edge ij at i."""
    half_tangent = np.tan(0.5 * _angles(points, faces))
    rows, columns, values = [], [], []
    for turn in (1, 2):
        neighbour = np.roll(faces, -turn, axis=1)
        distance = np.linalg.norm(points[neighbour] - points[faces], axis=2)
        rows.append(faces.ravel())
        columns.append(neighbour.ravel())
        values.append((half_tangent / distance).ravel())
    return csc_matrix(
        coo_matrix((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(len(points),) * 2)
    ).tocsr()


def _outline_on_square(points: Array, faces: Faces, outline: NDArray[np.int64]) -> Array:
    """Places of the outline's vertices on the border of the unit square, (B, 2)."""
    if len(outline) < 4:
        raise ParametrisationError("The outline has fewer than four vertices.", "Refine the mesh.")
    chords = np.linalg.norm(points[np.roll(outline, -1)] - points[outline], axis=1)
    corners = _corners(points, faces, outline, chords)
    lowest = int(points[outline[corners]].sum(axis=1).argmin())
    corners = np.roll(corners, -lowest)
    places = np.zeros((len(outline), 2))
    for side in range(4):
        start, end = corners[side], corners[(side + 1) % 4]
        members = np.arange(start, end if end > start else end + len(outline))
        lengths = chords[members % len(outline)]
        fraction = (np.cumsum(lengths) - lengths) / lengths.sum()
        places[members % len(outline)] = _SQUARE[side] + fraction[:, None] * (_SQUARE[(side + 1) % 4] - _SQUARE[side])
    return places


def _corners(points: Array, faces: Faces, outline: NDArray[np.int64], chords: Array) -> NDArray[np.int64]:
    """Places in the outline, rising, of the vertices that become the corners of the square."""
    inside = np.zeros(len(points))
    np.add.at(inside, faces.ravel(), _angles(points, faces).ravel())
    turns = np.pi - inside[outline]
    sharpest = np.argsort(-turns, kind="stable")[:4]
    if turns[sharpest[3]] > _SHARP_TURN:
        return np.sort(sharpest)
    travelled = np.cumsum(chords) - chords
    start = int(points[outline].sum(axis=1).argmin())
    distance = (travelled - travelled[start]) % chords.sum()
    even = np.array([int(np.abs(distance - quarter * chords.sum() / 4).argmin()) for quarter in range(4)])
    if np.unique(even).size < 4:
        raise ParametrisationError("The outline has too few vertices for four corners.", "Refine the mesh.")
    return np.sort(even)
