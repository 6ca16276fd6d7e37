"""A target placed on the resting robot, for files that do not say where it lies."""

import numpy as np
from scipy.spatial.transform import Rotation

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform, centroid
from softform_core.robots import Robot
from softform_core.shapes.target import TargetShape
from softform_core.surface.mesh import border_edges, directed_edges

_SAMPLES = 20_000
_FACES = 0.1
"""A mean normal of this length says which side is up."""
_OPEN_SIDES = 3
"""A mesh with fewer edges that belong to one triangle only is closed: it has no rim."""


def placement(target: TargetShape, robot: Robot) -> RigidTransform:
    """The motion that centres a target on the resting robot and lays its resting plane on the plane z = 0.

    The resting plane is fitted to the rim of a mesh; to all points of a cloud or of a closed mesh, whose lowest 2 %
    then come to z = 0. The outside of a mesh comes up, of others the side that was up. Nothing is turned about z.

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
    rim = _rim(target)
    fitted = target.sample(_SAMPLES).points if rim is None else rim
    middle = centroid(fitted)
    normal = np.linalg.svd((fitted - middle).T @ (fitted - middle))[0][:, 2]
    up = target.facing
    if not np.linalg.norm(up) > _FACES:
        up = np.array([0.0, 0.0, 1.0])
    if normal @ up < 0.0:
        normal = -normal
    turn = Rotation.align_vectors([[0.0, 0.0, 1.0]], normal[None])[0].as_matrix()
    laid = fitted @ turn.T
    shift = -0.5 * (laid.min(axis=0) + laid.max(axis=0))
    shift[2] = -laid[:, 2].mean() if rim is not None else -np.percentile(laid[:, 2], 2.0)
    return RigidTransform(turn, shift)


def placed(target: TargetShape, robot: Robot) -> TargetShape:
    """The target at its `placement`; raises as that does."""
    motion = placement(target, robot)
    return target.transformed(motion.rotation, motion.translation)


def _rim(target: TargetShape) -> Array | None:
    """Vertices (n, 3) of the edges that belong to one triangle only, m; None of a cloud or a closed mesh."""
    if target.faces is None:
        return None
    border = directed_edges(target.faces)[border_edges(target.faces)]
    return target.points[np.unique(border)] if len(border) >= _OPEN_SIDES else None
