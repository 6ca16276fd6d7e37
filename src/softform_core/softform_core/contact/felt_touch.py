"""Where something unknown touches a body and how hard, from markers on it and the model of it untouched.

Something that does not stick pushes the skin inwards, along its normals n_i, with forces f_i >= 0 that displace the
markers. The forces are those under which the model's balance x(f) meets the markers best,

    f = argmin |m - W x(f)|^2 / s^2 + |f|^2 / F^2,    f >= 0

by Gauss-Newton steps, each a non-negative least-squares problem with the compliance dx/df = K^-1 S^T N of the balance.
Of forces that are nowhere below zero few remain, about where the body is touched. s is the error of a marker, and F far
above any force: what markers do not tell stays small. Their sum is known better than how they are spread.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.sparse import csr_matrix, kron

from softform_core.arrays import Array
from softform_core.contact.touching_body import skin_moves
from softform_core.errors import SoftformError
from softform_core.simulation.hessian import Hessian
from softform_core.simulation.newton import Equilibria, find_equilibria
from softform_core.simulation.sensitivity import equilibrium_sensitivities
from softform_core.simulation.simulated_body import SimulatedBody

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
        before: Root mean square of the markers' distances from the model untouched, m.
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
    weights: csr_matrix,
    markers: Array,
    error: float,
    free: Array | None = None,
    stiffness: float = 1.0,
) -> FeltTouch:
    """Estimate where a body is touched and how hard.

    Args:
        body: Its model, of one sample at once, with a skin that moves linearly with its unknowns; it knows nothing of
            what touches it.
        actuators: (k,) values under which the markers were captured.
        weights: (M, P) of the body's points in each marker.
        markers: (M, 3) m, as captured.
        error: Standard deviation of a coordinate of a marker, m.
        free: (M, 3) m, the same markers captured untouched under the same values, where they are known: by how much
            these miss the model is no force.
        stiffness: Of the robot over its model's, as `felt_stiffness` finds it.

    Raises:
        NoEquilibriumError: If the model has no equilibrium under these values.
        SoftformError: If there are no markers, or their shapes do not fit.
    """
    points = int(body.faces.max()) + 1 if len(body.faces) else 0
    if not points or weights.shape[0] != len(markers) or not len(markers):
        raise SoftformError(
            f"{len(markers)} markers do not fit weights of shape {weights.shape} on a body of {points} skin points.",
            "Give each marker the weights of the body's points that it lies between.",
        )
    moves = skin_moves(body, points)
    in_markers = csr_matrix(kron(weights[:, :points], np.eye(3))) @ moves
    values = actuators[None] / stiffness
    here = _balanced(find_equilibria(body, values))
    if here is None:
        raise SoftformError("The model has no equilibrium under these values.", "Check the actuator values.")
    offset = np.zeros(markers.size) if free is None else (free - weights @ body.points(here)[0]).ravel()

    def missed(unknowns: Array) -> Array:
        return markers.ravel() - offset - (weights @ body.points(unknowns)[0]).ravel()

    free_points = np.flatnonzero(np.abs(moves).sum(axis=1).A1.reshape(-1, 3).sum(axis=1) > 0.0)
    chosen = free_points[:: max(1, -(-len(free_points) // _MOST_CANDIDATES))]
    before, forces, pushes, is_pruned = missed(here), np.zeros(len(chosen)), np.zeros((points, 3)), False
    for _ in range(_STEPS):
        inwards = -_normals(body.points(here)[0, :points], body.faces)[chosen]
        by_forces = csr_matrix(
            (inwards.ravel(), (np.arange(3 * len(chosen)) // 3, (3 * chosen[:, None] + np.arange(3)).ravel())),
            (len(chosen), 3 * points),
        )
        loads = np.asarray((by_forces @ moves).todense()).T
        factor = _Pushed(body, moves, pushes).derivatives(here, values)[1].factorised()
        compliance = in_markers @ factor.solve(loads[None])[0]
        residual = missed(here)
        rows = np.concatenate([compliance / error, np.eye(len(chosen)) / _MOST_FORCE])
        aims = np.concatenate([(residual + compliance @ forces) / error, np.zeros(len(chosen))])
        wanted = nnls(rows, aims, maxiter=20 * len(chosen))[0]
        share, moved = 1.0, False
        for _ in range(_HALVINGS):
            tried = forces + share * (wanted - forces)
            pushes_tried = (by_forces.T @ tried).reshape(-1, 3)
            found = _balanced(find_equilibria(_Pushed(body, moves, pushes_tried), values, here))
            if found is not None and np.linalg.norm(missed(found)) <= np.linalg.norm(residual):
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
    scale = np.sqrt(len(markers))
    return FeltTouch(
        place, stiffness * pushes.sum(axis=0), places, each,
        float(np.linalg.norm(before) / scale), float(np.linalg.norm(missed(here)) / scale),
    )  # fmt: skip


def felt_stiffness(body: SimulatedBody, actuators: Array, weights: csr_matrix, free: Array) -> float:
    """How stiff a robot driven by pressures is over its model, from markers (M, 3) m on it untouched.

    c times as stiff a body under pressures p is shaped as the model is under p / c, but for its weight: pressures are
    known in pascal, so that shapes under them tell the stiffness, and with it what a newton does. The best c is sought
    by Gauss-Newton steps on its logarithm. Other arguments as of `felt_touch`.

    Raises:
        SoftformError: If the model has no equilibrium, or its pressures move no marker.
    """
    stiffness, here = 1.0, None
    for _ in range(_STEPS):
        values = actuators[None] / stiffness
        here = _balanced(find_equilibria(body, values, here))
        if here is None:
            raise SoftformError("The model has no equilibrium under these values.", "Check the actuator values.")
        by_values = body.moved_points(here, equilibrium_sensitivities(body, here, values))[0] @ values[0]
        by_log = -(weights @ by_values)
        if not np.abs(by_log).max() > 0.0:
            raise SoftformError(
                "Under these values no marker moves, so that they tell no stiffness.", "Capture it under pressure."
            )
        step = float(np.sum(by_log * (free - weights @ body.points(here)[0])) / np.sum(by_log * by_log))
        stiffness *= float(np.exp(np.clip(step, -_MOST_LOG, _MOST_LOG)))
        if abs(step) < _SETTLED:
            break
    return stiffness


def _balanced(found: Equilibria) -> Array | None:
    return found.unknowns if found.found[0] else None


def _normals(points: Array, faces: NDArray[np.int32]) -> Array:
    """Unit normals (P, 3) of a skin, outwards, weighted by area."""
    a, b, c = points[faces].swapaxes(0, 1)
    found = np.zeros_like(points)
    np.add.at(found, faces, np.cross(b - a, c - a)[:, None])
    return np.asarray(found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-300))


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
