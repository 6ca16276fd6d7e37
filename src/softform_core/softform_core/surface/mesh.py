"""Checks and topology of triangle meshes that are to be flattened."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_matrix, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.errors import SoftformError

Indices = NDArray[np.int64]

SAME_PLACE = 1e-6
"""Distance over the mesh's size below which two vertices are one."""

SEAM = 1e-5
"""Largest distance of the two sides of a seam, like `SAME_PLACE`."""


class ParametrisationError(SoftformError):
    """The mesh cannot be flattened."""


def checked_mesh(vertices: ArrayLike, faces: ArrayLike) -> tuple[Array, Indices]:
    """Return vertices (V, 3) and faces (F, 3) as arrays.

    Raises:
        ParametrisationError: If they have other shapes, there is no face, a face names a vertex that does not exist, or
            a vertex of a face is not finite.
    """
    points, triangles = np.asarray(vertices, dtype=np.float64), np.asarray(faces)
    if points.ndim != 2 or points.shape[1] != 3 or triangles.ndim != 2 or triangles.shape[1] != 3 or not len(triangles):
        raise ParametrisationError(
            f"Vertices of shape {points.shape} and faces of shape {triangles.shape} are no triangle mesh.",
            "Give vertices (V, 3) and faces (F, 3).",
        )
    if not np.issubdtype(triangles.dtype, np.integer) or triangles.min() < 0 or triangles.max() >= len(points):
        raise ParametrisationError("Faces must be indices of the vertices.", "Check the mesh.")
    used = np.unique(triangles)
    finite = np.isfinite(points[used]).all(axis=1)
    if not finite.all():
        raise ParametrisationError(f"Vertex {used[~finite][0]} is not finite.", "Correct the mesh.")
    return points, triangles.astype(np.int64)


def doubled_areas(points: Array, faces: Indices) -> Array:
    """Return twice the area of each face, (F,)."""
    a, b, c = points[faces].transpose(1, 0, 2)
    return np.asarray(np.linalg.norm(np.cross(b - a, c - a), axis=1))


def directed_edges(faces: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return the three edges of each face in its sense, (F, 3, 2): edge c runs from corner c to corner c + 1."""
    return np.stack([faces, np.roll(faces, -1, axis=1)], axis=2)


def border_edges(faces: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return which edges of `directed_edges` belong to one face only, (F, 3)."""
    starts, ends = directed_edges(faces).reshape(-1, 2).T
    pairs = np.minimum(starts, ends), np.maximum(starts, ends)
    # Sparse matrices sum what stands at one place: of an edge that is used once the second one holds its number.
    uses, numbers = (csr_array((values, pairs)) for values in (np.ones(faces.size, np.int32), np.arange(faces.size)))
    border = np.zeros(faces.size, dtype=bool)
    border[numbers.data[uses.data == 1]] = True
    return border.reshape(-1, 3)


def joined_vertices(points: Array, used: NDArray[np.integer], within: float = SAME_PLACE) -> Indices:
    """Return the first of those of the `used` vertices that lie at one place, for each of (V, 3); (V,).

    Places are one if they lie `within` this part of the size of all apart.
    """
    one = np.arange(len(points))
    if not len(used):
        return one
    places = points[used]
    pairs = cKDTree(places).query_pairs(within * float(np.ptp(places, axis=0).max()), output_type="ndarray")
    group = connected(pairs, len(used))
    _, first = np.unique(group, return_index=True)
    one[used] = used[first[group]]
    return one


def with_seams_joined(points: Array, faces: NDArray[np.integer]) -> Indices:
    """Return faces (F, 3) that name vertices (V, 3) at one place alike: a seam of textures, or of a soup, is no border.

    Only vertices on a border are looked at: inside a mesh there is nothing to be joined. What a file rounded, or wrote
    triangle by triangle, may lie `SEAM` of the size apart, but no more than a tenth of the shortest edge there.
    """
    edges = directed_edges(faces)[border_edges(faces)]
    if not len(edges):
        return faces.astype(np.int64)
    used = np.unique(edges)
    lengths = np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1)
    shortest = float(lengths.min() / max(np.ptp(points[used], axis=0).max(), 1e-300))
    return joined_vertices(points, used, max(SAME_PLACE, min(SEAM, 0.1 * shortest)))[faces]


