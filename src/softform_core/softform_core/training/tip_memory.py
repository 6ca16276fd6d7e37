"""How far a body stays behind its actuators where they turn back, found from captured tips. Not in paper 001.

A play that is one width too narrow or too wide leaves a difference between tips on the way up and on the way down that
no function of the actuation explains. So the widths are those after which a polynomial of the actuation explains best
what the simulated tip lacks of the captured one, of each tip by a fit to all others.
"""

from collections.abc import Callable
from functools import partial
from itertools import combinations_with_replacement

import numpy as np
from scipy.optimize import minimize_scalar

from softform_core.arrays import Array
from softform_core.forward.memory import WIDEST, play_of
from softform_core.robots import Robot

_LARGEST_DEGREE = 3
_SAMPLES_PER_TERM = 5
"""Fewest samples for each term of the polynomial."""
_TOLERANCE = 1e-4
"""Tolerance of a width, over half the range."""
_ROUNDS = 2
"""Rounds in which each width is found anew while the others stay."""
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
        return _left_out_misfit(_polynomials((effective - middle) / half), tips - simulated(effective))

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


def _polynomials(x: Array) -> Array:
    """Return all products (s, t) of relative actuations (s, m) up to the largest degree that the samples tell."""
    terms, columns = [np.ones(len(x))], list(x.T)
    for degree in range(1, _LARGEST_DEGREE + 1):
        more = [np.prod(chosen, axis=0) for chosen in combinations_with_replacement(columns, degree)]
        if degree > 1 and _SAMPLES_PER_TERM * (len(terms) + len(more)) > len(x):
            break
        terms += more
    return np.stack(terms, axis=1)


def _left_out_misfit(terms: Array, wanted: Array) -> float:
    """Return the sum of squares that least squares of (s, n) by terms (s, t) leave of each row by all other rows."""
    basis, _ = np.linalg.qr(terms)
    own = np.minimum((basis**2).sum(axis=1), 1.0 - 1e-9)
    left = (wanted - basis @ (basis.T @ wanted)) / (1.0 - own)[:, None]
    return float((left**2).sum())
