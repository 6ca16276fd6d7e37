"""The imported body as one that can be asked for shapes: between the imported ones a smooth law, no physics.

Radial basis functions over the actuation go through every imported shape; the networks that learn from the same shapes
are another law. On the virtual rig the body also moves as scans of the true robot show it
(`bodies.imported.scanned`), so that a rehearsal meets the gap that the bench has.
"""

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.imported.law import Law
from softform_core.robots.actuation_map import ActuationMap
from softform_core.simulation.hessian import BlockHessian

_BEYOND = 0.25
"""Of the imported range: further outside nothing is known, and the shape stays as it is."""
_STEP = 1e-4
"""Of the imported range, for derivatives."""


class InterpolatedBody:
    """The `simulation.simulated_body.SimulatedBody` of an imported one: its unknowns are its actuators' values.

    Args:
        law: Points (n, P, 3) m at actuations (n, m).
        actuation: Imported actuations (s, m).
        rest: That of the resting shape, (m,).
        actuation_map: From actuations to values of the actuators.
        faces: (F, 3) over the points.
        told: Where its shapes come from, in a sentence.
    """

    batch, largest_step, rounding, is_slack = 64, np.inf, 0.0, False

    def __init__(
        self, law: Law, actuation: Array, rest: Array, actuation_map: ActuationMap, faces: NDArray[np.int32], told: str
    ) -> None:
        self._law, self._map, self.faces, self.told = law, actuation_map, faces, told
        self.frames = {} if len(faces) else {"tip": 0}
        self.rest = self.unloaded = np.asarray(actuation_map.actuators_of(rest), dtype=np.float64)
        self._span = np.ptp(actuation, axis=0)
        self._low, self._high = (
            actuation.min(axis=0) - _BEYOND * self._span,
            actuation.max(axis=0) + _BEYOND * self._span,
        )
        self._stiffness = 1.0 / float(np.ptp(actuation_map.actuators_of(actuation), axis=0).max()) ** 2

    def points(self, unknowns: Array) -> Array:
        """Points (n, P, 3) m under values of the actuators (n, k)."""
        return self._law(np.clip(self._map.actuation_of(unknowns), self._low, self._high))

    def moved_points(self, unknowns: Array, moves: Array) -> Array:
        """Derivatives (n, P, 3, m) m of the points as the values of the actuators (n, k) move by `moves` (n, k, m)."""
        scale = np.abs(moves).max(axis=1)
        steps = _STEP * self._span.max() / np.where(scale > 0.0, scale, 1.0)
        stepped = np.moveaxis(steps[:, None] * moves, 2, 0)
        change = [self.points(unknowns + step) - self.points(unknowns - step) for step in stepped]
        return np.asarray(np.stack(change, axis=-1) / (2.0 * steps[:, None, None, :]))

    def tolerance(self, actuators: Array) -> Array:
        """Of the gradient, (n,): a millionth of the range."""
        return np.full(len(actuators), 1e-6 * np.sqrt(self._stiffness))

    def start(self, actuators: Array) -> Array:
        """The values themselves."""
        return np.array(actuators, dtype=np.float64)

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Of a spring between unknowns and values, (n,)."""
        return 0.5 * self._stiffness * ((unknowns - actuators) ** 2).sum(axis=1)

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, BlockHessian]:
        """Gradient (n, k) and Hessian of the spring."""
        count, inputs = unknowns.shape
        blocks = np.broadcast_to(self._stiffness * np.eye(inputs), (count, 1, inputs, inputs))
        return self._stiffness * (unknowns - actuators), BlockHessian(np.array(blocks))

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """Derivative of the gradient by the values, (n, k, k)."""
        return np.tile(-self._stiffness * np.eye(unknowns.shape[1]), (len(unknowns), 1, 1))

    def has_run_away(self, unknowns: Array) -> NDArray[np.bool_]:
        """Never."""
        return np.zeros(len(unknowns), dtype=bool)
