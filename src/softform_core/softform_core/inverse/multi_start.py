"""Global search: many starts over the actuation range, short solves at few points, the promising ones carried on.

Starts are the caller's own and then a Halton sequence. The search ends early when the best is within the tolerance,
or when several starts have led to it: more of them would lead there again.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.forward_model import ForwardModel
from softform_core.halton import halton_actuations
from softform_core.inverse.closest_points import ClosestPoints
from softform_core.inverse.feature_term import FeatureTerm
from softform_core.inverse.ik_options import IkOptions, Termination, check_options
from softform_core.inverse.ik_result import IkResult
from softform_core.inverse.inverse import Target, search_of, solve_prepared
from softform_core.shapes.features import FeaturePoints

MAX_STARTS = 10_000

_SHORT_ITERATIONS = 12
_SHORT_RELATIVE_DECREASE = 1e-2

_PROMISING = 1.1
"""A short solve whose merit is within this factor of the best short one is carried on at all points."""

_SAME = 1.01
"""A merit within this factor of the best counts as the same solution."""

_REPEATS = 3


@dataclass(frozen=True)
class Candidate:
    """Where a start (k,) led: an actuation (k,) and its merit at a few points, mm^2."""

    start: Array
    actuation: Array
    merit: float


class GlobalSearch:
    """A search under way; `run` may be called again to go on where the time was up.

    Args:
        pipeline: Forward kinematics.
        target: Closest points on the target, or None: feature points alone.
        options: Bounds, pose and limits; `max_seconds` is of each solve.
        features: Feature points, or None.
        starts: Most starts.

    Attributes:
        best: The best found; None before the first start.
        candidates: One for each start made.

    Raises:
        SoftformError: On bad options or an invalid number of starts.
    """

    def __init__(
        self,
        pipeline: ForwardModel,
        target: ClosestPoints | None,
        options: IkOptions,
        features: FeatureTerm | None = None,
        starts: int = 16,
    ) -> None:
        if not 1 <= starts <= MAX_STARTS:
            raise SoftformError(f"{starts} is not a valid number of starts.", f"Ask for 1 to {MAX_STARTS}.")
        check_options(options, pipeline.degrees_of_freedom)
        self._pipeline, self._target, self._features, self._options = pipeline, target, features, options
        self._short = replace(
            options, max_iterations=_SHORT_ITERATIONS, relative_decrease=_SHORT_RELATIVE_DECREASE, tolerance_mm=0.0
        )
        self._starts = starts
        self._remaining = self._drawn(starts)
        self._cut_short: Array | None = None
        self._shortest = np.inf
        self.best: IkResult | None = None
        self.candidates: list[Candidate] = []

    @property
    def agreeing(self) -> int:
        """How many starts led to the best, as far as the few points tell."""
        return sum(one.merit <= _SAME * self._shortest for one in self.candidates)

    @property
    def is_finished(self) -> bool:
        """Whether more starts would be of no use, or none are left."""
        best = self.best
        if best is None:
            return False
        within = best.mean_error_mm <= self._options.tolerance_mm
        return within or self.agreeing >= _REPEATS or len(self.candidates) >= self._starts

    def run(
        self,
        max_seconds: float,
        on_start: Callable[[int, IkResult], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> IkResult:
        """Make starts until the search is finished, the time is up, or the caller wants to stop.

        Args:
            max_seconds: Wall-clock limit of this call; the first start is begun whatever it is.
            on_start: Called after each start with the number made and the best so far.
            should_stop: Asked before every evaluation.

        Returns:
            The best so far; its termination is `CANCELLED` if the caller stopped the search.
        """
        begun = time.perf_counter()

        def left() -> float:
            return max_seconds - (time.perf_counter() - begun)

        while self.best is None or not (self.is_finished or left() <= 0.0):
            if self.best is not None and should_stop is not None and should_stop():
                break
            start = next(self._remaining) if self._cut_short is None else self._cut_short
            self._cut_short = None if self._make(start, max(left(), 1e-9), should_stop) else start
            if on_start is not None and self.best is not None and self._cut_short is None:
                on_start(len(self.candidates), self.best)
        cancelled = should_stop is not None and should_stop() and not self.is_finished
        termination = Termination.CANCELLED if cancelled else self.best.termination
        return replace(self.best, termination=termination, seconds=time.perf_counter() - begun)

    def _make(self, start: Array, seconds: float, should_stop: Callable[[], bool] | None) -> bool:
        """Make a start; false if it was cut short, and has to be made again."""
        begun = time.perf_counter()
        short = solve_prepared(
            self._pipeline.coarse,
            self._target,
            replace(self._short, initial_actuation=start, max_seconds=seconds),
            should_stop=should_stop,
            features=self._features,
        )
        promising = self.best is None or short.merit <= _PROMISING * self._shortest
        finished = not _was_cut(short)
        if promising:
            seconds = max(seconds - (time.perf_counter() - begun), 1e-9)
            options = replace(
                self._options, initial_actuation=short.actuation, initial_pose=short.pose, max_seconds=seconds
            )
            whole = solve_prepared(
                self._pipeline, self._target, options, should_stop=should_stop, features=self._features
            )
            finished = finished and not _was_cut(whole)
            if self.best is None or whole.merit < self.best.merit:
                self.best = whole
        if finished:
            self._shortest = min(self._shortest, short.merit)
            self.candidates.append(Candidate(start, short.actuation, short.merit))
        return finished

    def _drawn(self, starts: int) -> Iterator[Array]:
        yield self._options.start()
        low, high = self._options.bounds()
        yield from halton_actuations(low, high, starts, seed=0)


def _was_cut(result: IkResult) -> bool:
    return result.termination in (Termination.TIME_LIMIT, Termination.CANCELLED)


def solve_globally(
    pipeline: ForwardModel,
    target: Target | None,
    options: IkOptions,
    features: FeaturePoints | None = None,
    starts: int = 16,
    on_start: Callable[[int, IkResult], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> IkResult:
    """Find the best solution that many starts lead to, within `options.max_seconds`; arguments as `GlobalSearch`.

    Raises:
        SoftformError: On a bad target, bad options or an invalid number of starts.
    """
    begun = time.perf_counter()
    check_options(options, pipeline.degrees_of_freedom)
    prepared = None if target is None else search_of(target)
    term = None if features is None else FeatureTerm.of(pipeline, features)
    prepare_seconds = time.perf_counter() - begun
    search = GlobalSearch(pipeline, prepared, options, term, starts)
    return replace(search.run(options.max_seconds, on_start, should_stop), prepare_seconds=prepare_seconds)
