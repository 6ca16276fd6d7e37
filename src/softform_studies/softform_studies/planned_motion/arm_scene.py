"""Scenes of an arm that shall touch a ball past a stick (paper 000, Fig. 20), from a seed.

The paper prints no places. All here is drawn and chosen by the simulated arm alone; where the true arm goes plays no
part in it.
"""

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.planning.goals import PointGoal
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_studies.planned_motion.scene import STICK_LENGTH, STICK_RADIUS, Scene, Stick

TIP = "tip"

BALL_RADIUS = 0.015

STICK_AT = 0.9
"""v of the tube where the stick stands in the way."""

BESIDE = 0.005
"""m between the stick and what the simulated arm sweeps, where it stands beside the way."""

LEAST_ROOM = 0.025
"""m between the stick and the simulated arm at its start and where it touches the ball."""

_MOST_DRAWS = 1000
_SWEPT = 17
_BISECTIONS = 20


def arm_scene(robot: Robot, simulated: ForwardPipeline, seed: int, beside: float | None = None) -> Scene:
    """Draw a scene.

    Start and goal are uniform in the working range. Halfway between them, in pressures, the stick points away from the
    arm, across its way, to one of both sides. It begins on the arm's axis, and the arm has to go around its end; or
    so far from it that the straight motion passes `beside` it. Draws in which a stick in the way is near the start or
    the goal are left out.

    Args:
        robot: An arm whose end has the name `TIP`.
        simulated: Its simulated surface.
        seed: The same seed gives the same motion and side.
        beside: m between the stick and the straight motion; None for a stick that is in its way.

    Raises:
        SoftformError: If the robot has no such end, or hardly moves.
    """
    generator = np.random.default_rng(seed)
    end = robot.point_parameters(TIP)
    ring = np.column_stack([end[:, 0], np.full(len(end), STICK_AT)])
    for _ in range(_MOST_DRAWS):
        start, goal = generator.uniform(robot.actuation_min, robot.actuation_max, (2, robot.degrees_of_freedom))
        states = np.stack([start, 0.5 * (start + goal), goal])
        tips, rings = (simulated.at(uv).points(states).mean(axis=1) / MM_PER_M for uv in (end, ring))
        across = _unit(np.cross(tips[1] - rings[1], rings[2] - rings[0])) * generator.choice([-1.0, 1.0])
        stick = Stick(rings[1] + np.outer([0.0, STICK_LENGTH], across), STICK_RADIUS)
        if stick.distances(simulated.points(states[[0, 2]]) / MM_PER_M).min() >= LEAST_ROOM:
            if beside is not None:
                swept = simulated.points(start + np.linspace(0.0, 1.0, _SWEPT)[:, None] * (goal - start)) / MM_PER_M
                stick = _moved_off(stick, across, swept, beside)
            ball = tips[2] + BALL_RADIUS * _unit(tips[2] - rings[2])
            return Scene(start, PointGoal(TIP, tips[2]), stick, ball)
    raise SoftformError(
        f"Of {_MOST_DRAWS} motions of robot '{robot.name}' none has room for a stick.",
        "Take a robot that moves further.",
    )


def _moved_off(stick: Stick, direction: Array, points: Array, gap: float) -> Stick:
    """The stick, moved along a direction until it is `gap` m from points (..., 3) m."""
    near, far = 0.0, STICK_LENGTH
    for _ in range(_BISECTIONS):
        middle = 0.5 * (near + far)
        moved = Stick(stick.ends + middle * direction, stick.radius)
        near, far = (near, middle) if moved.distances(points).min() >= gap else (middle, far)
    return Stick(stick.ends + far * direction, stick.radius)


def _unit(vector: Array) -> Array:
    return np.asarray(vector / np.linalg.norm(vector))
