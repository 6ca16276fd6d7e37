"""Flattening of a mesh to the unit square by mean-value coordinates (Floater, CAGD 20, 2003).

Every inner vertex is a convex combination of its neighbours, so on a convex outline no triangle folds over (Tutte).
Left open by paper 000 (Sec. II-A, Fig. 3): the corners of the square are the four sharpest corners of the outline, or
four vertices at even distances along it where it has no four sharp ones; those between are placed by chord length. On a
ragged rim, which turns sharply at more than four, corners are where it turns within a twentieth of its length.
(0, 0) is the corner nearest to the lower left of the mesh (least x + y + z), and the outline runs (0, 0), (1, 0),
(1, 1), (0, 1) in the sense of the faces, so that du x dv points to the side where they turn counter-clockwise. For a
membrane with faces upwards: u is along x, v along y.

A tube is cut along a seam, the shortest path of edges between its two outlines. v runs from 0 on the outline with the
least mean of x + y + z to 1 on the other, u once around from the seam, along the first outline in the sense of the
faces. u is one more on the other edge of the seam; with that difference the seam's vertices are convex combinations of
their neighbours on both sides like all others, so that the seam leaves no trace in the flattening.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_matrix, csc_matrix, diags
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.sparse.linalg import splu

from softform_core.surface.mesh import (
    Array,
    Indices,
    ParametrisationError,
    boundary_loops,
    checked_mesh,
    directed_edges,
    doubled_areas,
    euler_characteristic,
    shared_edges,
)

_SHARP_TURN = np.pi / 4
"""Turn of an outline from which it has a corner, rad."""
_CORNER_PART = 0.05
"""Share of a ragged outline within which it turns at a corner."""

_SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])


class Flattened(NamedTuple):
    """A mesh in the plane.

    Attributes:
        uv: (V, 2) parameters of the vertices.
        faces: (F, 3) as given, but for edges that were flipped, since what they cut off would fold flat.
        flips: Number of these edges.
    """

    uv: Array
    faces: Indices
    flips: int


def parametrise(vertices: ArrayLike, faces: ArrayLike) -> Flattened:
    """Return parameters of the vertices of a rest mesh.

    Args:
        vertices: (V, 3), any unit.
        faces: (F, 3) indices of a connected, consistently oriented mesh with the topology of a disk.

    Returns:
        Parameters in the unit square; every triangle keeps its orientation.

    Raises:
        ParametrisationError: If the mesh holds NaN, is not a disk, is not manifold, has degenerate triangles, or has a
            triangle that is too thin in the plane to be told from one that folds flat, as on a long finger.
    """
    points, triangles = _flattenable(vertices, faces)
    loops = boundary_loops(triangles, len(points))
    if len(loops) != 1 or euler_characteristic(triangles, len(points)) != 1:
        raise ParametrisationError(
            f"The mesh is no disk: it has {len(loops)} outlines, handles, or vertices where sheets touch.",
            "Fill holes; describe a tube as a surface that is closed around u.",
        )
    uv, on_side = np.zeros((len(points), 2)), np.zeros((len(points), 4), dtype=bool)
    uv[loops[0]] = places = _outline_on_square(points, triangles, loops[0])
    on_side[loops[0]] = np.concatenate([places == 0.0, places == 1.0], axis=1)
    triangles, flips = _without_chords(triangles, on_side)
    uv = np.clip(_inner(points, triangles, uv, loops[0], np.zeros(triangles.shape)), 0.0, 1.0)
    _check_folds(uv[triangles])
    return Flattened(uv, triangles, flips)


def parametrise_tube(vertices: ArrayLike, faces: ArrayLike) -> Flattened:
    """Return parameters of a tube's vertices at rest; arguments as `parametrise`.

    Returns:
        Parameters with u around the tube in 0 ... 1; 0 and 1 are the same place.

    Raises:
        ParametrisationError: For the reasons of `parametrise`, and unless the mesh has exactly two outlines.
    """
    points, triangles = _flattenable(vertices, faces)
    loops = sorted(boundary_loops(triangles, len(points)), key=lambda loop: float(points[loop].sum(axis=1).mean()))
    if len(loops) != 2 or euler_characteristic(triangles, len(points)) != 0:
        raise ParametrisationError(
            f"The mesh is no tube: it has {len(loops)} outlines, handles, or vertices where sheets touch.",
            "Give a mesh that is open at two ends and has no holes.",
        )
    on_side = np.stack([np.isin(np.arange(len(points)), loop) for loop in loops], axis=1)
    triangles, flips = _without_chords(triangles, on_side)
    path = _seam_path(points, triangles, loops[0], loops[1])
    turns = _turns(triangles, path)
    uv = np.zeros((len(points), 2))
    for loop, start, end in ((loops[0], path[0], 0.0), (loops[1], path[-1], 1.0)):
        around = np.roll(loop, -int(np.flatnonzero(loop == start)[0]))
        lengths = np.linalg.norm(points[np.roll(around, -1)] - points[around], axis=1)
        fraction = (np.cumsum(lengths) - lengths) / lengths.sum()
        # The faces' sense runs with u along the first outline and against it along the second.
        uv[around, 0] = fraction if end == 0.0 else -fraction % 1.0
        uv[around, 1] = end
    uv = _inner(points, triangles, uv, np.concatenate(loops), turns)
    lifted = uv[triangles]
    lifted[..., 0] += turns
    _check_folds(lifted)
    uv[:, 0] %= 1.0
    return Flattened(uv, triangles, flips)


def _without_chords(faces: Indices, on_side: NDArray[np.bool_]) -> tuple[Indices, int]:
    """Flip edges inside the mesh that join two vertices of one side: all that they cut off would fold flat.

    Args:
        faces: (F, 3).
        on_side: (V, S) which vertices lie on which side.

    Returns:
        Faces (F, 3), and the number of flips.
    """
    faces, flips = faces.copy(), 0

    def share(one: Indices, other: Indices) -> NDArray[np.bool_]:
        return np.any(on_side[one] & on_side[other], axis=-1)

    while True:
        one, other = shared_edges(faces)
        corners = faces.ravel()
        a, b, c = (corners[one - one % 3 + (one + step) % 3] for step in range(3))
        d = corners[other - other % 3 + (other + 2) % 3]
        # Another chord would be no better: where several cut one piece off, the innermost is the first.
        chords = np.flatnonzero(share(a, b) & ~share(c, d))
        if not len(chords):
            return faces, flips
        flip = chords[0]
        faces[one[flip] // 3] = c[flip], a[flip], d[flip]
        faces[other[flip] // 3] = b[flip], c[flip], d[flip]
        flips += 1


def _flattenable(vertices: ArrayLike, faces: ArrayLike) -> tuple[Array, Indices]:
    points, triangles = checked_mesh(vertices, faces)
    unused = np.setdiff1d(np.arange(len(points)), triangles)
    if unused.size:
        raise ParametrisationError(f"{unused.size} vertices belong to no face.", "Remove them.")
    areas = doubled_areas(points, triangles)
    if (areas <= 1e-12 * np.ptp(points, axis=0).max() ** 2).any():
        raise ParametrisationError(
            f"Face {int(areas.argmin())} has no area.", "Remove degenerate triangles from the mesh."
        )
    return points, triangles


def _inner(points: Array, faces: Indices, uv: Array, outline: Indices, turns: Array) -> Array:
    """Return `uv` with all inner vertices as mean-value combinations of their neighbours.

    Along an edge of a face u differs by the difference of its vertices' u and of its corners' turns.
    """
    inner = np.ones(len(points), dtype=bool)
    inner[outline] = False
    if not inner.any():
        return uv
    start, end, weight, around = _mean_value_weights(points, faces, turns)
    weights = csc_matrix(coo_matrix((weight, (start, end)), shape=(len(points),) * 2)).tocsr()
    total = np.asarray(weights.sum(axis=1)).ravel()
    known = np.zeros_like(uv)
    known[:, 0] = np.bincount(start, weight * around, len(points)) / total
    weights = diags(1.0 / total) @ weights
    system = csc_matrix(diags(np.ones(inner.sum())) - weights[inner][:, inner])
    uv = uv.copy()
    uv[inner] = splu(system).solve(weights[inner][:, ~inner] @ uv[~inner] + known[inner])
    return uv


def _check_folds(corners: Array) -> None:
    """Raise if a triangle with corners (F, 3, 2) has no area in the plane, or a negative one."""
    along, across = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    areas = 0.5 * (along[:, 0] * across[:, 1] - along[:, 1] * across[:, 0])
    flipped = np.flatnonzero(areas <= 1e-14)
    if flipped.size:
        raise ParametrisationError(
            f"{flipped.size} of {len(corners)} triangles would fold flat, the first is face {flipped[0]}.",
            "Cut off what stands out like a finger, or export the mesh with triangles that are less thin.",
        )


def _seam_path(points: Array, faces: Indices, first: Indices, last: Indices) -> Indices:
    """Return the vertices of the shortest path of edges between both outlines; on a tie, to the first vertex."""
    last = np.sort(last)
    edges = np.unique(np.sort(directed_edges(faces).reshape(-1, 2), axis=1), axis=0)
    lengths = np.linalg.norm(points[edges[:, 1]] - points[edges[:, 0]], axis=1)
    graph = coo_matrix((lengths, edges.T), shape=(len(points),) * 2).tocsr()
    distance, before, _ = dijkstra(graph, directed=False, indices=first, return_predecessors=True, min_only=True)
    path = [int(last[distance[last].argmin()])]
    while before[path[-1]] >= 0:
        path.append(int(before[path[-1]]))
    return np.array(path[::-1])


def _turns(faces: Indices, path: Indices) -> Array:
    """Return 1 at corners (F, 3) that lie on the edge of the seam where u is one more, else 0.

    Corners of faces that meet at an edge off the seam are joined at its two ends; the components are the vertices of
    the mesh that is cut open. Faces whose edges run along the seam from v = 0 to v = 1 lie on the side of u = 1.
    """
    one, other = shared_edges(faces)
    edges = directed_edges(faces)
    flat = edges.reshape(-1, 2)
    step = dict(zip(path[:-1].tolist(), path[1:].tolist(), strict=True))
    forward = np.array([step.get(int(start)) == int(end) for start, end in flat])
    off_seam = ~(forward[one] | forward[other])
    one, other = one[off_seam], other[off_seam]

    def next_corner(edge: Indices) -> Indices:
        return edge - edge % 3 + (edge + 1) % 3

    # The faces turn alike: where one's edge starts, the other's ends.
    joins = np.concatenate([one, next_corner(one)]), np.concatenate([next_corner(other), other])
    _, label = connected_components(coo_matrix((np.ones(len(joins[0])), joins), (len(flat),) * 2), directed=False)
    ahead = np.flatnonzero(forward)
    beyond = np.union1d(label[ahead], label[next_corner(ahead)])
    return np.isin(label, beyond).reshape(faces.shape).astype(np.float64)


def _angles(points: Array, faces: Indices) -> Array:
    """Return angles of the triangles at their vertices, (F, 3) rad."""
    corners = points[faces]
    to_next = np.roll(corners, -1, axis=1) - corners
    to_last = np.roll(corners, 1, axis=1) - corners
    sine = np.linalg.norm(np.cross(to_next, to_last), axis=2)
    return np.arctan2(sine, np.einsum("fij,fij->fi", to_next, to_last))


def _mean_value_weights(points: Array, faces: Indices, turns: Array) -> tuple[Indices, Indices, Array, Array]:
    """Return shares of faces in the weights (tan(a / 2) + tan(b / 2)) / |p_i - p_j|, angles a, b beside ij at i.

    Returns:
        i, j, the share and the turns of j less those of i, (6 F,) each.
    """
    half_tangent = np.tan(0.5 * _angles(points, faces))
    shares = []
    for turn in (1, 2):
        neighbour = np.roll(faces, -turn, axis=1)
        distance = np.linalg.norm(points[neighbour] - points[faces], axis=2)
        around = np.roll(turns, -turn, axis=1) - turns
        shares.append([part.ravel() for part in (faces, neighbour, half_tangent / distance, around)])
    start, end, weight, around = (np.concatenate(parts) for parts in zip(*shares, strict=True))
    return start, end, weight, around


def _outline_on_square(points: Array, faces: Indices, outline: Indices) -> Array:
    """Return places of the outline's vertices on the border of the unit square, (B, 2)."""
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


