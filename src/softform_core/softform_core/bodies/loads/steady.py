"""Loads without an actuator: weight, and springs to the places at rest."""

import numpy as np
from scipy.sparse import csr_matrix

from softform_core.arrays import Array
from softform_core.bodies.loads.load import Load


class Gravity(Load):
    """The weight of the nodes.

    Args:
        weight: (V, 3) N.
        rest: (V, 3) m, where it has no energy.
    """

    def __init__(self, weight: Array, rest: Array) -> None:
        self._weight, self._rest = weight, rest

    def energy(self, nodes: Array, values: Array) -> float:
        """- weight . (x - X), J."""
        return -float(np.sum(self._weight * (nodes - self._rest)))

    def add_gradient(self, nodes: Array, values: Array, gradient: Array) -> None:
        """- weight."""
        gradient -= self._weight

    def size(self, values: Array) -> float:
        """Its norm, N."""
        return float(np.linalg.norm(self._weight))


class Support(Load):
    """Springs that hold nodes where they rest.

    Args:
        springs: (V, V) N/m, along each axis alike.
        rest: (V, 3) m.
    """

    def __init__(self, springs: csr_matrix, rest: Array) -> None:
        self.springs = self._stiffness = springs
        self._rest = rest

    def energy(self, nodes: Array, values: Array) -> float:
        """1/2 (x - X) . K (x - X), J."""
        moved = nodes - self._rest
        return 0.5 * float(np.sum(moved * (self._stiffness @ moved)))

    def add_gradient(self, nodes: Array, values: Array, gradient: Array) -> None:
        """K (x - X)."""
        gradient += self._stiffness @ (nodes - self._rest)

    def size(self, values: Array) -> float:
        """None: they only answer other forces."""
        return 0.0
