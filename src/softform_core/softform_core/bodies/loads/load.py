"""A load on the nodes of a mesh: its potential under some of the actuator values, and the derivatives of that.

Weight and springs to the places at rest are loads without an actuator.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.bodies.nodal import HessianPattern

_NEAREST = 1e-4  # of the extent


class Product(NamedTuple):
    """A part c g g^T of a Hessian: g (V, 3) by nodes, and c > 0."""

    column: Array
    weight: float


class Load(ABC):
    """A load on V nodes; nodes are (V, 3) m, and `values` are the (k,) actuator values that are its own.

    Its Hessian is the sum of `springs`, which do not change, of `blocks` within groups of nodes, and of `products`.

    Attributes:
        inputs: Number k.
        groups: Nodes (E, n) of each group of elements that `blocks` are for.
        springs: (V, V) N/m, constant stiffness, along each axis alike.
    """

    inputs: int = 0
    groups: Sequence[NDArray[np.integer]] = ()
    springs: csr_matrix | None = None

    @abstractmethod
    def energy(self, nodes: Array, values: Array) -> float:
        """Potential, J."""

    @abstractmethod
    def add_gradient(self, nodes: Array, values: Array, gradient: Array) -> None:
        """Add its gradient to `gradient` (V, 3) N."""

    def blocks(self, nodes: Array, before: Array, values: Array) -> Sequence[Array]:
        """Parts (E, n, 3, n, 3) N/m of the Hessian by node and axis, for each of `groups`.

        A stiff load takes in them the force that the last step, from `before` (V, 3) m, linearly led to, as
        `MixedProblem` has it.
        """
        return ()

    def products(self, nodes: Array, values: Array) -> list[Product]:
        """Parts of the Hessian that join nodes far from each other."""
        return []

    def by_values(self, nodes: Array, values: Array) -> Array:
        """Derivative (k, V, 3) of the gradient by its values."""
        return np.zeros((0, *nodes.shape))

    def wrench(self, nodes: Array, values: Array) -> Array | None:
        """Force, N, and torque, N m, of a gripper on the body, (6,); None of what is no gripper."""
        return None

    def lead(self, values: Array) -> tuple[Array, Array] | None:
        """How it would move all nodes by itself, (V, 3) m, and with which weights (V,); None if it leads none."""
        return None

    @abstractmethod
    def size(self, values: Array) -> float:
        """About how large its forces are, N."""

    def impossible(self, nodes: Array) -> str:
        """What is impossible about a shape, as `ShapeProblem` says it; else empty."""
        return ""


def nearness(nodes: Array, some: NDArray[np.integer]) -> Array:
    """How near each of the nodes (V, 3) is to the next of some of them, (V,): one over the distance squared."""
    if not len(some):
        return np.zeros(len(nodes))
    away = cKDTree(nodes[some]).query(nodes)[0]
    return np.asarray(1.0 / np.maximum(away, _NEAREST * np.ptp(nodes, axis=0).max()) ** 2)


class Loads:
    """Loads on the free nodes of a pattern; each takes its share of the actuator values, in their order.

    Args:
        loads: The loads.
        pattern: Sparsity of the Hessian; of the `groups` of all loads, too.
    """

    def __init__(self, loads: Sequence[Load], pattern: HessianPattern) -> None:
        ends = np.cumsum([0, *(load.inputs for load in loads)])
        self._loads = [
            (load, slice(begin, end), [pattern.entries(group) for group in load.groups])
            for load, begin, end in zip(loads, ends, ends[1:], strict=False)
        ]
        self._pattern, self.inputs = pattern, int(ends[-1])
        self.constant = np.zeros(len(pattern.indices))
        for load in loads:
            if load.springs is not None:
                self.constant += pattern.alike(load.springs)

    def energy(self, nodes: Array, values: Array) -> float:
        """Potential of all, J."""
        return sum(load.energy(nodes, values[own]) for load, own, _ in self._loads)

    def add_gradient(self, nodes: Array, values: Array, gradient: Array) -> None:
        """Add their gradients to `gradient` (V, 3) N."""
        for load, own, _ in self._loads:
            load.add_gradient(nodes, values[own], gradient)

    def add_blocks(self, nodes: Array, before: Array, values: Array, stored: Array) -> None:
        """Add the `blocks` of their Hessians to the pattern's `stored` entries."""
        for load, own, entries in self._loads:
            for places, blocks in zip(entries, load.blocks(nodes, before, values[own]), strict=False):
                stored += self._pattern.sums(places, blocks)

    def products(self, nodes: Array, values: Array) -> list[Product]:
        """The `products` of their Hessians."""
        return [product for load, own, _ in self._loads for product in load.products(nodes, values[own])]

    def by_values(self, nodes: Array, values: Array) -> Array:
        """Derivative (k, V, 3) of the gradient by all values."""
        return np.concatenate([load.by_values(nodes, values[own]) for load, own, _ in self._loads])

    def start(self, rest: Array, values: Array, still: Array) -> Array:
        """Nodes (V, 3) m from which to begin: moved by what leads them, the more the nearer it is.

        Args:
            rest: (V, 3) m.
            values: Actuator values.
            still: (V,) weight by which nodes stay.
        """
        found = [lead for load, own, _ in self._loads if (lead := load.lead(values[own])) is not None]
        if not found:
            return rest
        weight = still + sum(each for _, each in found)
        return np.asarray(rest + sum(each[:, None] * moves for moves, each in found) / weight[:, None])

    def wrenches(self, nodes: Array, values: Array) -> list[Array]:
        """Of each gripper, (6,)."""
        found = (load.wrench(nodes, values[own]) for load, own, _ in self._loads)
        return [wrench for wrench in found if wrench is not None]

    def size(self, values: Array) -> float:
        """About how large their forces are, N."""
        return sum(load.size(values[own]) for load, own, _ in self._loads)

    def impossible(self, nodes: Array) -> str:
        """The first thing that is impossible about a shape; else empty."""
        return next(filter(None, (load.impossible(nodes) for load, _, _ in self._loads)), "")


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
