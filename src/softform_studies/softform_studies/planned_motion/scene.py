"""Tasks of the robot: a shape to take beside a stick, or a place to touch past one (paper 000, Fig. 20).

The paper prints no places. All is drawn from a seed; of an arm's scenes also by the simulated arm alone: where the true
one goes plays no part in them.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import trimesh
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.forward_model import SurfaceModel
from softform_core.planning.goals import PointGoal
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M
from softform_rig.live_body import LiveBody
from softform_rig.reality import Reality

START_PART = (0.0, 0.3)
TARGET_PART = (0.4, 1.0)
"""Part of the working range from which start and target are drawn, uniform for every actuator."""

GAP = 0.005
"""Default gap between the target shape and the stick, m: more than the learned surface is off, and about what the
simulated one is."""

STICK_RADIUS = 0.004
STICK_LENGTH = 0.26
STICK_PLACE = 0.5
"""Part of the robot's half size within which the stick's middle lies over it."""

_SAMPLES_A_SIDE = 4
_BISECTIONS = 40


@dataclass(frozen=True)
class Stick:
    """A round stick with round ends, of an axis between (2, 3) m and a radius, m."""

    ends: Array
    radius: float

    def distances(self, points: Array) -> Array:
        """Return the signed distance of each of (..., 3) m to its surface, (...) m; negative inside."""
        along = self.ends[1] - self.ends[0]
        place = np.clip((points - self.ends[0]) @ along / (along @ along), 0.0, 1.0)
        axis = self.ends[0] + place[..., None] * along
        return np.asarray(np.linalg.norm(points - axis, axis=-1) - self.radius)

    def mesh(self) -> Shape:
        """Return its surface, circumscribed: no point of the stick lies outside."""
        sides = 24
        length = float(np.linalg.norm(self.ends[1] - self.ends[0]))
        capsule = trimesh.creation.capsule(length, self.radius / np.cos(np.pi / sides) ** 2, count=[sides, sides])
        capsule.vertices -= [0.0, 0.0, 0.5 * length] if capsule.bounds[0, 2] > -0.25 * length else [0.0, 0.0, 0.0]
        turn = trimesh.geometry.align_vectors([0.0, 0.0, 1.0], self.ends[1] - self.ends[0])
        capsule.apply_transform(turn)
        return Shape.from_mesh(capsule.vertices + self.ends.mean(axis=0), capsule.faces)


@dataclass(frozen=True)
class Scene:
    """One task.

    Attributes:
        start: (k,) Pa, where the robot is.
        goal: Shape to take, m, or place that a named point shall touch.
        stick: The stick in the way.
        ball: (3,) m, middle of the ball that is touched, or None.
    """

    start: Array
    goal: Shape | PointGoal
    stick: Stick
    ball: Array | None = None


def scene_of(robot: Robot, reality: Reality, seed: int, gap: float = GAP) -> Scene:
    """Draw a scene of a sheet: it shall take one of its real shapes, over which the stick hangs.

    Args:
        robot: The robot.
        reality: Reality in which the robot takes the target shape, under an actuation unknown to the planner.
        seed: The same seed gives the same scene.
        gap: m between target shape and stick.

    Raises:
        SoftformError: If the reality has no shape at the drawn actuation.
    """
    generator = np.random.default_rng(seed)
    low, span = robot.actuation_min, robot.actuation_max - robot.actuation_min
    start, hidden = (
        low + span * generator.uniform(*part, robot.degrees_of_freedom) for part in (START_PART, TARGET_PART)
    )
    live = LiveBody(robot, reality)
    live.commanded_shape(start)
    target = Shape.from_mesh(live.commanded_shape(hidden), live.faces)
    place = generator.uniform(-STICK_PLACE, STICK_PLACE, 2) * robot.extent / 2.0
    angle = generator.uniform(0.0, np.pi)
    return Scene(start, target, _stick_over(target, place, angle, gap))


def spread_over(vertices: Array, faces: NDArray[np.integer]) -> Array:
    """Return points (P, 3) spread over a surface, its vertices among them, about a quarter of its edges apart."""
    n = _SAMPLES_A_SIDE
    weights = np.array([[i, j, n - i - j] for i in range(n + 1) for j in range(n + 1 - i)]) / n
    return np.einsum("wc,fcx->fwx", weights, vertices[faces]).reshape(-1, 3)


def _stick_over(target: Shape, place: Array, angle: float, gap: float) -> Stick:
    """Return a level stick over a place (x, y), lowered until it is `gap` away from the target."""
    assert target.faces is not None
    surface = spread_over(target.points, target.faces)
    half = 0.5 * STICK_LENGTH * np.array([np.cos(angle), np.sin(angle)])

    level = Stick(np.array([[*(place - half), 0.0], [*(place + half), 0.0]]), STICK_RADIUS)
    return moved_off(level, np.array([0.0, 0.0, 1.0]), surface, gap, float(surface[:, 2].max()) + gap + STICK_RADIUS)


def moved_off(stick: Stick, direction: Array, points: Array, gap: float, farthest: float) -> Stick:
    """Return the stick, moved along a unit vector, m at most, until it is `gap` m from points (..., 3) m."""
    near, far = 0.0, farthest
    for _ in range(_BISECTIONS):
        middle = 0.5 * (near + far)
        moved = Stick(stick.ends + middle * direction, stick.radius)
        near, far = (near, middle) if moved.distances(points).min() >= gap else (middle, far)
    return Stick(stick.ends + far * direction, stick.radius)


def unit(vectors: Array) -> Array:
    """Return vectors (..., 3) of length one."""
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


TIP = "tip"

Kind = Literal["in the way", "beyond the goal"]
KINDS: tuple[Kind, ...] = get_args(Kind)

BALL_RADIUS = 0.015

STICK_AT = 0.9
"""Coordinate v of the tube where the stick stands in the way."""

BEYOND = 0.010
"""Distance of a stick beyond the goal from what the simulated arm sweeps, m."""

LEAST_ROOM = 0.025
"""Least distance of the stick from the simulated arm at its start and where it touches the ball, m."""

_MOST_DRAWS = 1000
_SWEPT = 17


def arm_scene(robot: Robot, simulated: SurfaceModel, seed: int, kind: Kind) -> Scene:
    """Draw a scene.

    Start and goal are uniform in the working range. A stick in the way begins on the arm's axis halfway between them,
    in pressures, and points across the way to one of both sides: the arm has to go around its end. One beyond the goal
    points away from the arm that touches the ball, to a side drawn from those ahead of it, and is `BEYOND` away from
    all that the straight motion sweeps. Draws in which a stick in the way is near the start or the goal are left out.

    Args:
        robot: An arm whose end has the name `TIP`.
        simulated: Its simulated surface.
        seed: The same seed gives the same motion in both kinds.
        kind: Place of the stick.

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
    """Return a stick that begins at a place (3,) m and points along a unit vector."""
    return Stick(place + np.outer([0.0, STICK_LENGTH], direction), STICK_RADIUS)
