"""What problems have in common whose unknowns are the places of a mesh's free nodes."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.pattern import HessianPattern

_RUNAWAY = 3.0  # a node further away than this many extents of the body has run away


class NodalProblem:
    """A `SimulatedBody` less its energy; its unknowns are the places of the free nodes, m, in the pattern's order.

    Args:
        rest: (V, 3) m, nodes at rest.
        pattern: Sparsity of the Hessian; its free nodes are the problem's.
        extent: Largest extent at rest, m.
        held: (V, 3) m; nodes that are not free stay where it puts them. Where they rest by default.
    """

    batch = 1
    frames: dict[str, int] = {}
    is_slack = False

    def __init__(self, rest: Array, pattern: HessianPattern, extent: float, held: Array | None = None) -> None:
        self._resting, self._extent, self._order = rest, extent, pattern.order
        self._held = rest if held is None else held

    @cached_property
    def rest(self) -> Array:
        """Unknowns (m,) of the nodes at rest."""
        return self.unknowns(self._resting)[0]

    def nodes(self, unknowns: Array) -> Array:
        """Nodes (V, 3) m of unknowns (m,)."""
        nodes = self._held.copy()
        nodes.reshape(-1)[self._order] = unknowns
        return nodes

    def unknowns(self, nodes: Array) -> Array:
        """Unknowns (1, m) of nodes (V, 3) m."""
        return np.asarray(nodes, dtype=np.float64).reshape(-1)[self._order][None]

    def points(self, unknowns: Array) -> Array:
        """Points (n, P, 3) m of the surface for unknowns (n, m)."""
        return self._on_surface(np.stack([self.nodes(one) for one in unknowns]))

    def moved_points(self, unknowns: Array, moves: Array) -> Array:
        """As `SimulatedBody`, (n, P, 3, k) m; what is held stays."""
        moved = np.zeros((len(moves), self._held.size, moves.shape[2]))
        moved[:, self._order] = moves
        return self._on_surface(moved.reshape(len(moves), -1, 3, moves.shape[2]))

    def _on_surface(self, values: Array) -> Array:
        """Values (n, P, …) at the points of the surface, of those (n, V, …) at all nodes; all by default."""
        return values

    def has_run_away(self, unknowns: Array) -> NDArray[np.bool_]:
        """Whether (n,) a node has moved by several extents of the body."""
        moved = np.abs(unknowns - self.unknowns(self._resting)).max(axis=1)
        return np.asarray(moved > _RUNAWAY * self._extent)
