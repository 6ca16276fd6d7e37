"""Predict, reach, follow and stream with `model: fem`, by the classes that the nodes serve them with, without nodes."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from softform_client.driver_watch import DriverWatch
from softform_client.follow_messages import FollowGoal, PointPath
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.forward_model import SurfaceModel
from softform_core.forward.one_point import MeanPoint
from softform_core.forward.robot_models import ModelRequest, RobotModels, SurfaceModels, TipModels, open_models
from softform_core.inverse.follow_path import pull_mm2
from softform_core.inverse.ik_options import IkOptions
from softform_core.inverse.inverse import solve_inverse_kinematics
from softform_core.inverse.out_of_reach import largest_deformation
from softform_core.inverse.servo import Servo, ServoSettings
from softform_core.inverse.servo_target import ServoTarget
from softform_core.paths import described_names
from softform_core.robots import TIP, Robot, load_robot
from softform_core.shapes.features import FeaturePoints, anchored_parameters
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M
from softform_ik.follow.solver import PathSolver
from softform_ik.follow.surface import SurfacePathSolver
from softform_ik.follow.tip import TipPathSolver
from softform_ik.goals.reach_limit import ReachSettings

_POINTS = 1000
"""Of a surface, as the nodes have."""
_TARGET_POINTS = 4000
"""Of a shape that is to be reached: chords of a tube with fewer miss it."""
_WAYPOINTS = 4
_PARTS = 3
"""Targets of a stream from one waypoint to the next."""
_BEGINNING = 2
"""Ticks at the first target that do not count: what is prepared once is prepared then."""
_SETTLING = 4
"""Further ticks at the last target."""
_TICK = 0.05
"""Between two targets of a stream, s."""
_PATH = 0.25, 0.05
"""Where a path begins, from what is neutral to the end of the range, and how far each of its steps goes."""


def models_by_simulation(names: list[str], report: Callable[[str], None]) -> dict[str, object]:
    """Figures of robots by name, of all shipped ones by default.

    Args:
        names: Robots in `config/robots`, or paths of descriptions.
        report: Takes a line for each.
    """
    rows: dict[str, dict[str, Any]] = {}
    for name in names or described_names("robots"):
        try:
            rows[name] = Led(load_robot(name)).row()
        except SoftformError as error:
            rows[name] = {"told": str(error)}
        report(f"{name}: {rows[name]['told'] or 'led'}")
    return {"robots": rows, "led": sum(not row["told"] for row in rows.values())}


class Led:
    """One robot by its simulation, along a path of one of its points that it can keep to.

    Args:
        robot: The robot. What is led is its frame `tip` if it has one, else the middle of its first patch.

    Raises:
        SoftformError: If it has no simulation.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        begun = time.process_time()
        self.models: RobotModels = open_models("fem", ModelRequest(robot, _POINTS))
        models = self.models
        shapes: Callable[[Array], Array] = models.tip.tip if isinstance(models, TipModels) else self._surface.points
        self.deformation_mm = largest_deformation(
            shapes, robot.actuation_min, robot.actuation_max, models.simulated.is_solved
        )
        self.opened_s = time.process_time() - begun
        self._output = TIP if TIP in robot.frames else robot.surfaces[0].patch
        self._uv = np.full(2, 0.5)
        self.path = np.array(list(self._actuations()))
        self.places = np.array([self._place(actuation) for actuation in self.path])

    def row(self) -> dict[str, Any]:
        """What it does: processor time of each action, ms, what it misses, mm, or in `told` why it does nothing."""
        predict_ms = self.predict()
        (reach_ms, reach_mm), (follow_ms, follow_mm), (ticks_ms, stream_mm) = self.reach(), self.follow(), self.stream()
        return {
            "title": self.robot.title,
            "is_surface": isinstance(self.models, SurfaceModels),
            "unknowns": len(self.robot.body.simulator().rest),
            "open_s": self.opened_s,
            "predict_ms": predict_ms,
            "reach_ms": reach_ms,
            "reach_mm": reach_mm,
            "follow_ms": follow_ms,
            "follow_mm": follow_mm,
            "tick_ms_p50": float(np.median(ticks_ms)),
            "tick_ms_p95": float(np.percentile(ticks_ms, 95)),
            "stream_mm": stream_mm,
            "told": "",
        }

    def predict(self) -> float:
        """Milliseconds of a prediction, a step of the path after the one before; the median."""
        spent = []
        for before, after in zip(self.path, self.path[1:], strict=False):
            self._place(before)
            begun = time.process_time()
            self.models.current.forward(after[None])
            spent.append(1e3 * (time.process_time() - begun))
        return float(np.median(spent))

    def reach(self) -> tuple[float, float]:
        """Milliseconds of a goal with the shape, or tip, of the path's end, from its begin; and what it misses, mm."""
        shape, features = None, None
        if isinstance(self.models, SurfaceModels):
            model = self._surface
            fine = model.at(model.patches.samples(_TARGET_POINTS))
            shape = Shape.from_mesh(fine.points(self.path[-1]) / MM_PER_M, fine.patches.triangles(len(fine.uv)))
        else:
            features = self._wanted(self.places[-1]).on(self.robot)
        settings = ReachSettings()
        options = IkOptions(
            self.robot.actuation_min, self.robot.actuation_max, initial_actuation=self.path[0],
            tolerance_mm=settings.tolerance * MM_PER_M, max_iterations=settings.max_iterations, max_seconds=1e9,
        )  # fmt: skip
        self._place(self.path[0])
        begun = time.process_time()
        found = solve_inverse_kinematics(self.models.current, shape, options, features=features)
        return 1e3 * (time.process_time() - begun), found.mean_error_mm

    def follow(self) -> tuple[float, float]:
        """Milliseconds of a waypoint of the path, and the most that one is missed by, mm."""
        goal = FollowGoal(PointPath(self.places, np.array(self._uv), self._output))
        begun = time.process_time()
        solved = list(self._solver().solve(goal, self.robot.actuators_of(self.path[0]), lambda: False))
        return 1e3 * (time.process_time() - begun) / len(solved), max(one.error_mm for one in solved)

    def stream(self) -> tuple[list[float], float]:
        """Milliseconds of each target of a stream along the path, and what is missed at rest at the last one, mm."""
        robot, models, servo, idle = self.robot, self.models, None, 0
        pull = pull_mm2(models.tip) if isinstance(models, TipModels) else 0.0

        def now() -> float:
            return _TICK * (idle + (0 if servo is None else servo.iterations))

        servo = Servo(
            ServoSettings(
                robot.actuation_min, robot.actuation_max, robot.actuation_slew, _TICK, 1e9, np.inf, smoothness_mm2=pull
            ),
            now,
        )  # fmt: skip
        servo.resume_from(self.path[0])
        between = np.linspace(0.0, _WAYPOINTS - 1.0, _PARTS * (_WAYPOINTS - 1) + 1)
        ends = np.stack([np.interp(between, range(_WAYPOINTS), axis) for axis in self.places.T], axis=1)
        spent = []
        for place in [*[ends[0]] * _BEGINNING, *ends, *[ends[-1]] * _SETTLING]:
            before, begun = servo.iterations, time.process_time()
            features = self._wanted(place).on(robot)
            servo.aim(ServoTarget(before, now(), features=features, accept_unreachable=True))
            servo.refine(models.current, now() + 0.9 * _TICK)
            idle += servo.iterations == before
            command = servo.command()
            spent.append(1e3 * (time.process_time() - begun))
            if command.reason:
                raise SoftformError(command.reason)
        assert command.actuation is not None
        missed = np.linalg.norm(self._place(command.actuation) - ends[-1]) * MM_PER_M
        return spent[_BEGINNING:], float(missed)

    @property
    def _surface(self) -> SurfaceModel:
        assert isinstance(self.models, SurfaceModels)
        return self.models.current

    def _solver(self) -> PathSolver:
        driver, models = DriverWatch(self.robot, 60.0), self.models
        if isinstance(models, TipModels):
            return TipPathSolver(self.robot, models.tip, driver)
        return SurfacePathSolver(self.robot, models, ReachSettings(max_time=1e9), driver, 0.0)

    def _actuations(self) -> Iterator[Array]:
        """Actuations of the path: some rise, others fall, about what is neutral."""
        robot = self.robot
        neutral = np.clip(np.zeros(robot.degrees_of_freedom), robot.actuation_min, robot.actuation_max)
        signs = np.where(np.arange(len(neutral)) % 2, -1.0, 1.0)
        for number in range(_WAYPOINTS):
            share = _PATH[0] + signs * _PATH[1] * number
            yield neutral + share * (robot.actuation_max - neutral)

    def _wanted(self, place: Array) -> FeaturePoints:
        return FeaturePoints.of(self._uv[None], place[None], output=[self._output])

    def _place(self, actuation: Array) -> Array:
        """Where the point that is led is at an actuation (m,), (3,) m."""
        if isinstance(self.models, TipModels):
            place = np.zeros(3)
            place[: self.models.tip.dimensions] = self.models.tip.tip(actuation) / MM_PER_M
            return place
        parameters, anchors = anchored_parameters(self.robot, self._output, self._uv[None])
        point = MeanPoint(self.models.current.at(parameters), anchors)
        return np.asarray(point.forward(actuation[None]).points[0, 0]) / MM_PER_M
