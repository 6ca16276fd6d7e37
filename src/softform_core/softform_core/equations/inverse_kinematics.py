"""Forward kinematics by a network, and the objective of inverse kinematics, of paper 000, Sec. IV (Eqs. 14-16).

p* and c* are (P, 3) mm, each c* the closest point on the target to p* when it is posed by R (3, 3) and t (3,) mm.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def simulated_control_points(actuation: Array, n_fk: Callable[[Array], Array], grid: tuple[int, int]) -> Array:
    """Eq. 14: S^c = N_fk(a), (M_u, M_v, 3) mm, which the network gives flat, of a, (k,) Pa."""
    return n_fk(actuation).reshape(*grid, 3)


def objective(points: Array, closest: Array, rotation: Array, translation: Array) -> float:
    """Eq. 15: D = sum over p* of |p* - (R c* + t)|^2, mm^2."""
    return float(np.sum((points - (closest @ rotation.T + translation)) ** 2))


def objective_gradient(jacobian: Array, points: Array, closest: Array, rotation: Array, translation: Array) -> Array:
    """Eq. 16: dD/da = sum over p* of 2 (dp*/da)^T (p* - (R c* + t)), the closest points held, (k,) mm^2/Pa.

    Args:
        jacobian: dp*/da, (P, 3, k) mm/Pa.
        points: p*, (P, 3) mm.
        closest: c*, (P, 3) mm.
        rotation: R, (3, 3).
        translation: t, (3,) mm.
    """
    return np.asarray(2.0 * np.einsum("pxk,px->k", jacobian, points - (closest @ rotation.T + translation)))
