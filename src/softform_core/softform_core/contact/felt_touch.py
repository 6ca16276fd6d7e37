"""Where something unknown touches a body and how hard, from markers on it or a scan, and the model of it untouched.

Something that does not stick pushes the skin inwards, along its normals n_i, with forces f_i >= 0 that displace it. The
forces are those under which the model's balance x(f) meets best what is seen, m, of markers or of a scan (`sights`),

    f = argmin |m - W x(f)|^2 / s^2 + |f|^2 / F^2,    f >= 0

by Gauss-Newton steps, each a non-negative least-squares problem with the compliance dx/df = K^-1 S^T N of the balance.
Of forces that are nowhere below zero few remain, about where the body is touched. s is the error of what is seen, and F
far above any force: what nothing tells stays small. Their sum is known better than how they are spread.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls
from scipy.sparse import csr_matrix

from softform_core.arrays import Array
from softform_core.contact.sights import Sight, skin_normals
from softform_core.contact.touching_body import skin_moves
from softform_core.errors import SoftformError
from softform_core.simulation.hessian import Hessian
from softform_core.simulation.newton import Equilibria, find_equilibria
from softform_core.simulation.sensitivity import equilibrium_sensitivities
from softform_core.simulation.simulated_body import SimulatedBody, skin_count

__all__ = ["FeltTouch", "felt_stiffness", "felt_touch"]

_STEPS, _HALVINGS = 20, 6
_MOST_LOG = 0.2
"""Longest step of the logarithm of a stiffness."""
_SETTLED = 1e-3
"""Change of the sum of forces, of it, at which the estimate has settled."""
_MOST_FORCE = 1e3
"""F, N: the scale of what is no longer believed without evidence."""
_MOST_CANDIDATES = 400
_FELT = 0.15
"""Of the largest force. Less, found first, is of the markers' errors alone: none can be below zero, so that they do not
cancel, and would add a newton or two all over the skin."""


class FeltTouch(NamedTuple):
    """An estimate of what touches a body.

    Attributes:
        place: (3,) m, mean of the points by their forces; NaN where nothing is felt.
        force: (3,) N on the body, their sum.
        points: (n, 3) m where it is felt.
        forces: (n, 3) N on the body at each.
        before: Root mean square by which what is seen misses the model untouched, m.
        after: The same from the model that is touched, m.
    """

    place: Array
    force: Array
    points: Array
    forces: Array
    before: float
    after: float


def felt_touch(
    body: SimulatedBody,
    actuators: Array,
    sight: Sight,
    error: float,
    free: Sight | None = None,
    stiffness: float = 1.0,
) -> FeltTouch:
    """Estimate where a body is touched and how hard.

    Args:
        body: Its model, of one sample at once, with a skin that moves linearly with its unknowns; it knows nothing of
            what touches it.
        actuators: (k,) values under which it was seen.
        sight: What was seen, markers or a scan.
        error: Standard deviation of a seen number, m.
        free: The same, of the robot untouched under the same values, where it is known: by how much that misses the
            model is no force.
        stiffness: Of the robot over its model's, as `felt_stiffness` finds it.

    Raises:
        NoEquilibriumError: If the model has no equilibrium under these values.
        SoftformError: If the body has no skin.
    """
    points = _skin(body)
    moves = skin_moves(body, points)
    values = actuators[None] / stiffness
    here = _balanced(find_equilibria(body, values))
    if here is None:
        raise SoftformError("The model has no equilibrium under these values.", "Check the actuator values.")
    if free is not None:
        sight = sight.against(free, body.points(here)[0, :points], body.faces)

    def missed(unknowns: Array) -> tuple[csr_matrix, Array]:
        return sight.missed(body.points(unknowns)[0, :points], body.faces)

    free_points = np.flatnonzero(np.abs(moves).sum(axis=1).A1.reshape(-1, 3).sum(axis=1) > 0.0)
    chosen = free_points[:: max(1, -(-len(free_points) // _MOST_CANDIDATES))]
    before, forces, pushes, is_pruned = missed(here)[1], np.zeros(len(chosen)), np.zeros((points, 3)), False
    for _ in range(_STEPS):
        inwards = -skin_normals(body.points(here)[0, :points], body.faces)[chosen]
        by_forces = csr_matrix(
            (inwards.ravel(), (np.arange(3 * len(chosen)) // 3, (3 * chosen[:, None] + np.arange(3)).ravel())),
            (len(chosen), 3 * points),
        )
        loads = np.asarray((by_forces @ moves).todense()).T
        factor = _Pushed(body, moves, pushes).derivatives(here, values)[1].factorised()
        seen, residual = missed(here)
        compliance = seen @ (moves @ factor.solve(loads[None])[0])
        rows = np.concatenate([compliance / error, np.eye(len(chosen)) / _MOST_FORCE])
        aims = np.concatenate([(residual + compliance @ forces) / error, np.zeros(len(chosen))])
        wanted = nnls(rows, aims, maxiter=20 * len(chosen))[0]
        share, moved = 1.0, False
        for _ in range(_HALVINGS):
            tried = forces + share * (wanted - forces)
            pushes_tried = (by_forces.T @ tried).reshape(-1, 3)
            found = _balanced(find_equilibria(_Pushed(body, moves, pushes_tried), values, here))
            if found is not None and np.linalg.norm(missed(found)[1]) <= np.linalg.norm(residual):
                moved = True
                break
            share *= 0.5
        settled = not moved
        if found is not None and moved:
            settled = abs(tried.sum() - forces.sum()) <= _SETTLED * max(float(forces.sum()), 1e-12)
            here, forces, pushes = found, tried, pushes_tried
        if settled and is_pruned:
            break
        if settled:
            kept = forces > _FELT * max(float(forces.max()), 1e-12)
            if not kept.any():
                break
            chosen, forces, is_pruned = chosen[kept], forces[kept], True
            pushes[np.setdiff1d(np.arange(points), chosen)] = 0.0
            there = _balanced(find_equilibria(_Pushed(body, moves, pushes), values, here))
            here = here if there is None else there
    felt = forces > 0.0
    places, each = body.points(here)[0, chosen][felt], stiffness * pushes[chosen][felt]
    place = forces[felt] @ places / forces[felt].sum() if felt.any() else np.full(3, np.nan)
    scale = np.sqrt(len(before))
    return FeltTouch(
        place, stiffness * pushes.sum(axis=0), places, each,
        float(np.linalg.norm(before) / scale), float(np.linalg.norm(missed(here)[1]) / scale),
    )  # fmt: skip


def felt_stiffness(body: SimulatedBody, actuators: Array, free: Sight) -> float:
    """How stiff a robot driven by pressures is over its model, from what is seen of it untouched.

    c times as stiff a body under pressures p is shaped as the model is under p / c, but for its weight: pressures are
    known in pascal, so that shapes under them tell the stiffness, and with it what a newton does. The best c is sought
    by Gauss-Newton steps on its logarithm. Arguments as of `felt_touch`.

    Raises:
        SoftformError: If the model has no equilibrium, or its pressures move nothing that is seen.
    """
    points = _skin(body)
    stiffness, here = 1.0, None
    for _ in range(_STEPS):
        values = actuators[None] / stiffness
        here = _balanced(find_equilibria(body, values, here))
        if here is None:
            raise SoftformError("The model has no equilibrium under these values.", "Check the actuator values.")
        by_values = body.moved_points(here, equilibrium_sensitivities(body, here, values))[0] @ values[0]
        seen, residual = free.missed(body.points(here)[0, :points], body.faces)
        by_log = -(seen @ by_values[:points].ravel())
        if not np.abs(by_log).max() > 0.0:
            raise SoftformError(
                "Under these values nothing that is seen moves, which tells no stiffness.", "Capture it under pressure."
            )
        step = float(by_log @ residual / (by_log @ by_log))
        stiffness *= float(np.exp(np.clip(step, -_MOST_LOG, _MOST_LOG)))
        if abs(step) < _SETTLED:
            break
    return stiffness


def _balanced(found: Equilibria) -> Array | None:
    return found.unknowns if found.found[0] else None


def _skin(body: SimulatedBody) -> int:
    """Number of points of a body's skin."""
    if not len(body.faces):
        raise SoftformError("The body has no skin that could be touched.", "Take one with a surface.")
    return skin_count(body)


class _Pushed:
    """A body with forces (P, 3) N on its skin that do not turn with it; else as it is."""

    def __init__(self, body: SimulatedBody, moves: csr_matrix, forces: Array) -> None:
        self._body, self._load = body, moves.T @ forces.ravel()
        self.batch, self.unloaded, self.largest_step = body.batch, body.unloaded, body.largest_step
        self.rounding, self.tolerance, self.start = body.rounding, body.tolerance, body.start
        self.has_run_away, self.load_derivative = body.has_run_away, body.load_derivative

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        return np.asarray(self._body.energy(unknowns, actuators) - (unknowns - self._body.rest) @ self._load)

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, Hessian]:
        gradient, hessian = self._body.derivatives(unknowns, actuators)
        return gradient - self._load, hessian
