"""Goals of `reach_shape`, and checks of a target before a goal or stream is accepted; each says why and what to do."""

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from std_msgs.msg import Header

from softform_client.solve_options import SolveGoal
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.shape import Shape
from softform_core.shapes.validate import check_target
from softform_interfaces.action import ReachShape
from softform_ros.conversions import seconds_from_stamp

MAX_FUTURE = 1.0
"""Largest lead of a stamp over the clock that is tolerated between machines, s."""

_DOWNWARDS = -0.5
"""Mean normal's z below which a target lies upside down; on its side, or with mixed triangles, it is near 0."""

Kind = TypeVar("Kind", bound=IntEnum)


class Mode(IntEnum):
    """What a goal does with its target."""

    PLAN_ONLY = ReachShape.Goal.PLAN_ONLY
    PLAN_AND_MOVE = ReachShape.Goal.PLAN_AND_MOVE
    PLAN_MOVE_AND_VERIFY = ReachShape.Goal.PLAN_MOVE_AND_VERIFY
    CLOSED_LOOP = ReachShape.Goal.CLOSED_LOOP

    @property
    def moves(self) -> bool:
        """Whether the hardware moves."""
        return self is not Mode.PLAN_ONLY

    @property
    def verifies(self) -> bool:
        """Whether the robot is captured and compared with the target."""
        return self in (Mode.PLAN_MOVE_AND_VERIFY, Mode.CLOSED_LOOP)


@dataclass(frozen=True)
class ReachGoal(SolveGoal):
    """A checked goal, in the robot's frame; its fields are the arguments of `ShapeClient.reach`."""

    target: Shape | None
    mode: Mode
    fix_pose: bool = True
    max_rounds: int = 0
    features: FeaturePoints | None = None
    partial: bool = False


def check_header(
    header: Header, frame: str, now: float, max_age: float, what: str = "target", of_stream: bool = False
) -> None:
    """Reject points that are not in the robot's frame, or stamped over `max_age` s before `now` (s since the epoch).

    A stamp of 0 means now, but for a stream, of which each target needs its stamp; `what` names the points in the error
    message.

    Raises:
        SoftformError: If the frame is another one, the stamp is too old or lies in the future, or a stream's is 0.
    """
    if header.frame_id != frame:
        raise SoftformError(
            f"The {what} is in frame '{header.frame_id}', not in '{frame}'.",
            f"Transform the points into {frame} and name it in the header.",
        )
    stamp = seconds_from_stamp(header.stamp)
    if stamp == 0.0 and of_stream:
        raise SoftformError(
            f"The {what} has no stamp.",
            "Stamp it with the time of now: a stream must not follow what is long past.",
        )
    if stamp == 0.0:
        return
    age = now - stamp
    if age > max_age:
        raise SoftformError(
            f"The {what} is stale: it was stamped {age:.1f} s ago, at most {max_age:g} s are allowed.",
            f"Stamp each {what} with the time of now, by a clock that agrees with this computer's (NTP)."
            if of_stream
            else f"Send a current {what}, or a zero stamp for one that does not age.",
        )
    if age < -MAX_FUTURE:
        raise SoftformError(
            f"The {what} is stamped {-age:.1f} s in the future.",
            f"Synchronise the clocks{'' if of_stream else ', or send a zero stamp'}.",
        )


def check_shape(points: Array, triangles: NDArray[np.int64], robot: Robot) -> Shape:
    """Return the target, (N, 3) m with (F, 3) triangles or none, as a shape.

    Raises:
        SoftformError: If the points or triangles are unusable, or their size shows a wrong unit.
    """
    checked = check_target(points, robot)
    return Shape.from_mesh(checked, triangles) if len(triangles) else Shape.from_cloud(checked)


def check_upright(target: Shape, robot: Robot) -> None:
    """Reject a target whose outside looks down: a robot's sheet looks up, and only its shape could not tell.

    Args:
        target: m, in the robot's frame; one whose sides are not known passes, as does a closed mesh.
        robot: Robot that takes the shape; a tube looks to all sides.

    Raises:
        SoftformError: If it lies upside down, or its triangles are wound the other way.
    """
    if robot.body.goes_around:
        return
    facing = target.facing
    if facing[2] < _DOWNWARDS:
        mean = ", ".join(f"{part:.2f}" for part in facing)
        raise SoftformError(
            f"The target lies upside down: its mean normal is ({mean}), the surface of '{robot.name}' looks up.",
            "Turn it over, or reverse its triangles or normals; accept_unreachable of a goal takes it as it is.",
        )


def one_of(kinds: type[Kind], number: int, what: str) -> Kind:
    """Return the member of an enumeration that a message names by its number.

    Raises:
        SoftformError: If there is none.
    """
    try:
        return kinds(number)
    except ValueError:
        known = ", ".join(f"{one.value} ({one.name})" for one in kinds)
        raise SoftformError(f"There is no {what} {number}.", f"Use one of {known}.") from None
