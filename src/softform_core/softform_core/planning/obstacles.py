"""Obstacles that the surface must keep clear of: a mesh or a cloud, checked; metres outside, millimetres inside."""

import fcl
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.triangle_tree import TriangleTree
from softform_core.geometry.winding import lies_within
from softform_core.inverse.closest_points import MeshSearch
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape
from softform_core.shapes.validate import check_points, units_within
from softform_core.units import MM_PER_M

MOST_TIMES_ROBOT = 100.0
"""Largest size or distance of an obstacle, in sizes of the robot; beyond it the unit is wrong."""

LEAST_PART_OF_ROBOT = 0.002
"""Least size of an obstacle, as a part of the robot's: on a membrane of 0.45 m across, less than a millimetre."""

BALL_NEIGHBOUR = 6
BALL_PERCENTILE = 90.0
"""Percentile of the distances to the sixth neighbour that gives the radius of the balls which a cloud's points stand
for: holes of a surface that was sampled evenly at random are closed but for one in exp(6)."""

_MOST_VERTICES, _FEW = 5000, 10  # of an obstacle, of a surface, that are asked whether one is within the other


def check_obstacle(points: ArrayLike, faces: ArrayLike | None, robot: Robot) -> Shape:
    """Return an obstacle as a shape, m, if it can be one.

    Args:
        points: (N, 3) m in the robot's frame: vertices of a mesh, or a cloud.
        faces: (F, 3) indices into them; None or empty for a cloud.
        robot: Robot that moves near it.

    Raises:
        SoftformError: If the points are no obstacle: none, too few, more than 2 million, NaN, all on one line, faces
            that name no vertex or have no area; or if their size shows a wrong unit.
    """
    checked = check_points(points, "obstacle")
    _check_unit(checked, robot)
    if faces is None or np.size(faces) == 0:
        return Shape(checked)
    return Shape.from_mesh(checked, faces)


def _check_unit(points: Array, robot: Robot) -> None:
    robot_size = float(np.linalg.norm(robot.extent))
    size = float(np.linalg.norm(np.ptp(points, axis=0)))
    away = float(np.linalg.norm(points, axis=1).min())
    if size > MOST_TIMES_ROBOT * robot_size or away > MOST_TIMES_ROBOT * robot_size:
        raise SoftformError(
            f"The obstacle is {size:.4g} m across and {away:.4g} m away from robot '{robot.name}' of "
            f"{robot_size:.3g} m: it seems to be in {units_within(max(size, away) / robot_size)}.",
            "Give metres in the robot's frame.",
        )
    if size < LEAST_PART_OF_ROBOT * robot_size:
        raise SoftformError(
            f"The obstacle is {size:.4g} m across and robot '{robot.name}' is {robot_size:.3g} m: it seems to have "
            "been converted from millimetres twice.",
            "Give metres in the robot's frame.",
        )


class MeshObstacle:
    """A triangle mesh, (V, 3) mm and (F, 3); closed or not, of one part or many; keeps its `vertices`."""

    def __init__(self, vertices: Array, faces: NDArray[np.integer]) -> None:
        self.vertices = vertices
        corners = vertices[faces]
        doubled_area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
        self._corners = corners[doubled_area > 1e-12 * doubled_area.max()]
        self._tree = TriangleTree(self._corners)
        self._collision_object = _collision_object(self._corners)

    def distances(self, points: Array) -> Array:
        """Return the distance of each of (P, 3) mm to the mesh, (P,) mm."""
        _, closest, _ = self._tree.query(points)
        return np.asarray(np.linalg.norm(points - closest, axis=1))

    def distance_to_triangles(self, corners: Array) -> float:
        """Return the smallest distance between the mesh and triangles (m, 3, 3) mm; 0 if they touch or cross."""
        other = _collision_object(corners)
        return max(0.0, float(fcl.distance(self._collision_object, other, fcl.DistanceRequest(), fcl.DistanceResult())))

    def contains(self, points: Array) -> NDArray[np.bool_]:
        """Return which of (P, 3) mm the mesh winds around (winding number above one half; small holes are allowed)."""
        return lies_within(self._corners, points)


