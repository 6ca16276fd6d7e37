"""A target placed on the resting robot, for files that do not say where it lies."""

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform, centroid
from softform_core.robots import Robot
from softform_core.shapes.shape import NEIGHBOURS, Shape
from softform_core.surface.mesh import border_loops, doubled_areas, parts_of, with_seams_joined

_SAMPLES = 20_000
_FACES = 0.1
"""A mean normal of this length says which side is up."""
_OPEN_PART = 0.1
"""Of its area: a mesh whose largest opening is smaller is closed, but for holes of the scan."""
_ALONE = 10.0
"""Times the usual spacing: a point of a cloud that is so far from its next ones belongs to something else."""


def placement(target: Shape, robot: Robot) -> RigidTransform:
    """The motion that centres a target on the resting robot and lays its resting plane on the plane z = 0.

    The resting plane is fitted to the rim of a mesh, the longest closed loop of border edges of its largest part; to
    all points of a cloud or of a closed mesh, whose lowest 2 % then come to z = 0. The outside of a mesh comes up, of
    others the side that was up. Nothing is turned about z: a mesh that lies face down is turned over about x.

    Args:
        target: The shape to place, m.
        robot: Robot with a surface about the origin of its frame, at rest in z = 0.

    Raises:
        SoftformError: If the robot has no surface.
    """
    if not robot.surfaces:
        raise SoftformError(
            f"Robot '{robot.name}' has no surface to place a target on.", "Give a robot with a surface."
        )
    body, rim = _body_and_rim(target)
    fitted = body.sample(_SAMPLES).points if rim is None else rim
    middle = centroid(fitted)
    normal = np.linalg.svd((fitted - middle).T @ (fitted - middle))[0][:, 2]
    up = body.facing
    if not np.linalg.norm(up) > _FACES:
        up = np.array([0.0, 0.0, 1.0])
    if normal @ up < 0.0:
        normal = -normal
    # What lies face down is first turned about x: the shortest turn would be about an axis that noise chooses.
    over = np.diag([1.0, -1.0, -1.0]) if normal[2] < 0.0 else np.eye(3)
    turn = Rotation.align_vectors([[0.0, 0.0, 1.0]], (over @ normal)[None])[0].as_matrix() @ over
    laid = fitted @ turn.T
    shift = -0.5 * (laid.min(axis=0) + laid.max(axis=0))
    shift[2] = -laid[:, 2].mean() if rim is not None else -np.percentile(laid[:, 2], 2.0)
    return RigidTransform(turn, shift)


def placed(target: Shape, robot: Robot) -> Shape:
    """The target at its `placement`; raises as that does."""
    motion = placement(target, robot)
    return target.transformed(motion.rotation, motion.translation)


def _body_and_rim(target: Shape) -> tuple[Shape, Array | None]:
    """The target without what was scanned beside it, and the vertices (n, 3) m of its rim; None if it has none."""
    points = target.points
    if target.faces is None:
        spacing = cKDTree(points).query(points, k=min(NEIGHBOURS, len(points)))[0][:, -1]
        kept = spacing <= _ALONE * np.median(spacing)
        return Shape(points[kept], None if target.normals is None else target.normals[kept]), None
    faces = with_seams_joined(points, target.faces)
    _, first = np.unique(np.sort(faces, axis=1), axis=0, return_index=True)
    faces = faces[first[np.diff(np.sort(faces[first], axis=1), axis=1).all(axis=1)]]
    part = parts_of(faces)[1]
    faces = faces[part == np.bincount(part, doubled_areas(points, faces)).argmax()]
    body = Shape(points, None, faces)
    loops = [points[loop] for loop in border_loops(faces)]
    rim = max(loops, key=lambda loop: np.linalg.norm(loop - np.roll(loop, 1, axis=0), axis=1).sum(), default=None)
    if rim is not None:
        enclosed = np.linalg.norm(np.cross(rim, np.roll(rim, 1, axis=0)).sum(axis=0))
        rim = None if enclosed < _OPEN_PART * doubled_areas(points, faces).sum() else rim
    return body, rim
