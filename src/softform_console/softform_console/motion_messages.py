"""Messages about obstacles, and motions that are planned and looked at before they run; as in `protocol`."""

from typing import Annotated, Literal

from pydantic import Field

from softform_console.message import (
    Epoch,
    Length,
    Message,
    Name,
    Place,
    Pose,
    RobotIndex,
    Stamp,
    TargetId,
    Unit,
    Values,
)


class Obstacle(Message):
    """What the robot is to keep clear of: a box along the axes of its frame, or the ball (ellipsoid) in that; m."""

    kind: Literal["ball", "box"]
    centre: Place
    edges: tuple[Length, Length, Length]


class Obstacles(Message):
    """All obstacles, in place of those before; they count for motions that are planned from then on."""

    type: Literal["obstacles"] = "obstacles"
    robot: RobotIndex = 0
    obstacles: Annotated[list[Obstacle], Field(max_length=50)]


class PlanMotion(Message):
    """Plan a motion past the obstacles to an uploaded target, or to values of the actuators; moves nothing.

    `clearance` m must stay between surface and obstacles, beside the model's uncertainty.
    """

    type: Literal["plan_motion"] = "plan_motion"
    robot: RobotIndex = 0
    target: TargetId | None = None
    pose: Pose = "fixed"
    values: Values | None = None
    clearance: Annotated[float, Field(ge=0.0, le=10.0)] = 0.0


class PlanPath(Message):
    """Plan a motion that leads a point of the robot, by patch and (u, v) or by frame, along places, m; moves nothing.

    It lasts `seconds`, or longer where the robot is not so fast. Obstacles are not looked at.
    """

    type: Literal["plan_path"] = "plan_path"
    robot: RobotIndex = 0
    output: Name
    u: Unit = 0.0
    v: Unit = 0.0
    places: Annotated[list[Place], Field(min_length=2, max_length=500)]
    seconds: Annotated[float, Field(gt=0.0, le=600.0)]


class RunMotion(Message):
    """Run the motion that was planned last, by its number."""

    type: Literal["run_motion"] = "run_motion"
    robot: RobotIndex = 0
    epoch: Epoch
    stamp: Stamp
    motion: int


class GoHome(Message):
    """Lead the robot there and back until what it did before cannot matter."""

    type: Literal["go_home"] = "go_home"
    robot: RobotIndex = 0
    epoch: Epoch
    stamp: Stamp


class Foresee(Message):
    """Show the shape that is predicted at values of the actuators, as a mesh that is a preview; null: no more."""

    type: Literal["foresee"] = "foresee"
    robot: RobotIndex = 0
    values: Values | None


class Motion(Message):
    """A motion that was planned: values of the actuators at each waypoint, and its time, s after the start.

    `clearances` and `margins` m of a motion past obstacles: how far the surface is from them at each waypoint, and how
    far it must be. `path` and `errors` m of a path: where its point is wanted at each waypoint, and how far off it is
    predicted to be.
    """

    type: Literal["motion"] = "motion"
    robot: int
    id: int
    actuators: list[list[float]]
    times: list[float]
    clearances: list[float]
    margins: list[float]
    path: list[Place]
    errors: list[float]


class MotionState(Message):
    """How planning or motion goes, in a line; `waypoint` is the one that was reached last.

    outdated: obstacles or model were changed since the motion was planned, which is not run any more.
    """

    type: Literal["motion_state"] = "motion_state"
    robot: int
    stage: Literal["planning", "planned", "moving", "reached", "failed", "outdated"]
    waypoint: int
    text: str
