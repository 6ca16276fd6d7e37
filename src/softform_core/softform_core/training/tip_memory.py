"""How far a body stays behind its actuators where they turn back, found from captured tips. Not in paper 001.

A play that is one width too narrow or too wide leaves a difference between tips on the way up and on the way down that
no function of the actuation explains. So the widths are those after which a function of the actuation explains best
what the simulated tip lacks of the captured one, of each tip by a fit to all others. That function is what the tip
would move by if the body felt another actuation, which a polynomial of the commanded one tells, and if its base were
placed otherwise: of a robot that curls up, what a tip lacks turns with it, which no polynomial of few terms follows.
"""

from collections.abc import Callable
from functools import partial
from itertools import combinations_with_replacement

import numpy as np
from scipy.optimize import minimize_scalar

from softform_core.arrays import Array
from softform_core.forward.memory import WIDEST, play_of
from softform_core.robots import Robot

_LARGEST_DEGREE = 5
_NUMBERS_PER_TERM = 4
"""Fewest coordinates of tips for each number that is fitted."""
_DIFFERENCE = 1e-3
"""Of half the range, by which the simulated tip is differentiated."""
_TOLERANCE = 1e-4
"""Tolerance of a width, over half the range."""
_ROUNDS = 2
"""Rounds in which each width is found anew while the others stay."""
_DEPENDENT = 1e-9
"""Share of the largest below which a term is one of others."""
_LEAST_GAIN = 0.1
"""Share of the misfit's square by which it must fall, or there is no memory: less is noise."""


def fit_play(robot: Robot, simulated: Callable[[Array], Array], actuation: Array, past: Array, tips: Array) -> Array:
    """Fit the widths of a play to captured tips, of each degree of freedom, or of each actuator if there are more.

    Args:
        robot: The robot.
        simulated: Returns the simulated tips (s, n) mm at actuations (s, m).
        actuation: (s, m), commanded.
        past: (s, h, m) commanded before each, the oldest first, NaN where not known.
        tips: (s, n) mm, captured.

    Returns:
        Widths as `forward.memory.play_of` takes them; (0,) if none explains the tips noticeably better.
    """
    low, high = robot.actuation_min, robot.actuation_max
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    scales = [half]
    if len(robot.actuators) > len(half):
        scales.append(0.5 * (robot.actuator_max - robot.actuator_min))

    def misfit(widths: Array) -> float:
        effective = play_of(robot, widths).effective_after(past, actuation)
        return _left_out_misfit(_explanations(simulated, effective, middle, half), tips - simulated(effective))

    found = [_widths(misfit, scale) for scale in scales]
    best = min(found, key=misfit)
    return best if misfit(best) < (1.0 - _LEAST_GAIN) * misfit(np.empty(0)) else np.empty(0)


def _widths(misfit: Callable[[Array], float], scale: Array) -> Array:
    """Return the widths of least misfit: first one share of the scale (k,) for all, then each for itself."""
    shares = np.full(len(scale), _least(lambda share: misfit(share * scale)))
    for _ in range(_ROUNDS if len(scale) > 1 else 0):
        for place in range(len(scale)):
            shares[place] = _least(partial(_with_one, misfit, scale, shares, place))
    return shares * scale


def _with_one(misfit: Callable[[Array], float], scale: Array, shares: Array, place: int, share: float) -> float:
    """Return the misfit at shares of the scale (k,), one of which is another."""
    changed = shares.copy()
    changed[place] = share
    return misfit(changed * scale)


def _least(misfit: Callable[[float], float]) -> float:
    """Return the share of half the range at which the misfit is least; 0 where that is no worse."""
    found = minimize_scalar(misfit, bounds=(0.0, WIDEST), method="bounded", options={"xatol": _TOLERANCE})
    return float(found.x) if found.fun < misfit(0.0) else 0.0


def _explanations(simulated: Callable[[Array], Array], actuation: Array, middle: Array, half: Array) -> Array:
    """Return what tips (s, n) would move by (s, n, t): for each term of each felt actuation, and of each placing."""
    tips, count = simulated(actuation), len(actuation)
    steps = np.diag(_DIFFERENCE * half)
    moves = np.stack([(simulated(actuation + one) - simulated(actuation - one)) for one in steps], axis=2)
    placed = np.einsum("ij,sk->sijk", np.eye(tips.shape[1]), np.column_stack([np.ones(count), tips]))
    placed = placed.reshape(count, tips.shape[1], -1)
    most = tips.size // _NUMBERS_PER_TERM - placed.shape[2]
    felt = _polynomials((actuation - middle) / half, most // actuation.shape[1])
    by_felt = (moves / _DIFFERENCE)[:, :, :, None] * felt[:, None, None, :]
    return np.concatenate([by_felt.reshape(count, tips.shape[1], -1), placed], axis=2)


def _polynomials(x: Array, most: int) -> Array:
    """Return all products (s, t) of relative actuations (s, m), up to the largest degree that has no more than `most`.

    Those of degree one are always there.
    """
    terms, columns = [np.ones(len(x))], list(x.T)
    for degree in range(1, _LARGEST_DEGREE + 1):
        more = [np.prod(chosen, axis=0) for chosen in combinations_with_replacement(columns, degree)]
        if degree > 1 and len(terms) + len(more) > most:
            break
        terms += more
    return np.stack(terms, axis=1)


def _left_out_misfit(terms: Array, wanted: Array) -> float:
    """Return the sum of squares that least squares of (s, n) by terms (s, n, t) leave of each tip by all other tips."""
    count, width = wanted.shape
    basis, triangle = np.linalg.qr(terms.reshape(count * width, -1))
    kept = np.abs(np.diag(triangle)) > _DEPENDENT * np.abs(np.diag(triangle)).max()
    basis = basis[:, kept].reshape(count, width, -1)
    left = wanted - (basis @ np.einsum("snt,sn->t", basis, wanted))
    own = np.eye(width) * (1.0 + _DEPENDENT) - basis @ basis.swapaxes(1, 2)
    return float((np.linalg.solve(own, left[:, :, None]) ** 2).sum())
