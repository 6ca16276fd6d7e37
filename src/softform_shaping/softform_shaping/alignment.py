"""Where the cloud lies against the mesh: point-to-plane ICP by Open3D, its fitness (Eq. 10), and what swung aside."""

from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_shaping.visual_mesh import VisualMesh

__all__ = ["Alignment", "align", "swung"]

_FEWEST = 30
_ITERATIONS = 30
_SWINGS, _TWISTED = np.linspace(-np.pi, np.pi, 24, endpoint=False), 0.25
"""Angles that are tried, and the share of its length at each end over which what swings is twisted."""
_FARTHEST = 3.0
"""Of the reach, how far one ICP may move the cloud: planes leave a flat side free to slide, and it then has no end."""


class Alignment(NamedTuple):
    """Result of ICP.

    Attributes:
        motion: T, which takes the cloud to the mesh.
        fitness: Share of the cloud's points that have a correspondence.
        pairs: (K, 2) those: points of the cloud, visual nodes.
    """

    motion: RigidTransform
    fitness: float
    pairs: NDArray[np.int64]


def align(cloud: Array, places: Array, normals: Array, reach: float, start: RigidTransform | None = None) -> Alignment:
    """Eq. 10 and T of a cloud (N, 3) m to visual nodes (Q, 3) m with normals (Q, 3).

    Printed is fit = correspondences / points of the target, which a camera that sees one side can hardly lift above a
    half; Open3D, which the paper uses, divides by those of the source, the cloud, and so does this.

    Args:
        cloud: What the camera saw.
        places: Visual nodes.
        normals: Of those.
        reach: Largest distance of a correspondence, m.
        start: T of before.

    Raises:
        SoftformError: If there are too few points to align.
    """
    if len(cloud) < _FEWEST:
        raise SoftformError(
            f"The camera sees {len(cloud)} points of the object; {_FEWEST} are needed.",
            "Look whether it is covered, or whether its colour is that of something else.",
        )
    o3d = import_module("open3d")  # takes a second: here, for who reads a description needs none of it
    source, target = o3d.geometry.PointCloud(), o3d.geometry.PointCloud()
    source.points = o3d.utility.Vector3dVector(cloud)
    target.points, target.normals = o3d.utility.Vector3dVector(places), o3d.utility.Vector3dVector(normals)
    begin = np.eye(4)
    if start is not None:
        begin[:3, :3], begin[:3, 3] = start.rotation, start.translation
    registration = o3d.pipelines.registration
    found = registration.registration_icp(
        source,
        target,
        reach,
        begin,
        registration.TransformationEstimationPointToPlane(),
        registration.ICPConvergenceCriteria(max_iteration=_ITERATIONS),
    )
    matrix = np.asarray(found.transformation)
    moved = cloud @ (matrix[:3, :3] - begin[:3, :3]).T + matrix[:3, 3] - begin[:3, 3]
    if not np.abs(moved).max() <= _FARTHEST * reach:  # not even a number, or slid away along itself
        found, matrix = registration.evaluate_registration(source, target, reach, begin), begin
    pairs = np.asarray(found.correspondence_set, dtype=np.int64).reshape(-1, 2)
    return Alignment(RigidTransform(matrix[:3, :3].copy(), matrix[:3, 3].copy()), float(found.fitness), pairs)


def swung(shapes: Sequence[Array], held: Sequence[NDArray[np.int64]], visual: VisualMesh, cloud: Array) -> Array:
    """Of shapes (V, 3) m, swung by any angle about the line between their `held` nodes, the one nearest to a cloud."""
    tree, best, least = cKDTree(cloud), shapes[0], np.inf
    for nodes in shapes:
        left, right = (nodes[one].mean(axis=0) for one in held)
        length = np.linalg.norm(right - left)
        along = (right - left) / length
        share = (nodes - left) @ along / length
        share = np.clip(share / _TWISTED, 0.0, 1.0) * np.clip((1.0 - share) / _TWISTED, 0.0, 1.0)
        for angle in _SWINGS:
            turned = left + Rotation.from_rotvec(np.outer(angle * share, along)).apply(nodes - left)
            places = visual.places(turned)
            off = cKDTree(places).query(cloud)[0].mean() + tree.query(places)[0].mean()
            if off < least:
                best, least = turned, off
    return best
