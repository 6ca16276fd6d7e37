"""Pressure in closed cavities: their volumes from their faces, with gradient and Hessian, and the load.

A face contributes 1/3 x . (x,1 x x,2) per reference area, x,1 and x,2 its derivatives along the face and their cross
product outwards: by the divergence theorem the sum over a closed surface is its volume, however it moves. So pressure
has the potential -p V, and its Hessian is symmetric. With d = x . (x,1 x x,2) = det [x x,1 x,2], N_a the shape
functions, N_a1 and N_a2 their derivatives:

    3 dV/dx_a             = N_a x,1 x x,2 + N_a1 x,2 x x + N_a2 x x x,1
    3 d2V/dx_ai dx_bk     = epsilon_ikm v_m,
    v                     = (N_a N_b1 - N_a1 N_b) x,2 + (N_a1 N_b2 - N_a2 N_b1) x + (N_a2 N_b - N_a N_b2) x,1
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.elements import Quadrature
from softform_core.bodies.loads.load import Load
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


Faces = tuple[NDArray[np.int32], NDArray[np.int64], Quadrature]
"""Faces (F, n) outwards from their cavities, the cavity (F,) of each, and the rule over one."""


class Pressure(Load):
    """Pressures in k cavities, Pa: the potential - sum p_i V_i(x).

    Args:
        faces: Faces of all cavities, those of one kind together.
        cavities: Number k.
        rest: (V, 3) m.
    """

    def __init__(self, faces: Sequence[Faces], cavities: int, rest: Array) -> None:
        self._faces, self.inputs = faces, cavities
        self.groups = [nodes for nodes, _, _ in faces]
        self._pushes = np.linalg.norm(self.gradients(rest).reshape(cavities, rest.size), axis=1)

    def volumes(self, nodes: Array) -> Array:
        """Volumes (k,) m^3."""
        volumes = np.zeros(self.inputs)
        for faces, cavity, rule in self._faces:
            np.add.at(volumes, cavity, volumes_of_faces(nodes, faces, rule))
        return volumes

    def gradients(self, nodes: Array) -> Array:
        """Gradients (k, V, 3) m^2 of the volumes."""
        gradients = np.zeros((self.inputs, *nodes.shape))
        for faces, cavity, rule in self._faces:
            np.add.at(gradients, (cavity[:, None], faces), volume_gradients(nodes, faces, rule))
        return gradients

    def energy(self, nodes: Array, values: Array) -> float:
        """- sum p_i V_i, J."""
        return -float(self.volumes(nodes) @ values)

    def add_gradient(self, nodes: Array, values: Array, gradient: Array) -> None:
        """- sum p_i dV_i/dx."""
        gradient -= np.tensordot(values, self.gradients(nodes), axes=1)

    def blocks(self, nodes: Array, before: Array, values: Array) -> list[Array]:
        """- p_i d2V_i/dx2 of each face."""
        return [
            -values[cavity][:, None, None, None, None] * volume_hessians(nodes, faces, rule)
            for faces, cavity, rule in self._faces
        ]

    def by_values(self, nodes: Array, values: Array) -> Array:
        """- dV_i/dx."""
        return -self.gradients(nodes)

    def size(self, values: Array) -> float:
        """Forces on the resting walls, N."""
        return float(np.abs(values) @ self._pushes)

    def impossible(self, nodes: Array) -> str:
        """A cavity of negative volume, whose walls have passed through each other."""
        names = [f"c{cavity + 1}" for cavity in np.flatnonzero(self.volumes(nodes) < 0.0)]
        if len(names) < 2:
            return f"chamber {names[0]} turns inside out" if names else ""
        return f"chambers {', '.join(names)} turn inside out"
