"""Linear blend skinning (paper 002, Sec. III): vertices as anchors that follow frames along a robot."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, identity

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.surface.anchors import Anchors, frame_axes

_FLAT = 1e-6


def on_bones(bones: Array, vertices: Array) -> tuple[Anchors, Array]:
    """Return vertices (V, 3) m as anchors on bones along a line at rest, and their distances (V,) from it, m.

    Args:
        bones: (B, 3, 3) m, places of each: origin, where x points to, and a third one that says the roll about x.
        vertices: At rest.
    """
    points = bones.reshape(-1, 3)
    frames = np.arange(len(points)).reshape(-1, 3)
    index, weights, distances = along_spine(points[frames[:, 0]], vertices)
    return skinned(points, identity(len(points), format="csr"), frames, vertices, index, weights), distances


def along_spine(middles: Array, vertices: Array) -> tuple[NDArray[np.int64], Array, Array]:
    """Return the two bones (V, 2) that each vertex follows, how much, smoothly from one to the next, and its distance.

    The distance is that from the line through the origins of the bones, (V,).
    """
    start, way = middles[:-1], np.diff(middles, axis=0)
    part = np.einsum("vbx,bx->vb", vertices[:, None] - start, way) / np.maximum((way**2).sum(axis=1), 1e-300)
    part = np.clip(part, 0.0, 1.0)
    distances = np.linalg.norm(vertices[:, None] - start - part[..., None] * way, axis=2)
    nearest = distances.argmin(axis=1)
    t = np.take_along_axis(part, nearest[:, None], axis=1)[:, 0]
    later = t * t * (3.0 - 2.0 * t)
    return np.stack([nearest, nearest + 1], axis=1), np.stack([1.0 - later, later], axis=1), distances.min(axis=1)


def skinned(
    surface: Array,
    places: csr_matrix,
    frames: NDArray[np.int64],
    vertices: Array,
    bones: NDArray[np.int64],
    weights: Array,
) -> Anchors:
    """Return vertices (V, 3) as anchors that follow bones (V, w) by weights (V, w), rows of which sum to 1.

    Raises:
        SoftformError: If a frame has no axes: its places coincide or lie on one line.
    """
    at = (places @ surface)[frames]
    axes = frame_axes(at)
    used = np.unique(bones[weights > 0.0])
    spans = np.linalg.norm(np.cross(at[used, 1] - at[used, 0], at[used, 2] - at[used, 0]), axis=1)
    if (spans <= (_FLAT * np.ptp(surface, axis=0).max()) ** 2).any():
        raise SoftformError(
            "The surface at rest has points that coincide, where no frame is.", "Bind with other --samples."
        )
    away = vertices[:, None] - at[bones, 0]
    local = weights[..., None] * np.einsum("vwax,vwx->vwa", axes[bones], away)
    count, width = bones.shape
    rows = np.repeat(np.arange(count), width)
    shares = csr_matrix((weights.ravel(), (rows, frames[bones, 0].ravel())), shape=(count, places.shape[0]))
    columns = (3 * bones[..., None] + np.arange(3)).ravel()
    offsets = csr_matrix((local.ravel(), (np.repeat(rows, 3), columns)), shape=(count, 3 * len(frames)))
    for matrix in (shares, offsets):
        matrix.eliminate_zeros()
    return Anchors(places, frames, shares, offsets)
