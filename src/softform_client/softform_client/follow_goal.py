"""What a path to follow must be before it is accepted; every rejection says why and what to do."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeVar

import numpy as np

from softform_core.arrays import Array
from softform_core.inverse.timing import check_times
from softform_core.robots import Robot
from softform_core.shapes.target import TargetShape
from softform_core.shapes.validate import check_scale
from softform_core.surface.patch_set import on_patches
from softform_interfaces.action import FollowWaypoints
from softform_ros.goal_error import GoalError, in_code

Given = TypeVar("Given")
Checked = TypeVar("Checked")

Code = FollowWaypoints.Result
"""Error codes, `NONE` … `INTERNAL_ERROR`; the action's definition is their only list."""

MAX_WAYPOINTS = 10_000
"""More of them are a mistake: at the fastest a robot takes an hour for as many."""

_OFF_PLANE = 1e-3
"""m that a point may lie off the plane in which a planar robot moves."""


class PathKind(IntEnum):
    """What the waypoints are."""

    POINTS = FollowWaypoints.Goal.POINTS
    SHAPES = FollowWaypoints.Goal.SHAPES
    ACTUATORS = FollowWaypoints.Goal.ACTUATORS


@dataclass(frozen=True)
class PointPath:
    """Places of the tip, or of one point of the surface.

    Attributes:
        points: (m, 3) m.
        uv: (2,) which point of the surface is led, its middle if nothing is said; robots with a tip ignore it.
        point: Which of the robot's frames is led instead of the point (u, v).
    """

    points: Array
    uv: Array = field(default_factory=lambda: np.array([0.5, 0.5]))
    point: str = ""


@dataclass(frozen=True)
class ShapePath:
    """Target shapes, in m."""

    shapes: tuple[TargetShape, ...]


@dataclass(frozen=True)
class ActuatorPath:
    """Actuator values, (m, k), in the robot's unit."""

    values: Array


Path = PointPath | ShapePath | ActuatorPath


@dataclass(frozen=True)
class FollowGoal:
    """A checked goal.

    Attributes:
        path: Path in the robot's frame.
        times: (m,) s after the start at which each waypoint is due, or None: as fast as the robot settles.
        plan_only: Never move hardware.
        seed: (k,) start of the first solve, or None: the present values, else the middle of the range.
        without_sim_to_real: Plan with the simulated robot alone, to compare.
        accept_unreachable: Whether the nearest place is wanted even where it misses a waypoint widely.
    """

    path: Path
    times: Array | None = None
    plan_only: bool = False
    seed: Array | None = None
    without_sim_to_real: bool = False
    accept_unreachable: bool = False


def check_kind(kind: int) -> PathKind:
    """Return the kind of path.

    Raises:
        GoalError: If there is none of that number.
    """
    try:
        return PathKind(kind)
    except ValueError:
        known = ", ".join(f"{one.value} ({one.name})" for one in PathKind)
        raise GoalError(Code.INVALID_PATH, f"There is no kind of path {kind}.", f"Use one of {known}.") from None


def check_count(count: int, what: str) -> None:
    """Reject a number of waypoints before they are unpacked.

    Raises:
        GoalError: If there is none, or there are too many.
    """
    if count == 0:
        raise GoalError(Code.INVALID_PATH, "The path is empty.", f"Give one waypoint at least, in `{what}`.")
    if count > MAX_WAYPOINTS:
        raise GoalError(
            Code.INVALID_PATH,
            f"The path has {count} waypoints, at most {MAX_WAYPOINTS} are allowed.",
            "Send it in parts, one goal after the other.",
        )


def check_points(points: Array, uv: Array, point: str, robot: Robot) -> PointPath:
    """Return points, (m, 3) m, along which a frame of the robot, or the point (2,) of its surface, can be led.

    Raises:
        GoalError: If one is not finite or shows a wrong unit, or the robot has no such frame or point.
    """
    if not np.isfinite(points).all():
        index = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
        raise GoalError(Code.INVALID_PATH, f"Waypoint {index + 1} is NaN or infinite.", "Give x, y and z in m.")
    with in_code(Code.INVALID_PATH):
        check_scale(points, "Waypoint", robot.name, _size(robot))
    if point and point not in robot.frames:
        known = ", ".join(robot.frames) or "none"
        raise GoalError(
            Code.INVALID_PATH,
            f"Robot '{robot.name}' has no frame '{point}' (known: {known}).",
            "Name one of the frames in its description; a point of a surface may be given by u and v, too.",
        )
    if not robot.surfaces:
        off_plane = np.abs(points[:, 2])
        if robot.tip_dimensions == 2 and off_plane.max() > _OFF_PLANE:
            index = int(off_plane.argmax())
            raise GoalError(
                Code.INVALID_PATH,
                f"Waypoint {index + 1} is {points[index, 2]:g} m off the plane z = 0, in which '{robot.name}' moves.",
                "Give z = 0.",
            )
    elif not point and not on_patches(uv[None], len(robot.surfaces)).all():
        raise GoalError(
            Code.INVALID_PATH,
            f"The surface has no point u = {uv[0]:g}, v = {uv[1]:g}.",
            "Give u and v between 0 and 1, u of the patch i (from 0) 2 i more; 0.5, 0.5 is the middle of the first.",
        )
    return PointPath(points, uv, point)


def check_values(values: Sequence[float], robot: Robot) -> ActuatorPath:
    """Return actuator values, waypoint by waypoint in the robot's unit, that the robot may be given.

    Raises:
        GoalError: If they are not one for each actuator and waypoint, or not finite, or out of range.
    """
    count = len(robot.actuators)
    if len(values) % count:
        raise GoalError(
            Code.INVALID_PATH,
            f"{len(values)} values are no waypoints of {count} actuators.",
            f"Give {count} values for each waypoint: {', '.join(robot.actuators)}.",
        )
    rows = np.asarray(values, dtype=np.float64).reshape(-1, count)
    return ActuatorPath(
        np.array([checked_waypoint(index, robot.check_commands, row) for index, row in enumerate(rows)])
    )


def checked_waypoint(index: int, check: Callable[[Given], Checked], given: Given) -> Checked:
    """Return what a check makes of a waypoint; what it rejects is rejected with the number of the waypoint.

    Raises:
        GoalError: INVALID_PATH.
    """
    with in_code(Code.INVALID_PATH, f"Waypoint {index + 1}: "):
        return check(given)


def check_due_times(times: Sequence[float], count: int) -> Array | None:
    """Return the times of `count` waypoints, (m,) s, or None if there are none.

    Raises:
        GoalError: If they are not one for each waypoint, or not finite, negative or not increasing.
    """
    if len(times) == 0:
        return None
    values = np.asarray(times, dtype=np.float64)
    with in_code(Code.INVALID_TIMES):
        check_times(values, count)
    return values


def check_has_surface(robot: Robot) -> Robot:
    """Return a robot that can take shapes.

    Raises:
        GoalError: If it has a tip instead.
    """
    if not robot.surfaces:
        raise GoalError(
            Code.INVALID_PATH,
            f"Robot '{robot.name}' has a tip and no surface: it cannot take shapes.",
            f"Send a path of kind {PathKind.POINTS.value} (POINTS) or {PathKind.ACTUATORS.value} (ACTUATORS).",
        )
    return robot


def _size(robot: Robot) -> float:
    """Size of the resting body, m."""
    return float(np.linalg.norm(robot.extent)) if robot.surfaces else robot.body.size
