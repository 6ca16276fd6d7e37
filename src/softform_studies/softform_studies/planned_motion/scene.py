"""What the robot is asked: a shape to take beside a stick, or a place to touch past one (paper 000, Fig. 20)."""

from dataclasses import dataclass

import numpy as np
import trimesh
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.planning.goals import PointGoal
from softform_core.robots import Robot
from softform_core.shapes.target import TargetShape
from softform_rig.live_body import LiveBody
from softform_rig.reality import Reality

START_PART = (0.0, 0.3)
TARGET_PART = (0.4, 1.0)
"""Part of the working range from which start and target are drawn, uniform for every actuator."""

GAP = 0.005
"""m between the target shape and the stick, unless it is said otherwise: more than the learned surface is off, and
about what the simulated one is."""

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
        """Signed distance of each of (..., 3) m to its surface, (...) m; negative inside."""
        along = self.ends[1] - self.ends[0]
        place = np.clip((points - self.ends[0]) @ along / (along @ along), 0.0, 1.0)
        axis = self.ends[0] + place[..., None] * along
        return np.asarray(np.linalg.norm(points - axis, axis=-1) - self.radius)

    def mesh(self) -> TargetShape:
        """Its surface, circumscribed: no point of the stick lies outside."""
        sides = 24
        length = float(np.linalg.norm(self.ends[1] - self.ends[0]))
        capsule = trimesh.creation.capsule(length, self.radius / np.cos(np.pi / sides) ** 2, count=[sides, sides])
        capsule.vertices -= [0.0, 0.0, 0.5 * length] if capsule.bounds[0, 2] > -0.25 * length else [0.0, 0.0, 0.0]
        turn = trimesh.geometry.align_vectors([0.0, 0.0, 1.0], self.ends[1] - self.ends[0])
        capsule.apply_transform(turn)
        return TargetShape.from_mesh(capsule.vertices + self.ends.mean(axis=0), capsule.faces)


@dataclass(frozen=True)
class Scene:
    """One task.

    Attributes:
        start: (k,) Pa, where the robot is.
        goal: Shape to take, m, or place that a named point shall touch.
        stick: In the way.
        ball: (3,) m, middle of the ball that is touched, or None.
    """

    start: Array
    goal: TargetShape | PointGoal
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
    target = TargetShape.from_mesh(live.commanded_shape(hidden), live.faces)
    place = generator.uniform(-STICK_PLACE, STICK_PLACE, 2) * robot.extent / 2.0
    angle = generator.uniform(0.0, np.pi)
    return Scene(start, target, _stick_over(target, place, angle, gap))


def spread_over(vertices: Array, faces: NDArray[np.integer]) -> Array:
    """Points (P, 3) spread over a surface, its vertices among them, about a quarter of its edges apart."""
    n = _SAMPLES_A_SIDE
    weights = np.array([[i, j, n - i - j] for i in range(n + 1) for j in range(n + 1 - i)]) / n
    return np.einsum("wc,fcx->fwx", weights, vertices[faces]).reshape(-1, 3)


def _stick_over(target: TargetShape, place: Array, angle: float, gap: float) -> Stick:
    """A level stick over a place (x, y), lowered until it is `gap` away from the target."""
    assert target.faces is not None
    surface = spread_over(target.points, target.faces)
    half = 0.5 * STICK_LENGTH * np.array([np.cos(angle), np.sin(angle)])

    level = Stick(np.array([[*(place - half), 0.0], [*(place + half), 0.0]]), STICK_RADIUS)
    return moved_off(level, np.array([0.0, 0.0, 1.0]), surface, gap, float(surface[:, 2].max()) + gap + STICK_RADIUS)


def moved_off(stick: Stick, direction: Array, points: Array, gap: float, farthest: float) -> Stick:
    """The stick, moved along a unit vector, m at most, until it is `gap` m from points (..., 3) m."""
    near, far = 0.0, farthest
    for _ in range(_BISECTIONS):
        middle = 0.5 * (near + far)
        moved = Stick(stick.ends + middle * direction, stick.radius)
        near, far = (near, middle) if moved.distances(points).min() >= gap else (middle, far)
    return Stick(stick.ends + far * direction, stick.radius)


def unit(vectors: Array) -> Array:
    """Vectors (..., 3) of length one."""
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))
