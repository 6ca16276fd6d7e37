"""Scenes of an arm that shall touch a ball past a stick (paper 000, Fig. 20), from a seed.

The paper prints no places. All here is drawn and chosen by the simulated arm alone; where the true arm goes plays no
part in it.
"""

from typing import Literal, get_args

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.planning.goals import PointGoal
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_studies.planned_motion.scene import STICK_LENGTH, STICK_RADIUS, Scene, Stick, moved_off, unit

TIP = "tip"

Kind = Literal["in the way", "beyond the goal"]
KINDS: tuple[Kind, ...] = get_args(Kind)

BALL_RADIUS = 0.015

STICK_AT = 0.9
"""v of the tube where the stick stands in the way."""

BEYOND = 0.010
"""m between a stick beyond the goal and what the simulated arm sweeps."""

LEAST_ROOM = 0.025
"""m between the stick and the simulated arm at its start and where it touches the ball."""

_MOST_DRAWS = 1000
_SWEPT = 17


def arm_scene(robot: Robot, simulated: ForwardPipeline, seed: int, kind: Kind) -> Scene:
    """Draw a scene.

    Start and goal are uniform in the working range. A stick in the way begins on the arm's axis halfway between them,
    in pressures, and points across the way to one of both sides: the arm has to go around its end. One beyond the goal
    points away from the arm that touches the ball, to a side drawn from those ahead of it, and is `BEYOND` away from
    all that the straight motion sweeps. Draws in which a stick in the way is near the start or the goal are left out.

    Args:
        robot: An arm whose end has the name `TIP`.
        simulated: Its simulated surface.
        seed: The same seed gives the same motion in both kinds.
        kind: Where the stick stands.

    Raises:
        SoftformError: If the robot has no such end, or hardly moves.
    """
    generator = np.random.default_rng(seed)
    end = robot.point_parameters(TIP)
    ring = np.column_stack([end[:, 0], np.full(len(end), STICK_AT)])
    for _ in range(_MOST_DRAWS):
        start, goal = generator.uniform(robot.actuation_min, robot.actuation_max, (2, robot.degrees_of_freedom))
        states = start + np.array([[0.0], [0.5], [1.0]]) * (goal - start)
        tips, rings = (simulated.at(uv).points(states).mean(axis=1) / MM_PER_M for uv in (end, ring))
        along, way = unit(tips - rings), rings[2] - rings[0]
        across = unit(np.cross(along[1], way)) * generator.choice([-1.0, 1.0])
        stick = _pointing(rings[1], across)
        if stick.distances(simulated.points(states[[0, 2]]) / MM_PER_M).min() >= LEAST_ROOM:
            break
    else:
        raise SoftformError(
            f"Of {_MOST_DRAWS} motions of robot '{robot.name}' none has room for a stick.",
            "Take a robot that moves further.",
        )
    if kind == "beyond the goal":
        aside = unit(np.cross(along[2], way))
        angle = generator.uniform(-0.5 * np.pi, 0.5 * np.pi)
        direction = np.cos(angle) * np.cross(aside, along[2]) + np.sin(angle) * aside
        swept = simulated.points(start + np.linspace(0.0, 1.0, _SWEPT)[:, None] * (goal - start)) / MM_PER_M
        stick = moved_off(_pointing(rings[2], direction), direction, swept, BEYOND, STICK_LENGTH)
    return Scene(start, PointGoal(TIP, tips[2]), stick, tips[2] + BALL_RADIUS * along[2])


def _pointing(place: Array, direction: Array) -> Stick:
    """A stick that begins at a place (3,) m and points along a unit vector."""
    return Stick(place + np.outer([0.0, STICK_LENGTH], direction), STICK_RADIUS)
