"""What of a mesh goes over the wire: its triangles while they are few, else points all over its area."""

import numpy as np
from builtin_interfaces.msg import Time

from softform_client.follow_messages import FollowGoal, ShapePath
from softform_client.follow_messages import goal_to_message as follow_message
from softform_client.reach_goal import Mode, ReachGoal
from softform_client.reach_messages import MOST_TRIANGLES, SAMPLED_POINTS, as_light, faces_from_message
from softform_client.reach_messages import goal_to_message as reach_message
from softform_core.shapes.shape import Shape
from softform_ros.conversions import points_from_cloud


def sheet(side: int) -> Shape:
    """A square metre of 2 (side - 1)^2 triangles."""
    x, y = (axis.ravel() for axis in np.meshgrid(np.linspace(0.0, 1.0, side), np.linspace(0.0, 1.0, side)))
    corners = np.arange(side * side).reshape(side, side)
    lower, upper = corners[:-1, :-1].ravel(), corners[1:, 1:].ravel()
    right, left = corners[:-1, 1:].ravel(), corners[1:, :-1].ravel()
    faces = np.concatenate([np.stack([lower, right, upper], axis=1), np.stack([lower, upper, left], axis=1)])
    return Shape.from_mesh(np.column_stack([x, y, 0.1 * x * y]), faces)


def covers_the_square(points: np.ndarray) -> bool:
    counts, _, _ = np.histogram2d(points[:, 0], points[:, 1], bins=5, range=[[0.0, 1.0]] * 2)
    return bool(counts.min() > 0.8 * counts.mean())


def test_a_mesh_of_few_triangles_stays_a_mesh() -> None:
    few = sheet(50)
    assert as_light(few) is few
    message = reach_message(ReachGoal(few, Mode.PLAN_ONLY), "base_link", Time())
    assert np.array_equal(faces_from_message(message.triangles), few.faces)


def test_a_mesh_of_many_triangles_is_sent_as_points_on_it() -> None:
    many = sheet(320)
    assert many.faces is not None and len(many.faces) > MOST_TRIANGLES
    message = reach_message(ReachGoal(many, Mode.PLAN_ONLY), "base_link", Time())
    points = points_from_cloud(message.target)
    assert not message.triangles and len(points) == SAMPLED_POINTS and covers_the_square(points)
    assert np.abs(points[:, 2] - 0.1 * points[:, 0] * points[:, 1]).max() < 1e-4


def test_a_path_of_coarse_meshes_is_one_of_points_all_over_them() -> None:
    message = follow_message(FollowGoal(ShapePath((sheet(2),))), "base_link", Time())
    assert covers_the_square(points_from_cloud(message.shapes[0]))
