"""Quasi-static equilibrium of any body: damped Newton on its total potential, many samples at once.

The potential has a symmetric Hessian, so a line search guards every step: an indefinite Hessian is shifted until the
step goes down, and the pivots of the last factor tell a minimum from an unstable balance. A `MixedProblem` takes its
steps as they are, indefinite ones too. Where a direct solve fails, the load is raised in steps from the last
equilibrium found.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.simulation.factor import Factor
from softform_core.simulation.hessian import Hessian
from softform_core.simulation.problem import EquilibriumProblem, GuardedProblem, MixedProblem, ShapeProblem

MAX_ITERATIONS = 80
MAX_MIXED_ITERATIONS = 12  # a mixed problem that converges takes 4 to 11
SMALLEST_LOAD_STEP = 1.0 / 128.0

ARMIJO = 1e-4
SMALLEST_SCALE = 1e-10
_LEAST_SHARE = 0.1  # of a step of a mixed problem
_FIRST_SHIFT, _LARGER = 1e-7, 100.0
"""Of the mean diagonal, and ratio of the next shift to it: what is slender has modes that much softer than others."""
RELATIVE_ROUNDING = 1e-12  # of the energy
_MARGIN = 10.0  # by which a step with the last factor must be expected to end below the tolerance

NO_EQUILIBRIUM_ADVICE = "Lower the load, or give the material a stiffening law (yeoh, gent)."


_Factored = tuple[NDArray[np.int64], Factor]
"""Numbers of samples and the factor of their Hessians."""


class NoEquilibriumError(SoftformError):
    """The body finds no equilibrium under this load."""


@dataclass(frozen=True, eq=False)
class Equilibria:
    """Equilibria of n samples.

    Attributes:
        unknowns: (n, m); NaN where none was found.
        energy: (n,) total potential, J.
        residual: (n,) norm of the gradient.
        iterations: (n,) Newton iterations spent, load steps included.
        failures: (n,) why there is none; empty where there is.
    """

    unknowns: Array
    energy: Array
    residual: Array
    iterations: NDArray[np.int64]
    failures: list[str]

    @property
    def found(self) -> NDArray[np.bool_]:
        """Where there is one, (n,)."""
        return np.array([not failure for failure in self.failures], dtype=bool)


def find_equilibria(
    problem: EquilibriumProblem, actuators: Array, start: Array | None = None, balanced: Array | None = None
) -> Equilibria:
    """Equilibria under actuator values (n, k), from `start` (n, m) or from where the problem begins.

    Args:
        problem: Equilibrium problem of the body.
        actuators: (n, k).
        start: (n, m); where Newton's method fails from there, the load is raised from a small one.
        balanced: (n, k) actuator values under which the start is in balance, see `newton`.
    """
    parts = []
    for begin in range(0, len(actuators), problem.batch):
        part = slice(begin, begin + problem.batch)
        values = actuators[part]
        first = None if balanced is None else balanced[part]
        found = newton(problem, problem.start(values) if start is None else start[part], values, first)
        possible = np.array([not what for what in _impossible(problem, found.unknowns)], dtype=bool)
        for sample in np.flatnonzero(~(found.found & possible)).tolist():
            _replace(found, sample, _raise_load(problem, values[sample : sample + 1]))
        parts.append(found)
    return _joined(parts) if parts else newton(problem, problem.start(actuators), actuators)


def newton(problem: EquilibriumProblem, start: Array, actuators: Array, balanced: Array | None = None) -> Equilibria:
    """Damped Newton from `start` (n, m), each sample by itself.

    Args:
        problem: Equilibrium problem of the body.
        start: (n, m).
        actuators: (n, k).
        balanced: (n, k) or (k,) actuator values under which the start is in balance; unloaded by default. The first
            step of a mixed problem has the stiffness of that load, for its stresses are still those.
    """
    x, count = np.array(start, dtype=np.float64), len(actuators)
    energy, tolerance = problem.energy(x, actuators), problem.tolerance(actuators)
    residual, iterations = np.full(count, np.inf), np.zeros(count, dtype=np.int64)
    failures = np.full(count, "", dtype=object)
    factors: list[_Factored] = []
    before = x.copy()
    mixed = problem if isinstance(problem, MixedProblem) else None  # asked once: a protocol looks up each of its names
    guarded = problem if isinstance(problem, GuardedProblem) else None
    limit = MAX_MIXED_ITERATIONS if mixed else MAX_ITERATIONS
    active = np.flatnonzero(np.isfinite(energy))
    failures[~np.isfinite(energy)] = "The start lets the material collapse."
    for _ in range(limit):
        if not active.size:
            break
        if mixed:
            known_load = mixed.unloaded if balanced is None else balanced
            first = None if factors else np.broadcast_to(known_load, actuators.shape)[active]
            gradient, hessian = mixed.derivatives_after(x[active], before[active], actuators[active], first)
        else:
            gradient, hessian = problem.derivatives(x[active], actuators[active])
        former, residual[active] = residual[active], np.linalg.norm(gradient, axis=1)
        expected = _MARGIN * residual[active] ** 2 / np.maximum(former, 1e-300)
        going = ~(residual[active] <= tolerance[active])
        ended = active[~going]
        if ended.size and guarded:
            factors = []  # of earlier steps, and stiffened: what the balance is like, it says itself
            try:
                down = guarded.way_down(x, actuators)
            except NoEquilibriumError as error:
                failures[active], active = error.message, active[:0]
                break
            if down is not None:
                x += down
                energy, iterations = guarded.energy(x, actuators), iterations + 1
                continue
        if ended.size:
            failures[ended[~_are_minima(factors, count)[ended]]] = "Newton ended in an unstable balance."
        active = active[going]
        if not active.size:
            break
        if ended.size:
            gradient, hessian, expected = gradient[going], hessian.part(going), expected[going]
        before[active] = x[active]
        # Near the end the Hessian hardly changes: the factor of a large one serves for the last step, too.
        is_last = problem.batch == 1 and expected[0] <= tolerance[active[0]]
        known = factors[-1][1] if is_last and factors else None
        if mixed:
            factor = hessian.factorised() if known is None else known
            step, factors = _step(factor, gradient), [(active, factor)]
            here = _whole_step(mixed, x[active], actuators[active], step)
        else:
            if guarded and known is None:
                known = hessian.factorised()
                if not (known.pivots > 0.0).all():
                    hessian, known = guarded.stiffened(x, actuators), None
            step, factors = _descent(hessian, gradient, active, known)
            slope = np.einsum("nm,nm->n", gradient, step)
            here = _line_search(problem, x[active], actuators[active], energy[active], step, slope)
        x[active], energy[active], blocked = here
        iterations[active] += 1
        failures[active[blocked]] = "Newton finds no way on."
        failures[active[problem.has_run_away(x[active])]] = "The body runs away."
        active = active[failures[active] == ""]
    failures[active] = f"Newton does not converge in {limit} iterations."
    x[failures != ""] = np.nan
    return Equilibria(x, energy, residual, iterations, failures.tolist())


def _descent(
    hessian: Hessian, gradient: Array, samples: NDArray[np.int64], known: Factor | None
) -> tuple[Array, list[_Factored]]:
    """Newton steps (n, m), Hessians shifted until they go down, and the factors that gave them, the last one last.

    A `known` factor is used in place of that of the Hessian.
    """
    factor = hessian.factorised() if known is None else known
    step, factors = _step(factor, gradient), [(samples, factor)]
    shift = np.zeros(len(gradient))
    while True:
        upward = ~(np.isfinite(step).all(axis=1) & (np.einsum("nm,nm->n", gradient, step) < 0.0))
        upward &= np.isfinite(gradient).all(axis=1) & np.isfinite(shift)
        if not upward.any():
            return step, factors
        part = hessian.part(upward)
        shift[upward] = np.maximum(_LARGER * shift[upward], _FIRST_SHIFT * part.mean_diagonal())
        factor = part.shifted(shift[upward]).factorised()
        step[upward] = _step(factor, gradient[upward])
        factors.append((samples[upward], factor))


def _step(factor: Factor, gradient: Array) -> Array:
    return -factor.solve(gradient[..., None])[..., 0]


def _are_minima(factors: list[_Factored], count: int) -> NDArray[np.bool_]:
    """Whether the last factor of each of `count` samples is positive definite; true where there is none."""
    minima = np.ones(count, dtype=bool)
    for samples, factor in factors:
        minima[samples] = (factor.pivots > 0.0).all(axis=1)
    return minima


def _line_search(
    problem: EquilibriumProblem, x: Array, actuators: Array, energy: Array, step: Array, slope: Array
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Unknowns and energy at the end of the steps, and where no step goes down.

    A step whose gain is below the rounding of the energy is judged by its residual alone.
    """
    largest = np.abs(step).max(axis=1)
    scale = np.minimum(1.0, problem.largest_step / np.maximum(largest, 1e-300))
    trusted = -slope < np.maximum(RELATIVE_ROUNDING * np.abs(energy), problem.rounding)
    blocked = ~np.isfinite(largest)
    if isinstance(problem, GuardedProblem) and not blocked.any():
        scale *= problem.free_share(x, scale[:, None] * step)
    trial = x + scale[:, None] * step
    trial[blocked] = x[blocked]
    reached = problem.energy(trial, actuators)
    left = np.flatnonzero(~(trusted | blocked | (reached <= energy + ARMIJO * scale * slope)))
    while left.size:
        scale[left] *= 0.5
        blocked[left[scale[left] < SMALLEST_SCALE]] = True
        left = left[~blocked[left]]
        if not left.size:
            break
        trial[left] = x[left] + scale[left, None] * step[left]
        reached[left] = problem.energy(trial[left], actuators[left])
        left = left[~(reached[left] <= energy[left] + ARMIJO * scale[left] * slope[left])]
    return trial, reached, blocked


