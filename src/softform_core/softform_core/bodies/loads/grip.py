"""A gripper that holds nodes: they follow a rigid pose of six channels, relative to the grasp (paper 003, Fig. 2).

With the pose (t, r), t a shift in m and r a rotation vector in rad, a held node that rested at X is led to

    y(t, r) = c + t + exp(r) (X - c)

about the grasp's centre c, by springs so stiff that what is left of their stretch does not count: the potential is
k / 2 |x - y|^2 of each, which leaves the nodes unknowns like all others and the Hessian constant. With V(r) the left
Jacobian of SO(3), dy/dr = -[exp(r) (X - c)]x V(r).
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags

from softform_core.arrays import Array
from softform_core.bodies.loads.load import Load, nearness
from softform_core.bodies.rotations import turns_by
from softform_core.geometry.rigid import hat

_FIRM = 1e4
"""Of the springs over what an element resists: they give way by a thousandth of what the elements beside them do."""
_LEAST_MOVE = 1e-4
"""Of the extent: a grip that hardly moves is in balance by the forces of such a move."""


class Grip(Load):
    """One grip; its values are its pose: x, y, z in m, then the rotation vector in rad.

    Args:
        held: (B,) nodes that it holds.
        centre: (3,) m, about which it turns.
        rest: (V, 3) m, nodes at rest.
        stiffness: What an element of the body resists, N/m.
        force: About the force that strains the body by one, N, for the tolerance.

    Attributes:
        held: As given.
        centre: As given.
    """

    inputs = 6

    def __init__(self, held: NDArray[np.int64], centre: Array, rest: Array, stiffness: float, force: float) -> None:
        self.held, self.centre, self._rest = held, centre, rest[held]
        self._resting, self._nearness = rest, nearness(rest, held)
        self._stiffness, self._force = _FIRM * stiffness, force
        stiff = np.zeros(len(rest))
        stiff[held] = self._stiffness
        self.springs: csr_matrix = diags(stiff).tocsr()
        self._extent = float(np.ptp(rest, axis=0).max())

    def places(self, values: Array) -> Array:
        """Where the held nodes are led, (B, 3) m."""
        return self._rest + self._moves(self._rest, values)  # exactly where they rest, at rest

    def _moves(self, points: Array, values: Array) -> Array:
        """How points (B, 3) m at rest move that turn with it."""
        turned = (points - self.centre) @ (turns_by(values[3:]).turn - np.eye(3)).T
        return np.asarray(values[:3] + turned)

    def lead(self, values: Array) -> tuple[Array, Array]:
        """As `Load`: all nodes would move with it, the more the nearer they are."""
        return self._moves(self._resting, values), self._nearness

    def wrench(self, nodes: Array, values: Array) -> Array:
        """Force, N, and torque about the moved centre, N m, of the grip on the body, (6,)."""
        places = self.places(values)
        forces = self._stiffness * (places - nodes[self.held])
        arms = places - (self.centre + values[:3])
        return np.concatenate([forces.sum(axis=0), np.cross(arms, forces).sum(axis=0)])

    def energy(self, nodes: Array, values: Array) -> float:
        """Of the springs, J."""
        return 0.5 * self._stiffness * float(np.sum((nodes[self.held] - self.places(values)) ** 2))

    def add_gradient(self, nodes: Array, values: Array, gradient: Array) -> None:
        """K (x - y)."""
        gradient[self.held] += self._stiffness * (nodes[self.held] - self.places(values))

    def by_values(self, nodes: Array, values: Array) -> Array:
        """- k dy/dt, - k dy/dr."""
        turns = turns_by(values[3:])
        arms = (self._rest - self.centre) @ turns.turn.T
        found = np.zeros((6, *nodes.shape))
        found[:3, self.held] = -self._stiffness * np.eye(3)[:, None]
        found[3:, self.held] = self._stiffness * np.moveaxis(hat(arms) @ turns.mean, 2, 0)
        return found

    def size(self, values: Array) -> float:
        """Of a body that is strained by its whole move, N."""
        shift, turn = np.linalg.norm(values[:3]), np.linalg.norm(values[3:])
        return self._force * float(shift / self._extent + turn + _LEAST_MOVE)
