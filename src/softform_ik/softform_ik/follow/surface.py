"""Paths of shapes, or of one point of a surface or a centre line, or a frame; each solved from the one before.

Paper 001, Sec. II-B, takes each waypoint's actuation as the first guess of the next; here it is also kept near it, as
many actuations lead one point to its place.
"""

from collections.abc import Callable, Iterator

from softform_client.driver_watch import DriverWatch
from softform_client.follow_messages import FollowGoal, PointPath, ShapePath
from softform_core.arrays import Array
from softform_core.forward.forward_model import ForwardModel
from softform_core.forward.one_point import MeanPoint
from softform_core.forward.robot_models import RobotModels
from softform_core.inverse.ik_options import IkOptions, Termination
from softform_core.inverse.inverse import solve_inverse_kinematics
from softform_core.robots import Robot
from softform_core.shapes.features import FeaturePoints, anchored_parameters
from softform_core.shapes.shape import Shape
from softform_ik.follow.solver import PathSolver, SolvedWaypoint
from softform_ik.goals.reach_limit import ReachSettings


class SurfacePathSolver(PathSolver):
    """Leads a robot with a surface along shapes, or one point of its surface or of a centre line along points.

    An actuator's whole range away from the last waypoint is worth `smoothness_mm2` of squared error: of the many
    actuations that lead one point to its place, the nearest is chosen.
    """

    def __init__(
        self,
        robot: Robot,
        models: RobotModels,
        settings: ReachSettings,
        driver: DriverWatch,
        smoothness_mm2: float,
    ) -> None:
        super().__init__(robot)
        self._models, self._settings, self._driver = models, settings, driver
        self._smoothness_mm2 = smoothness_mm2

    def _solve(
        self, goal: FollowGoal, path: PointPath | ShapePath, here: Array | None, should_stop: Callable[[], bool]
    ) -> Iterator[SolvedWaypoint]:
        models = self._models.of(goal.model)
        given = goal.seed if goal.seed is not None else here
        before = None if given is None else self.robot.nearest_actuation(given)
        commands = self._driver.commands(_pipeline(goal, models).memory, here)
        for number, (target, features) in enumerate(_wanted(path)):
            model = _pipeline(goal, models).given(commands.state)
            solution = solve_inverse_kinematics(
                self._led(path, model), target, self._options(before), features=features, should_stop=should_stop
            )
            cut_short = solution.termination is Termination.TIME_LIMIT
            seconds = self._seconds(goal, number, commands.effective, solution.actuation)
            commanded = commands.command(solution.actuation, seconds)
            yield SolvedWaypoint(commanded, solution.mean_error_mm, solution.miss, cut_short)
            before = solution.actuation

    def uses_sim_to_real(self, goal: FollowGoal) -> bool:
        """See `PathSolver.uses_sim_to_real`."""
        models = self._models.of(goal.model)
        return _pipeline(goal, models) is not models.simulated

    def _led(self, path: PointPath | ShapePath, pipeline: ForwardModel) -> ForwardModel:
        """Return what is led: the surface, a point of it, of a skin or of the centre line, or the named frame."""
        if isinstance(path, PointPath):
            parameters, place = anchored_parameters(self.robot, path.output, path.uv[None])
            return MeanPoint(pipeline.at(parameters), place)
        return pipeline

    def _options(self, before: Array | None) -> IkOptions:
        return IkOptions(
            actuation_min=self.robot.actuation_min,
            actuation_max=self.robot.actuation_max,
            previous_actuation=before,
            smoothness_mm2=0.0 if before is None else self._smoothness_mm2,
            max_iterations=self._settings.max_iterations,
            max_seconds=self._settings.max_time,
        )


def _pipeline(goal: FollowGoal, models: RobotModels) -> ForwardModel:
    return models.simulated if goal.without_sim_to_real else models.current


def _wanted(path: PointPath | ShapePath) -> Iterator[tuple[Shape | None, FeaturePoints | None]]:
    if isinstance(path, ShapePath):
        yield from ((shape, None) for shape in path.shapes)
        return
    yield from ((None, FeaturePoints.of(path.uv[None], point[None])) for point in path.points)