def _corners(points: Array, faces: Indices, outline: Indices, chords: Array) -> Indices:
    """Return places in the outline, rising, of the vertices that become the corners of the square."""
    inside = np.zeros(len(points))
    np.add.at(inside, faces.ravel(), _angles(points, faces).ravel())
    turns = np.pi - inside[outline]
    travelled, length = np.cumsum(chords) - chords, float(chords.sum())
    if (turns > _SHARP_TURN).sum() > 4:
        between = np.abs(travelled[:, None] - travelled)
        nearness = np.maximum(1.0 - np.minimum(between, length - between) / (_CORNER_PART * length), 0.0)
        left, found = nearness @ turns, list[int]()
        while len(found) < 4 and left.max() > _SHARP_TURN:
            found.append(int(left.argmax()))
            left[nearness[found[-1]] > 0.0] = -np.inf
        if len(found) == 4:
            return np.sort(np.array(found))
    sharpest = np.argsort(-turns, kind="stable")[:4]
    if turns[sharpest[3]] > _SHARP_TURN:
        return np.sort(sharpest)
    start = int(points[outline].sum(axis=1).argmin())
    distance = (travelled - travelled[start]) % length
    along, quarters = np.argsort(distance, kind="stable"), np.arange(4)
    nearest = np.abs(distance[along] - quarters[:, None] * length / 4).argmin(axis=1)
    # Four vertices, also where two quarters are nearest to one.
    apart = np.maximum.accumulate(nearest - quarters) + quarters
    even = along[np.minimum(apart, len(along) - 4 + quarters)]
    return np.sort(even)
