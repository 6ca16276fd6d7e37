"""Ten reliefs as they come, reached in every way of `softform demo` without nodes: is learning ever worse?"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.spatial import Delaunay

from softform_client.driver_watch import MeasuredValues
from softform_client.reach_goal import Mode, ReachGoal
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.evaluation.measured_errors import measure_errors, resting_surface
from softform_core.executors import Executor
from softform_core.forward.history import HistoryKeeper
from softform_core.forward.live_pipeline import LivePipeline
from softform_core.forward.memory import Commands, Memory
from softform_core.geometry.rigid import RigidTransform
from softform_core.inverse.counterpart import beside_share
from softform_core.paths import models_of
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M
from softform_ik.goals.reach_limit import ReachSettings
from softform_ik.reach.reach import Reach, ReachOutcome
from softform_ik.robot.hardware import Hardware
from softform_ik.robot.stop_request import StopRequest
from softform_rig.best_fit import Fit, find_best_fit
from softform_rig.live_body import HELD_S, LiveBody
from softform_rig.reality import Reality
from softform_rig.scanner import Scanner, half_size

_SIZE, _HEIGHT = 0.32, 0.03  # m, of the sheet and of a relief upon it
_FACE = np.array(  # x, y, half width, half length and height: oval, nose, its tip, eyes, mouth, chin, brow
    [
        *([0.0, 0.0, 0.75, 0.95, 1.0], [0.0, 0.05, 0.13, 0.32, 0.5], [0.0, -0.05, 0.2, 0.12, 0.25]),
        *([-0.35, 0.3, 0.16, 0.12, -0.25], [0.35, 0.3, 0.16, 0.12, -0.25], [0.0, -0.4, 0.28, 0.09, 0.18]),
        *([0.0, -0.7, 0.25, 0.18, 0.25], [0.0, 0.55, 0.5, 0.12, 0.15]),
    ]
)
_BONES = np.array(  # from x, y to x, y, and how thick: head, trunk, arms, legs
    [
        *([0.0, 0.71, 0.0, 0.73, 0.22], [0.0, 0.35, 0.0, -0.2, 0.3], [-0.3, 0.4, -0.75, -0.05, 0.14]),
        *([0.3, 0.4, 0.8, 0.55, 0.14], [-0.15, -0.25, -0.3, -0.9, 0.17], [0.15, -0.25, 0.3, -0.9, 0.17]),
    ]
)


def face(xy: Array) -> Array:
    """Return the height of a face over places (N, 2) in the square of side 2; about 1 at most."""
    x, y, width, length, height = _FACE.T
    hills = height * np.exp(-(((xy[:, :1] - x) / width) ** 2) - ((xy[:, 1:] - y) / length) ** 2)
    return np.asarray(hills.sum(axis=1)) / 1.5


def figure(xy: Array) -> Array:
    """Return the height of a lying figure, 0 beside it."""
    start, along, thick = _BONES[:, :2], _BONES[:, 2:4] - _BONES[:, :2], _BONES[:, 4]
    offset = xy[:, None] - start
    part = np.clip(np.einsum("nbx,bx->nb", offset, along) / (along**2).sum(axis=1), 0.0, 1.0)
    away = np.linalg.norm(offset - part[:, :, None] * along, axis=2) / thick
    return np.asarray((thick / 0.3 * np.sqrt(np.maximum(1.0 - away**2, 0.0))).max(axis=1))


def land(xy: Array, seed: int = 0) -> Array:
    """Return the height of smoothed noise, 0 … 1."""
    noise = gaussian_filter(np.random.default_rng(seed).standard_normal((128, 128)), 12.0, mode="wrap")
    rows, columns = np.round(63.5 * (1.0 + np.clip(xy, -1.0, 1.0))).astype(int).T
    return np.asarray(gaussian_filter((noise - noise.min()) / np.ptp(noise), 2.0)[rows, columns])


def mesh(
    height: Callable[[Array], Array],
    side: int,
    kept: Callable[[Array], NDArray[np.bool_]] | None = None,
    size: float = _SIZE,
) -> Shape:
    """Return a relief of side^2 vertices over a square, m, of those triangles whose middles are kept."""
    xy = np.stack(np.meshgrid(*[np.linspace(-1.0, 1.0, side)] * 2, indexing="ij"), axis=-1).reshape(-1, 2)
    faces = Delaunay(xy).simplices
    faces = faces if kept is None else faces[kept(xy[faces].mean(axis=1))]
    return Shape.from_mesh(np.column_stack([0.5 * size * xy, _HEIGHT * height(xy)]), faces)


def together(*shapes: Shape) -> Shape:
    """Return several meshes as one."""
    starts = np.cumsum([0, *(len(shape.points) for shape in shapes)])
    faces = [shape.faces + start for shape, start in zip(shapes, starts, strict=False) if shape.faces is not None]
    return Shape.from_mesh(np.concatenate([shape.points for shape in shapes]), np.concatenate(faces))


def _oval(xy: Array) -> NDArray[np.bool_]:
    return np.asarray(np.hypot(xy[:, 0] / 0.75, xy[:, 1] / 0.97) < 1.0)


def _mask(xy: Array) -> NDArray[np.bool_]:
    holes = np.random.default_rng(3).uniform(-0.7, 0.7, (25, 2))
    eyes = np.hypot(np.abs(xy[:, 0]) - 0.35, xy[:, 1] - 0.3) < 0.1
    return np.asarray(_oval(xy) & ~eyes & (np.linalg.norm(xy[:, None] - holes, axis=2).min(axis=1) > 0.04))


def reliefs() -> dict[str, Shape]:
    """Return the ten by name, m."""
    random = np.random.default_rng(2)
    crumb, hill = mesh(lambda xy: 0.0 * xy[:, 0], 2, size=0.006), mesh(face, 41, _oval, 0.15)
    crumbs = [
        crumb.transformed(np.eye(3), at) for at in random.uniform([-0.16, -0.16, -0.03], [0.16, 0.16, 0.08], (12, 3))
    ]
    dense = mesh(lambda xy: land(xy, 5), 160).sample(40_000).points
    return {
        "face": mesh(face, 81, _oval),
        "mask with holes": mesh(face, 101, _mask),
        "face and debris": together(mesh(face, 81, _oval), *crumbs),
        "figure": mesh(figure, 121, lambda xy: figure(xy) > 0.0),
        "land, coarse": mesh(land, 13),
        "land, dense and noisy": Shape.from_cloud(dense + 2e-4 * random.standard_normal(dense.shape)),
        "two parts": together(*(hill.transformed(np.eye(3), np.array([x, 0.01, 0.0])) for x in (-0.085, 0.085))),
        "off-centre": mesh(land, 61).transformed(np.eye(3), np.array([0.08, -0.04, 0.0])),
        "larger": mesh(lambda xy: land(xy, 7), 81, size=0.48),
        "smaller": mesh(face, 61, _oval, 0.2),
    }


_CAPTURES, _ROUNDS = 4, 3  # as of a demo


class RigWithoutNodes(Hardware):
    """Driver and scanner of a virtual rig that settles at once."""

    def __init__(self, robot: Robot, reality: Reality) -> None:
        self._robot, self._body, self._past, self._now = robot, LiveBody(robot, reality), HistoryKeeper(robot), 0.0
        self._scanner = Scanner(reality.scanner, RigidTransform(), 1.1 * half_size(robot), 0)
        self._values, self._shape = robot.safe, self._body.rest

    def move(self, values: Array, stop: StopRequest, on_commanded: Callable[[], None] = lambda: None) -> MeasuredValues:
        """Move to values (k,)."""
        self._now += HELD_S
        self._values, self._shape = values, self._body.commanded_shape(self._robot.actuation_of(values))
        self._past.note(values, self._now)
        return MeasuredValues(values, True, self._now, self._now)

    @property
    def here(self) -> Array:
        """Return the values (k,) that are held."""
        return self._values

    def look(self, settled: MeasuredValues, stop: StopRequest) -> Array:
        """Return the clouds of one look, (N, 3) m."""
        return np.concatenate([self._scanner.scan(self._shape, self._body.faces).points for _ in range(_CAPTURES)])

    def commands(self, memory: Memory) -> Commands:
        """Return the commands, like `Hardware.commands`."""
        here = self._robot.nearest_actuation(self._values)
        return Commands.of(self._robot, memory, self._past.history, here, self._now)


def run(
    robot: Robot, reality: Reality, targets: Mapping[str, Shape], tell: Callable[[str], None], executor: Executor
) -> dict[str, dict[str, object]]:
    """Return the mean distances, mm, of each target at rest, after each way and of the best fit.

    Raises:
        SoftformError: If a target cannot be reached for, or an actuation has no equilibrium.
    """
    pipelines = LivePipeline(robot, sim_to_real=str(models_of(robot.name) / f"rig_{reality.name}"))
    rest = resting_surface(pipelines.simulated, robot)
    resting = rest.shape.sample(10_000).points
    figures: dict[str, dict[str, object]] = {}
    for name, target in targets.items():
        reach = Reach(robot, pipelines, ReachSettings(), RigWithoutNodes(robot, reality))
        ways = [
            _reached(reach, ReachGoal(target, Mode.PLAN_MOVE_AND_VERIFY, without_sim_to_real=True)),
            _reached(reach, ReachGoal(target, Mode.PLAN_MOVE_AND_VERIFY)),
        ]
        seed = min(ways, key=lambda one: _fit(one, robot).mean_mm).commands
        ways.append(_reached(reach, ReachGoal(target, Mode.CLOSED_LOOP, seed=seed, max_rounds=_ROUNDS)))
        tried = [_fit(one, robot) for one in ways]
        means = dict(zip(("simulation_mm", "sim_to_real_mm", "closed_loop_mm"), tried, strict=True))
        figures[name] = {
            "beside_robot_share": round(beside_share(target, rest.shape, RigidTransform()), 3),
            "rest_mm": round(measure_errors(resting, target, RigidTransform(), rest).mean * MM_PER_M, 3),
            **{way: round(one.mean_mm, 3) for way, one in means.items()},
            "rounds_mm": [round(one.measured.mean * MM_PER_M, 3) for one in ways[-1].rounds],
            **find_best_fit(robot, reality, target, tried=tried, executor=executor).figures(),
        }
        tell(f"{name}: {figures[name]}")
    return figures


def _reached(reach: Reach, goal: ReachGoal) -> ReachOutcome:
    outcome = reach.run(goal, StopRequest(), lambda progress: None)
    if outcome.measured is None:
        raise SoftformError(outcome.message, "Look at the target.")
    return outcome


def _fit(outcome: ReachOutcome, robot: Robot) -> Fit:
    measured = outcome.measured
    assert measured is not None and outcome.commands is not None
    return Fit(measured.mean * MM_PER_M, measured.maximum * MM_PER_M, robot.actuation_of(outcome.commands))
