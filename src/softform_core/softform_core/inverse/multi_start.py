"""Global search: many starts over the actuation range, short solves at few points, the promising ones carried on.

Starts are the caller's own and then a Halton sequence. The search ends early when the best is within the tolerance,
or when several starts have led to it: more of them would lead there again.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import chain

from softform_core.errors import SoftformError
from softform_core.forward.forward_model import ForwardModel
from softform_core.halton import halton_actuations
from softform_core.inverse.closest_points import closest_points_on
from softform_core.inverse.feature_term import FeatureTerm
from softform_core.inverse.ik_options import IkOptions, Termination, check_options
from softform_core.inverse.ik_result import IkResult
from softform_core.inverse.inverse import solve_prepared
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.shape import Shape

MAX_STARTS = 10_000

_SHORT_ITERATIONS = 12
_SHORT_RELATIVE_DECREASE = 1e-2

_PROMISING = 1.1
"""Merit of a short solve over the best one up to which it is carried on at all points."""

_SAME = 1.01
"""Merit over the best one up to which a solution counts as the same."""

_REPEATS = 3


def solve_globally(
    pipeline: ForwardModel,
    target: Shape | None,
    options: IkOptions,
    features: FeaturePoints | None = None,
    starts: int = 16,
    on_start: Callable[[int, IkResult], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> IkResult:
    """Find the best solution that many starts lead to, within `options.max_seconds`.

    Args:
        pipeline: Forward kinematics.
        target: Mesh or cloud, metres; None: feature points alone.
        options: Bounds, pose and limits.
        features: Feature points and where they are wanted, or None.
        starts: Most starts. The first is made whatever the time.
        on_start: Called after each start with the number made and the best so far.
        should_stop: Asked before every evaluation.

    Returns:
        The best found; its termination is `CANCELLED` if the caller stopped the search.

    Raises:
        SoftformError: On a bad target, bad options or an invalid number of starts.
    """
    if not 1 <= starts <= MAX_STARTS:
        raise SoftformError(f"{starts} is not a valid number of starts.", f"Ask for 1 to {MAX_STARTS}.")
    check_options(options, pipeline.degrees_of_freedom)
    begun = time.perf_counter()
    search = None if target is None else closest_points_on(target)
    term = None if features is None else FeatureTerm.of(pipeline, features)
    searching = time.perf_counter()

    def solve(model: ForwardModel, options: IkOptions) -> IkResult:
        seconds = max(options.max_seconds - (time.perf_counter() - searching), 1e-9)
        return solve_prepared(
            model, search, replace(options, max_seconds=seconds), should_stop=should_stop, features=term
        )

    short = replace(
        options, max_iterations=_SHORT_ITERATIONS, relative_decrease=_SHORT_RELATIVE_DECREASE, tolerance_mm=0.0
    )
    best: IkResult | None = None
    merits: list[float] = []  # at few points, of the starts made
    is_cut = is_finished = False
    actuations = chain([options.start()], halton_actuations(*options.bounds(), starts, seed=0))
    while best is None or not (is_cut or is_finished):
        found = [solve(pipeline.coarse, replace(short, initial_actuation=next(actuations)))]
        if best is None or found[0].merit <= _PROMISING * min(merits):
            near = replace(options, initial_actuation=found[0].actuation, initial_pose=found[0].pose)
            found.append(solve(pipeline, near))
            if best is None or found[1].merit < best.merit:
                best = found[1]
        is_cut = any(one.termination in (Termination.TIME_LIMIT, Termination.CANCELLED) for one in found)
        if not is_cut:
            merits.append(found[0].merit)
            if on_start is not None:
                on_start(len(merits), best)
        agreeing = sum(merit <= _SAME * min(merits) for merit in merits)
        within = best.mean_error_mm <= options.tolerance_mm
        is_finished = within or agreeing >= _REPEATS or len(merits) >= starts
        is_cut = is_cut or (should_stop is not None and should_stop())
    is_cancelled = should_stop is not None and should_stop() and not is_finished
    return replace(
        best,
        termination=Termination.CANCELLED if is_cancelled else best.termination,
        seconds=time.perf_counter() - searching,
        prepare_seconds=searching - begun,
    )
