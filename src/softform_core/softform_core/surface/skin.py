"""A skin: a mesh whose vertices ride on a robot's surface or bones (paper 002, Sec. III), bound by `softform skin`.

A place on it is named by (u, v) in the unit square as on a patch: its triangles stand in a map of equal square cells,
each in one of its own, so that places in all of them have different parameters.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.surface.anchors import Anchors
from softform_core.surface.bspline import checked_uv

_MARGIN, _PART = 0.25, 0.5
"""Of a cell: where its triangle begins, and how much of it it takes; what lies near its edges is rounded into it."""

_KEPT = 256
_MATRICES = "places", "shares", "offsets"


def cells_of(triangles: int) -> int:
    """Return the cells along u and along v of a map that has so many triangles."""
    return ceil(sqrt(triangles))


def places_in_map(uv: ArrayLike, triangles: int) -> tuple[NDArray[np.int64], Array]:
    """Return triangle (M,) and barycentric weights (M, 3) of (u, v), (M, 2), in a map of so many triangles.

    Raises:
        SoftformError: If a cell of the map holds no triangle, or uv are no parameters.
    """
    cells = cells_of(triangles)
    scaled = checked_uv(uv) * cells
    cell = np.minimum(scaled.astype(np.int64), cells - 1)
    triangle = cell[:, 0] * cells + cell[:, 1]
    if (beyond := triangle >= triangles).any():
        u, v = np.asarray(uv)[beyond.argmax()]
        raise SoftformError(f"The skin has no point u = {u:g}, v = {v:g}.", "Pick a point of it.")
    later = np.clip((scaled - cell - _MARGIN) / _PART, 0.0, 1.0)
    later /= np.maximum(later.sum(axis=1, keepdims=True), 1.0)
    return triangle, np.column_stack([1.0 - later.sum(axis=1), later])


@dataclass(frozen=True, eq=False)
class Skin:
    """A mesh on the samples of a robot's surface, or on its bones; lengths in m.

    Attributes:
        vertices: (V, 3), as it was bound to the robot at rest.
        triangles: (T, 3).
        anchors: V anchors on the Q points of `Robot.rider_parameters`.
        card: Provenance, and what it was bound to.
    """

    vertices: Array
    triangles: NDArray[np.int64]
    anchors: Anchors
    card: dict[str, Any]
    _anchored: dict[bytes, tuple[Array, Anchors]] = field(default_factory=dict)

    @property
    def samples(self) -> int:
        """Number Q of points that it rides on."""
        return int(self.anchors.places.shape[1])

    def points(self, surface: Array) -> Array:
        """Return its vertices (V, 3) on surface points (Q, 3), m."""
        return self.anchors.points(surface)

    @cached_property
    def cells(self) -> int:
        """Cells of the map along u and along v."""
        return cells_of(len(self.triangles))

    def parameters(self, triangle: ArrayLike, weights: ArrayLike) -> Array:
        """Return (u, v), (M, 2), of places by triangle (M,) and barycentric weights (M, 3)."""
        cell = np.stack(np.divmod(np.asarray(triangle), self.cells), axis=-1)
        return np.asarray((cell + _MARGIN + _PART * np.asarray(weights)[..., 1:]) / self.cells)

    def places(self, uv: ArrayLike) -> tuple[NDArray[np.int64], Array]:
        """Return triangle (M,) and barycentric weights (M, 3) of (u, v), (M, 2); the reverse of `parameters`.

        Raises:
            SoftformError: If a cell of the map holds no triangle, or uv are no parameters.
        """
        return places_in_map(uv, len(self.triangles))

    def anchored(self, uv: Array, rider_parameters: Callable[[int], Array]) -> tuple[Array, Anchors]:
        """Return the parameters (Q', 2) that places (M, 2) of the skin need, and the places as anchors on them.

        Args:
            uv: (M, 2) parameters on the skin.
            rider_parameters: Parameters of so many points that skins of the robot ride on.

        Raises:
            SoftformError: As `places`.
        """
        key = np.asarray(uv, dtype=np.float64).tobytes()
        if key not in self._anchored:  # a point that is dragged is asked for again and again
            if len(self._anchored) >= _KEPT:
                self._anchored.clear()
            self._anchored[key] = self._anchored_anew(uv, rider_parameters)
        return self._anchored[key]

    def _anchored_anew(self, uv: Array, rider_parameters: Callable[[int], Array]) -> tuple[Array, Anchors]:
        triangle, weights = self.places(uv)
        rows = np.repeat(np.arange(len(uv)), 3)
        columns = self.triangles[triangle].ravel()
        blend = csr_matrix((weights.ravel(), (rows, columns)), shape=(len(uv), len(self.vertices)))
        anchors, needed = self.anchors.blended(blend)
        return rider_parameters(self.samples)[needed], anchors

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a file keeps; `of_arrays` makes a skin of it."""
        kept: dict[str, NDArray[Any]] = {
            "vertices": self.vertices,
            "triangles": self.triangles.astype(np.int32),
            "frames": self.anchors.frames.astype(np.int32),
            "card": np.array(json.dumps(self.card)),
        }
        for name in _MATRICES:
            matrix = getattr(self.anchors, name)
            kept |= {f"{name}_{part}": getattr(matrix, part) for part in ("data", "indices", "indptr")}
            kept[f"{name}_shape"] = np.array(matrix.shape)
        return kept

    @classmethod
    def of_arrays(cls, kept: Any) -> "Skin":
        """Return the skin of what a file has kept.

        Raises:
            KeyError, ValueError: If it is no skin.
        """
        matrices = {
            name: csr_matrix(
                tuple(kept[f"{name}_{part}"] for part in ("data", "indices", "indptr")), tuple(kept[f"{name}_shape"])
            )
            for name in _MATRICES
        }
        for matrix in matrices.values():
            matrix.check_format()
        anchors = Anchors(frames=kept["frames"].astype(np.int64), **matrices)
        vertices, triangles = kept["vertices"].astype(np.float64), kept["triangles"].astype(np.int64)
        places, count = anchors.places.shape[0], len(vertices)
        fits = (
            (vertices.shape, triangles.shape[1:], anchors.frames.shape[1:]) == ((count, 3), (3,), (3,))
            and anchors.shares.shape == (count, places)
            and anchors.offsets.shape == (count, 3 * len(anchors.frames))
        )
        numbers = vertices, *(matrix.data for matrix in matrices.values())
        if not fits or not all(np.isfinite(each).all() for each in numbers) or not len(triangles):
            raise ValueError("its arrays do not fit together")
        for indices, end in ((triangles, count), (anchors.frames, places)):
            if indices.size and not 0 <= indices.min() <= indices.max() < end:
                raise ValueError("an index is out of range")
        return cls(vertices, triangles, anchors, json.loads(str(kept["card"])))
