"""The joint step: a body's balance and its actuators move together, by one factor of the Hessian.

With gradient g of Pi at unknowns x under actuator values u, H its Hessian and G its derivative by u, the next balance
is linearly at

    x + dx,    dx(u + du) = -H^-1 g - H^-1 G du

so that x need not be in balance when du is chosen: what Newton's method lacks and what the actuators shall do are made
good by the same step (sequential quadratic programming, where the equilibrium of paper 002, Sec. II-B, is solved
anew for every u). The step is applied as the body would rather move (`TrackedBody.moved`), and a step or more
by the same factor takes back most of what that left; the size of the last one is known as the gap.
"""

from typing import NamedTuple

import numpy as np

from softform_core.arrays import Array
from softform_core.simulation.factor import Factor, LiftedFactor
from softform_core.simulation.newton import NO_EQUILIBRIUM_ADVICE, NoEquilibriumError
from softform_core.simulation.simulated_body import TrackedBody

__all__ = ["Balance", "Joint", "advanced", "corrected", "furthest", "linearised", "predicted", "rebalanced"]

_FIRST_SHIFT, _SHIFTS = 1e-4, 8  # of the mean diagonal, each ten times the one before
_HALVINGS = 12
_CORRECTED = 0.02
"""Length of a step towards balance, of the body's largest step, that needs no other by the same factor."""
_CLOSE = 0.1
"""Of the body's largest step: farther from balance what softens a body is forces that are not balanced yet."""


class Balance(NamedTuple):
    """A body in balance, or near it.

    Attributes:
        unknowns: (1, m).
        actuators: (1, k).
    """

    unknowns: Array
    actuators: Array


class Joint(NamedTuple):
    """How a balance is going to move.

    Attributes:
        at: Where that is known.
        factor: Of the Hessian there.
        step: (1, m) to the balance under the same actuator values.
        by_actuators: (1, m, k) derivative of the balance by them.
        is_stable: Whether the body is stable there; if not, it is held until it is.
    """

    at: Balance
    factor: Factor
    step: Array
    by_actuators: Array
    is_stable: bool


def linearised(body: TrackedBody, at: Balance) -> Joint:
    """How the balance is going to move, by one factor.

    Raises:
        NoEquilibriumError: If the body is not stable there.
    """
    gradient, hessian = body.derivatives(*at)
    load = gradient[..., None]
    if np.isfinite(gradient).all():
        factor = hessian.factorised()
        step, is_stable, shift = -factor.solve(load)[..., 0], True, np.zeros(1)
        if isinstance(factor, LiftedFactor):
            is_stable = bool(np.isfinite(step).all())
            if not is_stable:
                factor = factor.lifted
                step = -factor.solve(load)[..., 0]
            if furthest(body, at.unknowns, step) > _CLOSE * body.largest_step:
                step[:] = np.nan
        for _ in range(_SHIFTS):
            if np.isfinite(step).all():
                return Joint(at, factor, step, body.followed(*at, factor), is_stable)
            is_stable, shift = False, np.maximum(10.0 * shift, _FIRST_SHIFT * hessian.mean_diagonal())
            factor = hessian.shifted(shift).factorised()
            step = -factor.solve(load)[..., 0]
    raise NoEquilibriumError("The body is not stable on its way to the target.", NO_EQUILIBRIUM_ADVICE)


def advanced(body: TrackedBody, joint: Joint, actuators: Array, corrections: int = 1) -> tuple[Balance, float]:
    """Near the balance under actuator values (1, k), and the gap that the last step towards it closed, m.

    There are as many steps towards it as `corrections`, fewer if one is short. One that would be longer than the one
    before is not taken: the gap is its length, still open, as it is where the body is soft. Where the gap is NaN the
    step was too long, and the result is not to be used.
    """
    return corrected(body, joint, predicted(body, joint, actuators), actuators, corrections)


def predicted(body: TrackedBody, joint: Joint, actuators: Array) -> Array:
    """Unknowns (1, m) where the balance under actuator values (1, k) is by the linear step alone."""
    moves = joint.step + (joint.by_actuators @ (actuators - joint.at.actuators)[..., None])[..., 0]
    return body.moved(joint.at.unknowns, moves)


def corrected(
    body: TrackedBody, joint: Joint, unknowns: Array, actuators: Array, corrections: int = 1
) -> tuple[Balance, float]:
    """As `advanced`, from where the balance is predicted, unknowns (1, m)."""
    x, gap = unknowns, float("inf")
    for _ in range(corrections):
        back = -joint.factor.solve(body.gradient(x, actuators)[..., None])[..., 0]
        if not np.isfinite(back).all():
            return Balance(x, actuators), float("nan")
        before, gap = gap, furthest(body, x, back)
        if gap > before:
            break
        x = body.moved(x, back)
        if gap < _CORRECTED * body.largest_step:
            break
    return Balance(x, actuators), gap


def rebalanced(body: TrackedBody, joint: Joint) -> tuple[Balance, float]:
    """Nearer to balance under the same actuator values by a step that lowers the energy, and how long that was, m.

    The next linearisation goes on from there: what `newton` does at once is spread over several, each of one factor.
    """
    x, values = joint.at
    length = furthest(body, x, joint.step)
    scale = min(1.0, body.largest_step / max(length, 1e-300))
    energy = body.energy(x, values)[0]
    for _ in range(_HALVINGS):
        tried = body.moved(x, scale * joint.step)
        if body.energy(tried, values)[0] <= energy:
            return Balance(tried, values), scale * length
        scale *= 0.5
    return joint.at, length


def furthest(body: TrackedBody, unknowns: Array, step: Array) -> float:
    """How far a step (1, m) of the unknowns (1, m) moves a point of the body at most, m."""
    return float(np.linalg.norm(body.moved_points(unknowns, step[..., None])[0, :, :, 0], axis=1).max())
