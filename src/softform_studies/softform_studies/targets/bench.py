"""Every way of `softform demo` on targets as they come, without nodes: is learning ever worse than the simulation?"""

from collections.abc import Callable, Mapping

import numpy as np

from softform_client.driver_watch import MeasuredValues
from softform_client.reach_goal import Mode, ReachGoal
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.evaluation.measured_errors import measure_errors, resting_surface
from softform_core.executors import Executor
from softform_core.forward.actuator_past import ActuatorPast
from softform_core.forward.live_pipeline import LivePipeline
from softform_core.forward.play import InversePlay, Play
from softform_core.geometry.rigid import RigidTransform
from softform_core.inverse.counterpart import beside_share
from softform_core.paths import models_of
from softform_core.robots import Robot
from softform_core.shapes.target import TargetShape
from softform_core.units import MM_PER_M
from softform_ik.reach.reach import Reach, ReachOutcome, ReachSettings
from softform_ik.robot.hardware import Hardware
from softform_ik.robot.stop_request import StopRequest
from softform_rig.best_fit import Fit, find_best_fit
from softform_rig.live_body import HELD_S, LiveBody
from softform_rig.reality import Reality
from softform_rig.scanner import Scanner, half_size

_CAPTURES, _ROUNDS = 4, 3  # as of a demo


class RigWithoutNodes(Hardware):
    """Driver and scanner of a virtual rig that settles at once."""

    def __init__(self, robot: Robot, reality: Reality, seed: int = 0) -> None:
        self._robot, self._body, self._past, self._now = robot, LiveBody(robot, reality), ActuatorPast(robot), 0.0
        self._scanner = Scanner(reality.scanner, RigidTransform(), 1.1 * half_size(robot), seed)
        self._values, self._shape = robot.safe, self._body.rest

    def move(self, values: Array, stop: StopRequest, on_commanded: Callable[[], None] = lambda: None) -> MeasuredValues:
        """Be at values (k,)."""
        self._now += HELD_S
        self._values, self._shape = values, self._body.commanded_shape(self._robot.actuation_of(values))
        self._past.note(values, self._now)
        return MeasuredValues(values, True, self._now, self._now)

    def look(self, settled: MeasuredValues, stop: StopRequest) -> Array:
        """The clouds of one look, (N, 3) m."""
        return np.concatenate([self._scanner.scan(self._shape, self._body.faces).points for _ in range(_CAPTURES)])

    def inverse(self, play: Play | None) -> InversePlay:
        """As `Hardware.inverse`."""
        return self._past.inverse(play, self._values)


def run(
    robot: Robot, reality: Reality, targets: Mapping[str, TargetShape], tell: Callable[[str], None], executor: Executor
) -> dict[str, dict[str, object]]:
    """Mean distances, mm, of each target at rest, after each way and of the best fit.

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
