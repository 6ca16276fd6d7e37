"""Cleans a scan: removal of stray points, even thinning."""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from softform_core.arrays import Array

NEIGHBOURS = 8
"""Points that a point is compared with."""

LONELY = 4.0
"""A point is stray if it is lonelier than the median by more than this many spreads."""

OFF_PLANE = 0.4
"""A point is stray if it is further from its neighbours' plane than this share of its mean distance from them.

What it keeps of true and false points: docs/notes/open3d.md."""


def thinned_evenly(points: Array, spacing: float) -> Array:
    """Return one point for each cube of side `spacing` (m) that holds any: the mean of those in it, (M, 3) m.

    Where cameras overlap, or one is close, a cloud is denser; what is learned from it must not weigh more for that.
    """
    import open3d  # here, as it takes a second, and most scanners need no thinning

    cloud = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(points))
    return np.asarray(cloud.voxel_down_sample(spacing).points)


def not_stray(points: Array) -> NDArray[np.bool_]:
    """Return which of (N, 3) m points belong to a surface, (N,): neither lonely nor off their neighbours' plane.

    Loneliness is the mean distance to the neighbours, as in the statistical outlier removal of Rusu 2008, but against
    robust statistics: the median of all points and 1.4826 times the median absolute deviation (at least a quarter of
    the median, as an even grid has none). That alone misses what lies a few spacings off the surface; so the distance
    from the plane of the neighbours must be small against their distance too. Open3D's filters, which know distances
    alone, leave ten times as many false points even where they drop ten times as many true ones.
    """
    if len(points) <= NEIGHBOURS:
        return np.ones(len(points), dtype=bool)
    distances, indices = cKDTree(points).query(points, k=NEIGHBOURS + 1)
    loneliness = distances[:, 1:].mean(axis=1)
    median = float(np.median(loneliness))
    spread = max(1.4826 * float(np.median(np.abs(loneliness - median))), 0.25 * median)
    near = points[indices[:, 1:]]
    centre = near.mean(axis=1)
    near -= centre[:, None]
    normals = np.linalg.eigh(np.einsum("nki,nkj->nij", near, near))[1][:, :, 0]
    off_plane = np.abs(np.einsum("ni,ni->n", points - centre, normals))
    return (loneliness <= median + LONELY * spread) & (off_plane <= OFF_PLANE * loneliness)
