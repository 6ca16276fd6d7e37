"""Inverse kinematics of a tip along waypoints: paper 001, Sec. II (Eqs. 1-6).

p is the tip, (n,) mm; c the actuation, (m,) Pa; ^s is the simulated tip, ^r the real one.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Network = Callable[[Array], Array]


def objective(waypoint: Array, tip: Array) -> float:
    """Eq. 1: O(p_i, c) = |p_i - p(c)|^2, mm^2, of waypoint p_i and tip p(c), (n,) mm each."""
    return float(np.sum((waypoint - tip) ** 2))


def objective_gradient(waypoint: Array, tip: Array, jacobian: Array) -> Array:
    """Eq. 2: dO/dc = -2 (p_i - p(c)) J(c), (m,) mm^2/Pa; J is (n, m) mm/Pa."""
    return np.asarray(-2.0 * (waypoint - tip) @ jacobian)


def difference_jacobian(tip_of: Network, actuation: Array, step: float) -> Array:
    """Eq. 3: J_k = (p(…, c_k + dc, …) - p(…, c_k - dc, …)) / (2 dc), (n, m) mm/Pa, with dc = `step` Pa."""
    columns = [(tip_of(actuation + dc) - tip_of(actuation - dc)) / (2.0 * step) for dc in step * np.eye(len(actuation))]
    return np.stack(columns, axis=1)


def transferred_jacobian(transfer_slope: Array, simulated_jacobian: Array) -> Array:
    """Eq. 4: J^r(c) = (dp^r/dp^s) (dp^s/dc) = diff(N_s2r) J^s(c), (n, n) times (n, m), mm/Pa."""
    return np.asarray(transfer_slope @ simulated_jacobian)


def real_objective_gradient(waypoint: Array, real_tip: Array, real_jacobian: Array) -> Array:
    """Eq. 5: dO/dc = -2 (p_i - p^r(c)) J^r(c); arguments and result as for Eq. 2, of the real tip."""
    return objective_gradient(waypoint, real_tip, real_jacobian)


def learned_objective_gradient(
    waypoint: Array, actuation: Array, n_fk: Network, n_j: Network, n_s2r: Network, transfer_slope: Network
) -> Array:
    """Eq. 6: dO/dc = -2 (p_i - r(p^s(c))) diff(N_s2r) J^s(c), all of it by networks, (m,) mm^2/Pa.

    Args:
        waypoint: p_i, (n,) mm.
        actuation: c, (m,) Pa.
        n_fk: p^s(c), (m,) Pa -> (n,) mm.
        n_j: J^s(c), (m,) Pa -> (n, m) mm/Pa.
        n_s2r: r(p^s), (n,) mm -> (n,) mm.
        transfer_slope: diff(N_s2r), (n,) mm -> (n, n).
    """
    simulated = n_fk(actuation)
    jacobian = transferred_jacobian(transfer_slope(simulated), n_j(actuation))
    return real_objective_gradient(waypoint, n_s2r(simulated), jacobian)
