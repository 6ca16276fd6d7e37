"""Watches a solve: its limits, the caller's stop request, and its history."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_core.inverse.ik_options import IkOptions, Termination
from softform_core.inverse.ik_problem import Evaluation

_EXACT_MM = 1e-6


@dataclass(frozen=True)
class IkIteration:
    """The best found after an iteration.

    Attributes:
        iteration: Counts from 0, the start.
        actuation: (k,).
        mean_error_mm: Mean of all distances that count, see `Evaluation`.
        max_error_mm: Largest of them.
        objective: D of Eq. 15, mm^2; of a start that lies afar, what few of the points tell of it.
        seconds: Since the start.
    """

    iteration: int
    actuation: NDArray[np.float64]
    mean_error_mm: float
    max_error_mm: float
    objective: float
    seconds: float


class Monitor:
    """Watches limits and the caller's stop request, and keeps the history."""

    def __init__(
        self,
        options: IkOptions,
        on_iteration: Callable[[IkIteration], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> None:
        self._options, self._on_iteration, self._should_stop = options, on_iteration, should_stop
        self._start = time.perf_counter()
        self.history: list[IkIteration] = []

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._start

    def interrupted(self) -> Termination | None:
        """Return whether to stop at once; called before every evaluation."""
        if self._should_stop is not None and self._should_stop():
            return Termination.CANCELLED
        return Termination.TIME_LIMIT if self.seconds >= self._options.max_seconds else None

    def iterated(self, best: Evaluation, share: float = 1.0) -> Termination | None:
        """Note an iteration, evaluated at this share of all points; returns a reason to stop, if there is one."""
        iteration = IkIteration(
            len(self.history),
            best.actuation,
            best.mean_error_mm,
            best.max_error_mm,
            best.objective / share,
            self.seconds,
        )
        self.history.append(iteration)
        if self._on_iteration is not None:
            self._on_iteration(iteration)
        if iteration.mean_error_mm <= self._options.tolerance_mm:
            return Termination.TOLERANCE_REACHED
        if best.merit <= _EXACT_MM**2:
            return Termination.CONVERGED
        stop = self.interrupted()
        if stop is None and iteration.iteration >= self._options.max_iterations:
            stop = Termination.MAX_ITERATIONS
        return stop
