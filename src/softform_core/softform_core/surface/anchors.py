"""Anchors: places that ride on a surface, as means of its points and by offsets in frames that its points span."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_diag, csr_matrix, identity

from softform_core.arrays import Array

_LEAST = 1e-300


@dataclass(frozen=True, eq=False)
class Anchors:
    """M anchors on Q points x of a surface; linear blend skinning (paper 002, Sec. III) is one case.

    With y = places x and frames R_j at origins o_j that three of the y span, anchor i lies at ::

        s_i = sum_p shares_ip y_p + sum_j R_j l_ij

    which for shares W_ij on the origins o_j and l_ij = W_ij (R_j^bind)^T (s_i^bind - o_j^bind) is the paper's
    s_i = sum_j W_ij B_j s_i^bind with B_j = B_j^curr (B_j^bind)^-1. Lengths in one unit, whichever.

    Attributes:
        places: (P, Q), rows sum to 1: means of surface points.
        frames: (K, 3) places: origin, where the x axis points to, and a third one on the side of the y axis, which
            says the roll about x.
        shares: (M, P), rows sum to 1.
        offsets: (M, 3 K), the l_ij.
    """

    places: csr_matrix
    frames: NDArray[np.int64]
    shares: csr_matrix
    offsets: csr_matrix

    def are_as(self, other: "Anchors") -> bool:
        """Whether others are the same, number by number."""
        mine, theirs = (
            [
                part
                for each in (one.places, one.shares, one.offsets)
                for part in (each.shape, each.indptr, each.indices, each.data)
            ]
            for one in (self, other)
        )
        return all(map(np.array_equal, [self.frames, *mine], [other.frames, *theirs]))

    @classmethod
    def mean(cls, count: int) -> "Anchors":
        """Return one anchor, the mean of `count` points."""
        shares = csr_matrix(np.full((1, count), 1.0 / count))
        return cls(identity(count, format="csr"), np.zeros((0, 3), np.int64), shares, csr_matrix((1, 0)))

    @classmethod
    def joined(cls, parts: "Sequence[Anchors]") -> "Anchors":
        """Return anchors on the points of all parts, one after the other."""
        starts = np.cumsum([0, *(part.places.shape[0] for part in parts)])
        frames = [part.frames + start for part, start in zip(parts, starts, strict=False)]
        matrices = zip(*((part.places, part.shares, part.offsets) for part in parts), strict=True)
        places, shares, offsets = (block_diag(each, "csr") for each in matrices)
        return cls(places, np.concatenate(frames), shares, offsets)

    def __len__(self) -> int:
        """Return the number M of anchors."""
        return int(self.shares.shape[0])

    def blended(self, blend: csr_matrix) -> "tuple[Anchors, NDArray[np.int64]]":
        """Return anchors blend (B, M) s, and which (Q',) of the points they need: theirs alone are to be given them."""
        shares, offsets = csr_matrix(blend @ self.shares), csr_matrix(blend @ self.offsets)
        used_frames = np.unique(offsets.indices // 3)
        own = self.frames[used_frames]
        used = np.union1d(shares.indices, own)
        columns = (3 * used_frames[:, None] + np.arange(3)).ravel()
        places = self.places[used]
        points = np.unique(places.indices)
        parts = places[:, points], np.searchsorted(used, own), shares[:, used], offsets[:, columns]
        return Anchors(*parts), points

    def points(self, surface: Array) -> Array:
        """Return the anchors (M, 3) on surface points (Q, 3)."""
        places = self.places @ surface
        return np.asarray(self.shares @ places + self.offsets @ _Frames(places[self.frames]).axes.reshape(-1, 3))

    def jacobian(self, surface: Array, derivative: Array) -> Array:
        """Return the derivative of the anchors, (M, 3, k), from that of the points (Q, 3), (Q, 3, k)."""
        inputs = derivative.shape[2]
        moves = self.places @ derivative.reshape(len(derivative), -1)
        turns = _Frames((self.places @ surface)[self.frames]).moved(moves.reshape(-1, 3, inputs)[self.frames])
        both = self.shares @ moves + self.offsets @ turns.reshape(-1, 3 * inputs)
        return np.asarray(both).reshape(-1, 3, inputs)


class _Frames:
    """Axes of frames at three places each (K, 3, 3): x to the second place, z across all three, y = z cross x."""

    def __init__(self, corners: Array) -> None:
        self._x, self._side = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
        normal = np.cross(self._x, self._side)
        self._length, self._normal_length = _length(self._x), _length(normal)
        along, across = self._x / self._length, normal / self._normal_length
        self.axes = np.stack([along, np.cross(across, along), across], axis=1)

    def moved(self, moves: Array) -> Array:
        """Return the derivative of the axes, (K, 3, 3, k), from that of the places, (K, 3, 3, k): place, xyz, input."""
        x_moves, side_moves = moves[:, 1] - moves[:, 0], moves[:, 2] - moves[:, 0]
        along, across = self.axes[:, 0, :, None], self.axes[:, 2, :, None]
        normal_moves = _cross(x_moves, self._side[..., None]) + _cross(self._x[..., None], side_moves)
        along_moves = _unit_moves(along, self._length, x_moves)
        across_moves = _unit_moves(across, self._normal_length, normal_moves)
        y_moves = _cross(across_moves, along) + _cross(across, along_moves)
        return np.stack([along_moves, y_moves, across_moves], axis=1)


def _length(vectors: Array) -> Array:
    return np.maximum(np.linalg.norm(vectors, axis=1), _LEAST)[:, None]


def _cross(a: Array, b: Array) -> Array:
    first, second = np.broadcast_arrays(a, b)
    return np.asarray(np.cross(first, second, axis=1))


def _unit_moves(unit: Array, length: Array, moves: Array) -> Array:
    """Derivative of v / |v| (K, 3, k) from that of v: what lies along v does not turn it."""
    return np.asarray((moves - unit * (unit * moves).sum(axis=1, keepdims=True)) / length[..., None])


def frame_axes(corners: Array) -> Array:
    """Return the axes (K, 3, 3), one a row, of frames at three places each, (K, 3, 3)."""
    return _Frames(corners).axes