def parts_of(faces: Indices) -> tuple[int, Indices]:
    """Return the number of parts that are connected by edges, and the part of each face."""
    edges = np.sort(directed_edges(faces).reshape(-1, 2), axis=1)
    _, edge = np.unique(edges, axis=0, return_inverse=True)
    face = np.repeat(np.arange(len(faces)), 3)
    label = connected(np.column_stack([face, len(faces) + edge.ravel()]), 4 * len(faces))
    found, part = np.unique(label[: len(faces)], return_inverse=True)
    return len(found), part


def border_loops(faces: NDArray[np.integer]) -> list[Indices]:
    """Return closed loops of vertices along `border_edges`; none passes a vertex twice. Open ends drop out."""
    edges = directed_edges(faces)[border_edges(faces)]
    ways: dict[int, list[int]] = {vertex: [] for vertex in np.unique(edges).tolist()}
    for a, b in edges.tolist():
        ways[a].append(b)
        ways[b].append(a)
    loops = []
    for start in ways:
        path, place = [start], {start: 0}
        while path:
            here = path[-1]
            if not ways[here]:
                del place[path.pop()]
                continue
            there = ways[here].pop()
            ways[there].remove(here)
            if there not in place:
                place[there] = len(path)
                path.append(there)
                continue
            first = place[there]
            loops.append(np.array(path[first:]))
            for vertex in path[first + 1 :]:
                del place[vertex]
            del path[first + 1 :]
    return loops


def connected(pairs: NDArray[np.integer], count: int) -> Indices:
    """Return the number of the connected component of each of `count` nodes, joined by pairs (N, 2)."""
    graph = coo_matrix((np.ones(len(pairs), dtype=bool), pairs.T), shape=(count, count))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def shared_edges(faces: Indices) -> tuple[Indices, Indices]:
    """Return pairs of edges at which just two faces meet, (N,) each, in `directed_edges(faces).reshape(-1, 2)`."""
    edges = np.sort(directed_edges(faces).reshape(-1, 2), axis=1)
    _, inverse, uses = np.unique(edges, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(inverse.ravel(), kind="stable")
    first = (np.cumsum(uses) - uses)[uses == 2]
    return order[first], order[first + 1]


def boundary_loops(faces: Indices, count: int) -> list[Indices]:
    """Return outlines of a connected mesh of `count` vertices, each in the sense of the faces.

    Raises:
        ParametrisationError: If the mesh is not manifold, not oriented, in parts or closed.
    """
    directed = directed_edges(faces).reshape(-1, 2)
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
    if (parts := int(connected(edges, count).max()) + 1) != 1:
        raise ParametrisationError(f"The mesh has {parts} separate parts.", "Give one connected mesh.")
    boundary = directed[~np.isin(keys, reverse)]
    if not len(boundary):
        raise ParametrisationError("The mesh is closed, it has no outline.", "Cut it along a seam first.")
    following = dict(boundary.tolist())
    if len(following) != len(boundary):
        raise ParametrisationError("Parts of the mesh touch in a single vertex of the outline.", "Separate them.")
    return loops_along(following)


def loops_along(following: dict[int, int]) -> list[Indices]:
    """Return the closed loops of vertices, each of which has one that follows it; `following` is used up."""
    loops = []
    while following:
        loop = [next(iter(following))]
        while (vertex := following.pop(loop[-1])) != loop[0]:
            loop.append(vertex)
        loops.append(np.array(loop))
    return loops


def euler_characteristic(faces: Indices, count: int) -> int:
    """Return vertices - edges + faces: 1 for a disk, 0 for a tube."""
    edges = np.unique(np.sort(directed_edges(faces).reshape(-1, 2), axis=1), axis=0)
    return count - len(edges) + len(faces)
