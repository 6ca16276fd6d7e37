"""Goals in any frame that TF knows, brought into the robot's."""

from typing import Any

from std_msgs.msg import Header

from softform_interfaces.action import CaptureShape, FollowWaypoints, PlanToShape, ReachShape
from softform_interfaces.msg import TargetPoints
from softform_ros.frames import Frames
from softform_ros.goal_error import in_code

_PARTS = {
    CaptureShape.Goal: {"target": CaptureShape.Result.INVALID_TARGET},
    ReachShape.Goal: {"target": ReachShape.Result.INVALID_TARGET, "features": ReachShape.Result.INVALID_TARGET},
    PlanToShape.Goal: {"target": PlanToShape.Result.INVALID_TARGET, "obstacles": PlanToShape.Result.INVALID_OBSTACLES},
}
"""Fields with points, and the error code of each."""


def bring_into(frame: str, goal: Any, frames: Frames) -> None:
    """Bring the points of a goal, in place, into a frame; those in no frame stay as they are, for the checks to reject.

    Raises:
        GoalError: If TF cannot tell the motion at the points' stamp, with the reason.
    """
    if isinstance(goal, FollowWaypoints.Goal):
        with in_code(FollowWaypoints.Result.INVALID_PATH):
            _bring_path_into(frame, goal, frames)
        return
    for part, code in _PARTS[type(goal)].items():
        with in_code(code):
            setattr(goal, part, frames.into(frame, getattr(goal, part)))


def _bring_path_into(frame: str, goal: FollowWaypoints.Goal, frames: Frames) -> None:
    """The stamp of the path is that of all its shapes; a shape without a frame is in the path's."""
    if goal.kind == FollowWaypoints.Goal.ACTUATORS:
        return
    goal.points = frames.into(frame, TargetPoints(header=goal.header, position=goal.points)).position
    for shape in goal.shapes:
        shape.header = Header(stamp=goal.header.stamp, frame_id=shape.header.frame_id or goal.header.frame_id)
    goal.shapes = [frames.into(frame, shape) for shape in goal.shapes]
    if goal.header.frame_id and (goal.points or goal.shapes):
        goal.header.frame_id = frame
