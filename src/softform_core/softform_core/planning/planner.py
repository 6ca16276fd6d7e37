"""Sampling-based planning in actuation space by OMPL: paths of actuations whose every state and motion is checked.

Paper 000, Sec. V-E2 names the sampling-based algorithms of Karaman and Frazzoli (its [44]), of which RRT* is one.
Actuations are scaled to the unit box, so that all actuators count alike.
"""

import atexit
import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from ompl import base, geometric, util

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.planning.motion_plan import ALGORITHMS, PlannerSettings
from softform_core.planning.sweep import MotionChecker

atexit.unregister(gc.freeze)  # which spares a process its last collection, but OMPL prints all that was not collected

RANGE = 0.5
"""Longest motion that is tried at once, in the unit box."""

SHORTCUTS = 40
"""Number of shortcuts that are tried; as it is no time, the same seed gives the same path on any machine."""


@dataclass(frozen=True)
class Search:
    """Result of a search.

    Attributes:
        path: (n, k), the corners of a path that is clear; None if none was found.
        motions_checked: Straight motions that were tried.
        seconds: Duration, s.
    """

    path: Array | None
    motions_checked: int
    seconds: float


def find_path(
    start: Array,
    goals: Sequence[Array],
    bounds: tuple[Array, Array],
    checker: MotionChecker,
    settings: PlannerSettings,
    on_stage: Callable[[str], None] = lambda stage: None,
) -> Search:
    """Find a clear path from `start` to any of `goals`.

    Args:
        start: (k,), clear.
        goals: (k,) each, clear.
        bounds: Lowest and highest actuation, (k,) each.
        checker: Checker of motions; its `StoppedError` passes through.
        settings: Settings of the planner.
        on_stage: Called with `planning` and `smoothing` as they begin.

    Raises:
        StoppedError: If the checker was asked to stop.
        SoftformError: If the settings are invalid.
    """
    if settings.algorithm not in ALGORITHMS or settings.seed < 1 or not settings.max_seconds > 0.0:
        raise SoftformError(
            f"Invalid planner settings: '{settings.algorithm}', seed {settings.seed}, {settings.max_seconds} s.",
            f"Use one of {', '.join(ALGORITHMS)}, a seed of 1 or more, and a positive time.",
        )
    started = time.monotonic()
    problem = _Problem(bounds, checker, started + settings.max_seconds)
    if problem.validator.passes(start, goals[0]):
        return Search(np.stack([start, goals[0]]), 1, time.monotonic() - started)
    problem.validator.raise_if_failed()
    on_stage("planning")
    path = problem.solve(start, goals, settings)
    if path is not None and settings.algorithm == "rrt_connect":
        on_stage("smoothing")
        path = problem.shortened(path)
    return Search(path, problem.validator.motions, time.monotonic() - started)


class _Validator(base.MotionValidator):
    """OMPL's questions, answered by the checker; an exception must not cross OMPL, so it is kept and raised after."""

    def __init__(self, information: base.SpaceInformation, bounds: tuple[Array, Array], checker: MotionChecker) -> None:
        super().__init__(information)
        self._low, self._range, self._checker = bounds[0], bounds[1] - bounds[0], checker
        self.motions = 0
        self.has_failed = False
        self._error: Exception | None = None

    def actuation(self, state: base.State) -> Array:
        return np.asarray(self._low + self._range * np.array([state[i] for i in range(len(self._low))]))

    def place(self, actuation: Array, state: base.State) -> None:
        for index, value in enumerate(np.clip((actuation - self._low) / self._range, 0.0, 1.0)):
            state[index] = float(value)

    def passes(self, start: Array, end: Array) -> bool:
        if self.has_failed:
            return False
        self.motions += 1
        try:
            return self._checker.is_clear(start, end)
        except Exception as error:
            self._error, self.has_failed = error, True
            return False

    def raise_if_failed(self) -> None:
        # The error knows this object by its traceback; OMPL's objects are not freed from such a circle.
        error, self._error = self._error, None
        if error is not None:
            raise error

    def checkMotion(self, one: base.State, other: base.State, *last_valid: object) -> bool:  # noqa: N802 (OMPL's name)
        return self.passes(self.actuation(one), self.actuation(other))


class _Problem:
    """One search: OMPL's objects, and the end of its time."""

    def __init__(self, bounds: tuple[Array, Array], checker: MotionChecker, deadline: float) -> None:
        util.setLogLevel(util.LOG_NONE)
        space = base.RealVectorStateSpace(len(bounds[0]))
        box = base.RealVectorBounds(len(bounds[0]))
        box.setLow(0.0)
        box.setHigh(1.0)
        space.setBounds(box)
        self._deadline = deadline
        self._information = base.SpaceInformation(space)
        self.validator = _Validator(self._information, bounds, checker)
        self._information.setMotionValidator(self.validator)
        # Every state that OMPL keeps is the end of a motion that was checked, or a start or goal that was.
        self._information.setStateValidityChecker(base.AllValidStateValidityChecker(self._information))
        self._information.setup()

    def solve(self, start: Array, goals: Sequence[Array], settings: PlannerSettings) -> Array | None:
        # OMPL seeds each generator that it makes from here on by this.
        util.RNG.setSeed(settings.seed)
        definition = base.ProblemDefinition(self._information)
        definition.addStartState(self._state(start))
        goal = base.GoalStates(self._information)
        for one in goals:
            goal.addState(self._state(one))
        definition.setGoal(goal)
        star = settings.algorithm == "rrt_star"
        planner = (geometric.RRTstar if star else geometric.RRTConnect)(self._information)
        planner.setRange(RANGE)
        planner.setProblemDefinition(definition)
        planner.setup()
        first_found: list[float] = []

        def is_over() -> bool:
            now = time.monotonic()
            if star and not first_found and np.isfinite(planner.bestCost().value()):
                first_found.append(now)
            improved = bool(first_found) and now - first_found[0] > settings.improve_seconds
            return improved or self.validator.has_failed or now > self._deadline

        planner.solve(base.PlannerTerminationCondition(is_over))
        self.validator.raise_if_failed()
        if not definition.hasExactSolution():
            return None
        return self._array(definition.getSolutionPath())

    def shortened(self, path: Array) -> Array:
        """Return the path after shortcuts; as it was if the time is up."""
        ours = geometric.PathGeometric(self._information, [self._state(one) for one in path])
        simplifier = geometric.PathSimplifier(self._information)
        for _ in range(SHORTCUTS):
            if time.monotonic() > self._deadline:
                break
            simplifier.partialShortcutPath(ours, 1, 1)
        simplifier.reduceVertices(ours)
        self.validator.raise_if_failed()
        return self._array(ours)

    def _state(self, actuation: Array) -> base.State:
        state = self._information.allocState()
        self.validator.place(actuation, state)
        return state

    def _array(self, path: geometric.PathGeometric) -> Array:
        return np.array([self.validator.actuation(state) for state in path.getStates()])
