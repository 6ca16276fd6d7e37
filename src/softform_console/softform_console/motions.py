"""Motions of pages: planned past obstacles or along a drawn path, looked at, and then run as they were planned."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from softform_client.client import ActuatorPath, PointPath, ShapeClient
from softform_console.goal_runner import GoalRunner
from softform_console.motion_messages import GoHome, Motion, MotionState, Obstacle, PlanMotion, PlanPath, RunMotion
from softform_console.obstacle_shapes import mesh_of
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.history import History
from softform_core.inverse.timing import slew_durations
from softform_core.planning.obstacles import check_obstacle
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M

_AWAY = 0.05
"""Share of its range by which an actuator must have been away to count as moved: what is measured at rest wavers."""

_LEAST_LEG = 1e-3
"""Shortest time between waypoints of a path, s: they must be later one after the other."""


class Motions:
    """Plans motions, one at a time, and runs the newest.

    Args:
        robot: The robot.
        runner: Carries out one goal at a time.
        index: Number of the robot for pages.
        history: Returns where the robot's actuators have turned back so far.
    """

    def __init__(
        self, robot: Robot, runner: GoalRunner, index: int = 0, history: Callable[[], History] = History
    ) -> None:
        self._robot, self._runner, self._index, self._count = robot, runner, index, 0
        self._history = history
        self._motion: Motion | None = None
        self._past = History()
        self._changes, self._lock = 0, threading.Lock()
        self.obstacles: tuple[Obstacle, ...] = ()

    def adds(self, obstacles: Sequence[Obstacle]) -> bool:
        """Return whether one of these was not placed before, or elsewhere: what moves may run into it."""
        return not set(obstacles) <= set(self.obstacles)

    def place(self, obstacles: Sequence[Obstacle]) -> None:
        """Take the obstacles of motions that are planned from now on; what was planned past others is not run.

        Raises:
            SoftformError: If they cannot be obstacles of this robot.
        """
        wanted, known = tuple(obstacles), set(self.obstacles)
        for one in set(wanted) - known:
            shape = mesh_of([one])
            check_obstacle(shape.points, shape.faces, self._robot)
        if wanted != self.obstacles:
            self.obstacles = wanted
            self.outdate("The obstacles were changed")

    def outdate(self, why: str) -> None:
        """Run no motion past obstacles that was planned, or is being planned, before now."""
        with self._lock:
            self._changes += 1
            if self._motion is None or not self._motion.clearances:
                return
            self._motion = None
        if not self._runner.is_running:
            self._tell("outdated", f"{why}: plan again.")

    def plan(self, asked: PlanMotion, target: Callable[[], Shape | Array]) -> None:
        """Plan a motion to a target, or to values (k,), past the obstacles; returns at once.

        The goal's thread makes the target: to pose a large one takes long.

        Raises:
            SoftformError: If a goal runs, or there is no obstacle.
        """
        if not self.obstacles:
            raise SoftformError("There is no obstacle to be kept clear of.", "Add one, or reach the target as it is.")
        obstacles, changes = self.obstacles, self._changes

        def plan(client: ShapeClient) -> None:
            self._tell("planning", "The planner begins.")
            past = self._history()

            def note(feedback: Any) -> None:
                said = f"{feedback.stage}, {feedback.elapsed:.1f} s, {feedback.states_checked} surfaces checked"
                self._tell("planning", said)

            result = client.plan(target(), mesh_of(obstacles), clearance=asked.clearance, on_feedback=note)
            values = np.reshape(result.actuators.value, (len(result.times), -1))
            motion = self._motion_of(values, result.times, clearances=result.clearances, margins=result.margins)
            clear = f"{min(result.clearances) * MM_PER_M:.1f} mm clear at least"
            self._keep(motion, f"{len(values)} waypoints in {motion.times[-1]:.1f} s, {clear}.", changes, past)

        self._begin(plan, asked.type, moves=False)

    def plan_path(self, asked: PlanPath) -> None:
        """Plan a motion along a drawn path; returns at once.

        Raises:
            SoftformError: If a goal runs.
        """
        places = np.array(asked.places)

        def plan(client: ShapeClient) -> None:
            self._tell("planning", f"{len(places)} places are solved for.")
            path = PointPath(places, np.array([asked.u, asked.v]), asked.output)
            result = client.follow(path, plan_only=True, accept_unreachable=True)
            values = np.reshape(result.actuators.value, (len(places), -1))
            times = _times(places, values, asked.seconds, self._robot.slew_rate)
            path_of = [(float(x), float(y), float(z)) for x, y, z in places]
            motion = self._motion_of(values, times, path=path_of, errors=result.errors)
            errors = np.array(result.errors) * MM_PER_M
            off = f"{errors.mean():.1f} mm off in the mean, {errors.max():.1f} mm at most, as predicted"
            self._keep(motion, f"{len(places)} places in {times[-1]:.1f} s, {off}.")

        self._begin(plan, asked.type, moves=False)

    def run(self, asked: RunMotion) -> None:
        """Run the newest motion as it was planned; returns at once.

        A path begins where the robot has settled at its first place. A motion past obstacles begins where it was
        planned to begin, or not at all: the way there was not looked at. Nor is it run if the robot has turned back
        by more than `_AWAY` since: a body that remembers takes another way then.

        Raises:
            SoftformError: If a goal runs, or this is not the newest motion, or it is outdated.
        """
        motion = self._motion
        if motion is None or motion.id != asked.motion:
            raise SoftformError("This motion is not the newest.", "Look at the newest, or plan again.")
        if motion.clearances and self._has_turned(motion):
            raise SoftformError("The robot was moved since this motion was planned.", "Plan again, from where it is.")
        values, times, epoch = np.array(motion.actuators), np.array(motion.times), int(asked.epoch)

        def run(client: ShapeClient) -> None:
            if motion.path:
                self._tell("moving", "To the first place.")
                client.follow(ActuatorPath(values[:1]), epoch=epoch)

            def note(feedback: Any) -> None:
                self._tell("moving", f"waypoint {feedback.waypoint} of {len(values)}", feedback.waypoint)

            client.follow(ActuatorPath(values), times=times, epoch=epoch, on_feedback=note)
            self._tell("reached", "The motion is done; its end is held.", len(values))

        self._begin(run, asked.type, moves=True)

    def go_home(self, asked: GoHome) -> None:
        """Lead the robot there and back until what it did before cannot matter; returns at once.

        Raises:
            SoftformError: If a goal runs.
        """

        def go(client: ShapeClient) -> None:
            def note(feedback: Any) -> None:
                self._tell("moving", f"home: move {feedback.waypoint}", feedback.waypoint)

            client.home(epoch=int(asked.epoch), on_feedback=note)
            self._tell("reached", "What the robot did before does not matter any more; it is held at rest.")

        self._begin(go, asked.type, moves=True)

    def _begin(self, work: Any, about: str, moves: bool) -> None:
        def told(client: ShapeClient) -> None:
            try:
                work(client)
            except Exception as error:
                self._tell("failed", str(error))
                raise

        self._runner.begin(told, about, moves)

    def _motion_of(self, values: Array, times: Any, **more: Any) -> Motion:
        self._count += 1
        return Motion(
            robot=self._index,
            id=self._count,
            actuators=[[float(one) for one in row] for row in values],
            times=[float(one) for one in times],
            clearances=list(more.get("clearances", ())),
            margins=list(more.get("margins", ())),
            path=list(more.get("path", ())),
            errors=list(more.get("errors", ())),
        )

    def _has_turned(self, motion: Motion) -> bool:
        """Return whether the robot was away from where the motion begins since it was planned, and came back."""
        start = self._robot.nearest_actuation(np.array(motion.actuators[0]))
        away = _AWAY * (self._robot.actuation_max - self._robot.actuation_min)
        before = self._past.turns or ((),) * len(start)
        for now, past, value, least in zip(self._history().turns, before, start, away, strict=False):
            if any(abs(turned - value) > least for _, turned in set(now) - set(past)):
                return True
        return False

    def _keep(self, motion: Motion, text: str, changes: int | None = None, past: History | None = None) -> None:
        with self._lock:
            if changes is not None and changes != self._changes:
                raise SoftformError("Obstacles or model were changed while it was planned.", "Plan again.")
            self._motion, self._past = motion, past or History()
        self._runner.tell(motion)
        self._tell("planned", text)

    def _tell(
        self,
        stage: Literal["planning", "planned", "moving", "reached", "failed", "outdated"],
        text: str,
        waypoint: int = 0,
    ) -> None:
        self._runner.tell(MotionState(robot=self._index, stage=stage, waypoint=waypoint, text=text))


def _times(places: Array, values: Array, seconds: float, slew_rate: Array) -> Array:
    """Return when each place (m, 3) is due: evenly along the path within so many s, no faster than the robot is."""
    lengths = np.linalg.norm(np.diff(places, axis=0), axis=1)
    legs = seconds * lengths / max(lengths.sum(), 1e-9)
    shortest = slew_durations(values[0], values[1:], slew_rate)
    return np.concatenate([[0.0], np.cumsum(np.maximum.reduce([legs, shortest, np.full_like(legs, _LEAST_LEG)]))])
