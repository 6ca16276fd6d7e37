"""Pieces of a tendon between the holes that it runs through: how far it has run, and its tensions.

A tendon has E + 1 pieces, from its motor to its end, between E holes. Of the ways s_j that it has run through the holes
towards its motor, its pull u and how much longer the ways of its pieces are than at rest, g_j, follow the stretches

    d_0 = u - s_0,    d_j = g_j + s_(j-1) - s_j,    s_E = 0

with the tensions T_j = k_j phi'(d_j), see `bodies.loads.cable.taut_energy`. In a step the tendon takes the s of least

    psi(g, u) = sum_j k_j phi(d_j) + sum_j stick_slip(s_j - a_j) + 1/2 D (s_j - s_j before)^2

which is convex, so that dpsi/dg = T and d2psi/dg2 = dT/dg is symmetric. The small drag D alone keeps a slack tendon
where it is.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from softform_core.arrays import Array
from softform_core.bodies.loads.cable import TAKE_UP

DRAG = 0.5
"""D, N/m: 0.0005 N for a way of 1 mm in a step."""
_BALANCED = 1e-10  # N, and share of the largest tension
_ITERATIONS = 200
_SHORT = 0.1
"""Share of a Newton step below which holes are brought into balance one after the other, too."""


class Chains(NamedTuple):
    """Balanced tendons, k of n samples.

    Attributes:
        energy: (n, k) psi, J.
        tension: (n, k, E + 1) N.
        slips: (n, k, E) s, m.
        firm: (n, k, E, E) dT/dg of all pieces but the first, N/m.
        by_pull: (n, k, E) dT/du of these.
        is_balanced: (n, k), whether a balance was found.
    """

    energy: Array
    tension: Array
    slips: Array
    firm: Array
    by_pull: Array
    is_balanced: Array


def balanced_chains(
    longer: Array, pulls: Array, anchors: Array, bounds: Array, slips: Array, stiffness: Array, give: float,
    take_up: float = TAKE_UP,
) -> Chains:  # fmt: skip
    """Return tendons in balance.

    Args:
        longer: (n, k, E) g, m.
        pulls: (n, k) u, m.
        anchors: (n, k, E) a, m.
        bounds: (n, k, E) F, N.
        slips: (n, k, E) s before the step, m.
        stiffness: (k, E + 1) k_j, N/m.
        give: Stiffness of a tendon that sticks in a hole, N/m.
        take_up: Stretch over which a slack piece takes up its stiffness, m.
    """
    n, k, e = longer.shape
    found = Chains(
        np.empty((n, k)), np.empty((n, k, e + 1)), slips.copy(), np.empty((n, k, e, e)), np.empty((n, k, e)),
        np.empty((n, k), dtype=np.bool_),
    )  # fmt: skip
    _all_chains(longer, np.ascontiguousarray(pulls), anchors, bounds, slips, stiffness, give, take_up, *found)
    return found


@njit(cache=True, nogil=True)
def _taut(d: float, w: float) -> tuple[float, float, float]:
    """`taut_energy` and its two derivatives, of one stretch d."""
    if d <= 0.0:
        return 0.0, 0.0, 0.0
    if d < w:
        return d**3 / (6.0 * w), d * d / (2.0 * w), d / w
    past = d - 0.5 * w
    return 0.5 * past * past + w**2 / 24.0, past, 1.0


@njit(cache=True, nogil=True)
def _residual(longer, pull, anchor, bound, before, stiffness, give, take_up, s, tension, firm, own, rest):  # type: ignore[no-untyped-def]
    """Forces `rest` (E,) N that are left in the holes, with tensions, and stiffnesses of pieces and holes; psi."""
    count = len(s)
    energy = 0.0
    for j in range(count + 1):
        d = pull - s[0] if j == 0 else longer[j - 1] + s[j - 1] - (s[j] if j < count else 0.0)
        phi, slope, curvature = _taut(d, take_up)
        energy += stiffness[j] * phi
        tension[j], firm[j] = stiffness[j] * slope, stiffness[j] * curvature
    for j in range(count):
        force, run = give * (s[j] - anchor[j]), s[j] - before[j]
        own[j] = DRAG
        if abs(force) < bound[j]:
            own[j] += give
            energy += 0.5 * force * (s[j] - anchor[j])
        else:
            energy += bound[j] * (abs(s[j] - anchor[j]) - 0.5 * bound[j] / give)
            force = bound[j] if force > 0.0 else -bound[j]
        energy += 0.5 * DRAG * run * run
        rest[j] = tension[j + 1] - tension[j] + force + DRAG * run
    return energy


@njit(cache=True, nogil=True)
def _solve(firm, own, load, upper, out):  # type: ignore[no-untyped-def]
    """Solve with the tridiagonal Hessian of psi over s (Thomas's algorithm)."""
    count = len(out)
    diagonal = firm[0] + firm[1] + own[0]
    out[0] = load[0] / diagonal
    for j in range(1, count):
        upper[j - 1] = -firm[j] / diagonal
        diagonal = firm[j] + firm[j + 1] + own[j] + firm[j] * upper[j - 1]
        out[j] = (load[j] + firm[j] * out[j - 1]) / diagonal
    for j in range(count - 2, -1, -1):
        out[j] -= upper[j] * out[j + 1]


@njit(cache=True, nogil=True)
def _settle(j, longer, pull, anchor, bound, before, stiffness, give, take_up, s):  # type: ignore[no-untyped-def]
    """Bring one hole into balance while the others stay: its force rises steadily with its s, by safeguarded Newton.

    Where pieces hang slack on both sides of a hole, Newton's method on all of them at once would crawl.
    """
    inner = pull if j == 0 else longer[j - 1] + s[j - 1]
    outer = longer[j] - (s[j + 1] if j + 1 < len(s) else 0.0)
    low, high, here = -np.inf, np.inf, s[j]
    for _ in range(60):
        _, slope_in, curvature_in = _taut(inner - here, take_up)
        _, slope_out, curvature_out = _taut(outer + here, take_up)
        force, own = give * (here - anchor[j]), DRAG
        if abs(force) < bound[j]:
            own += give
        else:
            force = bound[j] if force > 0.0 else -bound[j]
        rest = stiffness[j + 1] * slope_out - stiffness[j] * slope_in + force + DRAG * (here - before[j])
        if abs(rest) < _BALANCED:
            break
        if rest > 0.0:
            high = here
        else:
            low = here
        ahead = here - rest / (stiffness[j] * curvature_in + stiffness[j + 1] * curvature_out + own)
        here = ahead if low < ahead < high else 0.5 * (low + high)
    s[j] = here


@njit(cache=True, nogil=True)
def _balance(longer, pull, anchor, bound, before, stiffness, give, take_up, s, tension, firm, own, work):  # type: ignore[no-untyped-def]
    """Newton's method on the convex psi: along each step to where its slope is nearly nil. Returns psi; NaN: none."""
    rest, step, upper, trial = work[0], work[1], work[2], work[3]
    count = len(s)
    energy = _residual(longer, pull, anchor, bound, before, stiffness, give, take_up, s, tension, firm, own, rest)
    for _ in range(_ITERATIONS):
        left, largest = 0.0, 0.0
        for j in range(count):
            left = max(left, abs(rest[j]))
            largest = max(largest, tension[j])
        if left <= _BALANCED * (1.0 + largest):
            return energy
        _solve(firm, own, rest, upper, step)
        slope, share, low, high = 0.0, 1.0, 0.0, 0.0
        for j in range(count):
            slope += rest[j] * step[j]
        for _ in range(60):
            for j in range(count):
                trial[j] = s[j] - share * step[j]
            energy = _residual(
                longer, pull, anchor, bound, before, stiffness, give, take_up, trial, tension, firm, own, rest
            )
            now = 0.0
            for j in range(count):
                now += rest[j] * step[j]
            if abs(now) <= 0.3 * slope or (now > 0.0 and share == 1.0):
                break
            if now > 0.0:
                low = share
            else:
                high = share
            share = 0.5 * (low + high)
        for j in range(count):
            s[j] = trial[j]
        if share < _SHORT:
            for j in range(count):
                _settle(j, longer, pull, anchor, bound, before, stiffness, give, take_up, s)
            for j in range(count - 1, -1, -1):
                _settle(j, longer, pull, anchor, bound, before, stiffness, give, take_up, s)
            energy = _residual(
                longer, pull, anchor, bound, before, stiffness, give, take_up, s, tension, firm, own, rest
            )
    return np.nan


@njit(cache=True, nogil=True)
def _all_chains(  # type: ignore[no-untyped-def]
    longer, pulls, anchors, bounds, before, stiffness, give, take_up, energy, tension, slips, firm, by_pull, found
):
    samples, tendons, count = longer.shape
    pieces, own, load, out = np.empty(count + 1), np.empty(count), np.empty(count), np.empty(count)
    work = np.empty((4, count))
    for n in range(samples):
        for i in range(tendons):
            energy[n, i] = _balance(
                longer[n, i], pulls[n, i], anchors[n, i], bounds[n, i], before[n, i], stiffness[i], give, take_up,
                slips[n, i], tension[n, i], pieces, own, work,
            )  # fmt: skip
            found[n, i] = not np.isnan(energy[n, i])
            # dT_j = pieces_j (dg_j + ds_(j-1) - ds_j), and ds from the balance.
            for change in range(count + 1):  # of u, then of g_1 ... g_E
                for j in range(count):
                    load[j] = 0.0
                if change < count:
                    load[change] = pieces[change]
                if change > 0:
                    load[change - 1] = -pieces[change]
                _solve(pieces, own, load, work[2], out)
                for j in range(count):
                    moved = out[j] - (out[j + 1] if j + 1 < count else 0.0)
                    if change == j + 1:
                        moved += 1.0
                    if change == 0:
                        by_pull[n, i, j] = pieces[j + 1] * moved
                    else:
                        firm[n, i, j, change - 1] = pieces[j + 1] * moved