def _whole_step(
    problem: MixedProblem, x: Array, actuators: Array, step: Array
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """As `_line_search`: as much of the steps as the material endures, whether or not they go down.

    After too long a step, or where the material endures little of it, Newton's method would swing to and fro or crawl
    on for long before it fails.
    """
    blocked = ~(np.abs(step).max(axis=1) <= problem.largest_step)
    step = np.where(blocked.reshape(-1, 1), 0.0, step)
    share = problem.step_share(x, step)
    trial = x + share[:, None] * step
    return trial, problem.energy(trial, actuators), blocked | (share < _LEAST_SHARE)


def _raise_load(problem: EquilibriumProblem, actuators: Array) -> Equilibria:
    """Continuation of one sample: the load is raised in steps from a small one, halved where Newton fails."""
    reached, step, spent = 0.0, 0.5 if isinstance(problem, MixedProblem) else 0.25, 0
    last: Array | None = None
    balanced: Array | None = None
    while True:
        share = min(1.0, reached + step)
        values = problem.unloaded + share * (actuators - problem.unloaded)
        found = newton(problem, problem.start(values) if last is None else last, values, balanced)
        impossible = _impossible(problem, found.unknowns)[0]
        if found.failures[0] or impossible:
            step = 0.5 * (share - reached)
            if step < SMALLEST_LOAD_STEP:
                found.failures[0] = (
                    f"There is no equilibrium at actuator values {np.round(actuators[0], 1).tolist()}: "
                    f"{impossible or 'the body runs away'} beyond {100.0 * reached:.0f} % of the load."
                )
                found.unknowns[:] = np.nan
                return found
            continue
        spent += int(found.iterations[0])
        if share >= 1.0:
            found.iterations[0] = spent
            return found
        reached, last, balanced, step = share, found.unknowns, values[0], 2.0 * step


def _impossible(problem: EquilibriumProblem, unknowns: Array) -> list[str]:
    """What is impossible about each of the shapes (n, m), see `ShapeProblem`; empty where nothing is."""
    return problem.impossible(unknowns) if isinstance(problem, ShapeProblem) else [""] * len(unknowns)


def _replace(all_of: Equilibria, sample: int, one: Equilibria) -> None:
    for name in ("unknowns", "energy", "residual", "iterations", "failures"):
        getattr(all_of, name)[sample] = getattr(one, name)[0]


def _joined(parts: list[Equilibria]) -> Equilibria:
    unknowns, energy, residual, iterations = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("unknowns", "energy", "residual", "iterations")
    )
    return Equilibria(unknowns, energy, residual, iterations, [reason for part in parts for reason in part.failures])
