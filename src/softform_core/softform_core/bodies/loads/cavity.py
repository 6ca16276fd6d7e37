"""The volume of closed cavities from their faces, its gradient and its Hessian.

A face contributes 1/3 x . (x,1 x x,2) per reference area, x,1 and x,2 its derivatives along the face and their cross
product outwards: by the divergence theorem the sum over a closed surface is its volume, however it moves. So pressure
has the potential -p V, and its Hessian is symmetric. With d = x . (x,1 x x,2) = det [x x,1 x,2], N_a the shape
functions, N_a1 and N_a2 their derivatives:

    3 dV/dx_a             = N_a x,1 x x,2 + N_a1 x,2 x x + N_a2 x x x,1
    3 d2V/dx_ai dx_bk     = epsilon_ikm v_m,
    v                     = (N_a N_b1 - N_a1 N_b) x,2 + (N_a1 N_b2 - N_a2 N_b1) x + (N_a2 N_b - N_a N_b2) x,1
"""

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.solid.elements import Quadrature
from softform_core.geometry.rigid import hat


def volumes_of_faces(positions: Array, faces: NDArray[np.int32], rule: Quadrature) -> Array:
    """What each of the faces (F, n) adds to the volume, (F,) m^3; positions (V, 3) m."""
    x, x1, x2 = _places(positions, faces, rule)
    return np.asarray((x * np.cross(x1, x2)).sum(axis=2) @ rule.weights / 3.0)


def volume_gradients(positions: Array, faces: NDArray[np.int32], rule: Quadrature) -> Array:
    """Its gradient by the nodes of each face, (F, n, 3) m^2."""
    x, x1, x2 = _places(positions, faces, rule)
    third, (by_1, by_2) = rule.weights[:, None] / 3.0, np.moveaxis(rule.derivatives, 2, 0)
    found = rule.shapes.T @ (third * np.cross(x1, x2))
    return np.asarray(found + by_1.T @ (third * np.cross(x2, x)) + by_2.T @ (third * np.cross(x, x1)))


def volume_hessians(positions: Array, faces: NDArray[np.int32], rule: Quadrature) -> Array:
    """Its Hessian (F, n, 3, n, 3) m by node and axis."""
    x, x1, x2 = _places(positions, faces, rule)
    shape, (by_1, by_2) = rule.shapes, np.moveaxis(rule.derivatives, 2, 0)
    count, v = shape.shape[1], np.zeros((len(faces), shape.shape[1] ** 2, 3))
    for one, other, along in ((shape, by_1, x2), (by_1, by_2, x), (by_2, shape, x1)):
        pairs = np.einsum("q,qa,qb->abq", rule.weights / 3.0, one, other)
        v += (pairs - pairs.swapaxes(0, 1)).reshape(count**2, -1) @ along
    skew = -hat(v)  # [i, k] is epsilon_ikm v_m
    return skew.reshape(len(faces), count, count, 3, 3).swapaxes(2, 3)


def _places(positions: Array, faces: NDArray[np.int32], rule: Quadrature) -> tuple[Array, Array, Array]:
    """x, x,1 and x,2 (F, q, 3) at the points of the rule."""
    nodes = positions[faces]
    return rule.shapes @ nodes, rule.derivatives[..., 0] @ nodes, rule.derivatives[..., 1] @ nodes
