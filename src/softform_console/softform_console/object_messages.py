"""Messages about an object that arms hold: targets that are looked at, and how shaping goes; as in `protocol`."""

from typing import Annotated, Literal

from pydantic import Field

from softform_console.message import Epoch, Message, Point, RobotIndex, Stamp

Poses = Annotated[list[float], Field(min_length=12, max_length=12)]
"""x, y, z (m) and rotation vector (rad) of the left gripper, then of the right one, relative to the grasp."""


class PreviewObject(Message):
    """Show the target that poses of the grippers make, or points of the object that are led; moves nothing.

    With points the grippers leave `poses` as little as those need. In place of what was asked for before.
    """

    type: Literal["preview_object"] = "preview_object"
    robot: RobotIndex = 0
    poses: Poses
    points: Annotated[list[Point], Field(max_length=50)] = []


class ShapeObject(Message):
    """Bring the object into the target that was previewed last, by its number; 0: the usual number of looks or stress.

    `iterations` are the looks at most, `stress_limit` Pa that of the guard.
    """

    type: Literal["shape_object"] = "shape_object"
    robot: RobotIndex = 0
    epoch: Epoch
    stamp: Stamp
    preview: int
    iterations: Annotated[int, Field(ge=0, le=1000)] = 0
    stress_limit: Annotated[float, Field(ge=0.0, le=1e12)] = 0.0


class ObjectPreviewed(Message):
    """The newest target, which comes as a scene frame, too; `poses` are those of which the model makes it.

    `off` m is the largest distance of a point from where it is wanted, null without points; `stress` Pa the largest of
    the model, `stress_limit` that of a goal that names none, null for none.
    """

    type: Literal["object_previewed"] = "object_previewed"
    robot: int
    id: int
    poses: list[float]
    off: float | None
    stress: float
    stress_limit: float | None


class Shaping(Message):
    """How shaping goes, or ended: m and Pa as of the last look, null where not known.

    `reported_rms` is what the controller believes; `true_rms` and `true_max` are of the true object, on a rig.
    """

    type: Literal["shaping"] = "shaping"
    robot: int
    stage: Literal["looking", "moving", "ended", "failed"]
    look: int
    reported_rms: float | None
    true_rms: float | None
    true_max: float | None
    stress: float | None
    text: str