class CloudObstacle:
    """A cloud (N, 3) mm, each point a ball so large that the surface cannot slip through between them.

    Attributes:
        radius: Radius of the balls, mm.
    """

    def __init__(self, points: Array) -> None:
        self.vertices = points
        self._tree = cKDTree(points)
        neighbours = min(BALL_NEIGHBOUR, len(points) - 1)
        self.radius = float(np.percentile(self._tree.query(points, k=[neighbours + 1])[0], BALL_PERCENTILE))

    def distances(self, points: Array) -> Array:
        """Return the distance of each of (P, 3) mm to the nearest ball, (P,) mm; 0 inside it."""
        return np.maximum(0.0, self._tree.query(points)[0] - self.radius)

    def distance_to_triangles(self, corners: Array) -> float:
        """Return the smallest distance between the balls and triangles (m, 3, 3) mm; 0 if they touch or cross."""
        flat = corners.reshape(-1, 3)
        nearest_corner = float(self._tree.query(flat)[0].min())
        low, high = flat.min(axis=0) - nearest_corner, flat.max(axis=0) + nearest_corner
        near = self.vertices[((self.vertices >= low) & (self.vertices <= high)).all(axis=1)]
        _, closest, _ = TriangleTree(corners).query(near)
        return max(0.0, float(np.linalg.norm(near - closest, axis=1).min()) - self.radius)

    def contains(self, points: Array) -> NDArray[np.bool_]:
        """Return False everywhere: a cloud has no inside."""
        return np.zeros(len(points), dtype=bool)


Obstacle = MeshObstacle | CloudObstacle


def obstacle_of(shape: Shape) -> Obstacle:
    """Prepare a shape that `check_obstacle` returned for queries."""
    points = shape.points * MM_PER_M
    return CloudObstacle(points) if shape.faces is None else MeshObstacle(points, shape.faces)


def encloses(obstacle: Obstacle, points: Array) -> bool:
    """Return whether all surface points (P, 3) mm lie in the obstacle's inside."""
    middle = len(points) // 2
    few = points[:: max(1, len(points) // _FEW)]
    return bool(obstacle.contains(points[middle : middle + 1]).all() and obstacle.contains(few).all())


def lies_within_body(obstacle: Obstacle, surface: Array, resting: Array, faces: NDArray[np.int64]) -> bool:
    """Return whether part of the obstacle lies between the present surface and the resting one, (P, 3) mm of (F, 3).

    That is in the robot's body, whether it is a sheet that has risen or an arm that has bent. Where an arm has left its
    resting place it is not.
    """
    both = np.concatenate([surface, resting])
    vertices = obstacle.vertices
    vertices = vertices[((vertices >= both.min(axis=0)) & (vertices <= both.max(axis=0))).all(axis=1)]
    if len(vertices) == 0 or np.allclose(surface, resting, atol=1e-6):
        return False
    vertices = vertices[:: max(1, len(vertices) // _MOST_VERTICES)]
    return bool(((_side(vertices, surface, faces) < 0.0) & (_side(vertices, resting, faces) > 0.0)).any())


def _collision_object(corners: Array) -> fcl.CollisionObject:
    model = fcl.BVHModel()
    model.beginModel(len(corners), 3 * len(corners))
    model.addSubModel(corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3))
    model.endModel()
    return fcl.CollisionObject(model)


def _side(points: Array, surface: Array, faces: NDArray[np.int64]) -> Array:
    """Return 1 over a surface (where its normal points), -1 under it, 0 beside it."""
    matches = MeshSearch(surface, faces).query(points)
    above = np.einsum("px,px->p", points - matches.points, matches.normals)
    return np.where(matches.on_border, 0.0, np.sign(above))
