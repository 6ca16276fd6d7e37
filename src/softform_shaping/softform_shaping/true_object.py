"""The true object, which the controller never sees but through the camera: another mesh, another law, weight, slip."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.simulation.newton import NoEquilibriumError, find_equilibria, newton
from softform_core.simulation.sensitivity import equilibrium_sensitivities
from softform_shaping.control import shape_errors
from softform_shaping.fall import fallen
from softform_shaping.objects import ShapedObject
from softform_shaping.poses import moved, turn_jacobian

__all__ = ["TrueObject"]

_BESIDE = 0.001
"""Distance from the true material, m, beyond which a point of the model has no counterpart in it."""
_SLIPS = 4
"""Most rounds of slip in one move: then it sticks again."""


class TrueObject:
    """The object on the rig; what its grippers do to it, step by step.

    Args:
        described: The object.
        rest_nodes: (V, 3) m, nodes of the controller's mesh at rest: the material points that a shape is judged by.
        changes: Further fields of its reality, such as of a draw.

    Attributes:
        poses: (12,) of the grippers, as commanded.
        slipped: (12,) what the object has slipped in them.
        has: (V,) which of the material points it has: none in the hollows of its profile.

    Raises:
        SoftformError: If the reality is wrong.
    """

    def __init__(self, described: ShapedObject, rest_nodes: Array, changes: dict[str, Any] | None = None) -> None:
        self._body, self._hold = self._body_of(described, changes or {}), described.hold
        self._weights = self._body.weights_of(rest_nodes)
        at_rest = self._weights @ self._body.nodes(self._body.rest)
        self.has = np.linalg.norm(at_rest - rest_nodes, axis=1) < _BESIDE
        self.poses, self.slipped = np.zeros(12), np.zeros(12)
        self._unknowns = self._found(self.poses, None)

    @staticmethod
    def _body_of(described: ShapedObject, changes: dict[str, Any]) -> Any:
        try:
            reality = described.body.reality_type().model_validate({**described.truth, **changes})
        except ValueError as error:
            raise SoftformError(
                f"The truth of object '{described.name}' is wrong: {error}.", "Correct it in config/objects."
            ) from error
        return described.body.real_simulator(reality)

    def _found(self, poses: Array, start: Array | None) -> Array:
        values = moved(poses, self.slipped)[None]
        if start is not None:
            found = newton(self._body, start[None], values)
            if not found.failures[0]:
                return np.asarray(found.unknowns[0])
            if (snapped := fallen(self._body, self._unknowns, values[0])) is not None:
                return snapped[0]
        found = find_equilibria(self._body, values)
        if found.failures[0]:
            raise NoEquilibriumError("The true object finds no shape there.", "Move the grippers less.")
        return np.asarray(found.unknowns[0])

    def move(self, poses: Array) -> None:
        """Bring the grippers to `poses` (12,); the object slips where they cannot hold it.

        Raises:
            NoEquilibriumError: If it finds no shape there; it then is where it was.
        """
        before = self._unknowns
        start = before + self._motion(moved(poses, self.slipped))
        unknowns = self._found(poses, start)
        slipped = self.slipped.copy()
        for _ in range(_SLIPS if self._hold.slip else 0):
            slip = self._slip(unknowns, moved(poses, self.slipped))
            if not slip.any():
                break
            self.slipped = moved(self.slipped, slip)
            try:
                unknowns = self._found(poses, unknowns)
            except NoEquilibriumError:
                self.slipped = slipped
                raise
        self.poses, self._unknowns = np.array(poses), unknowns

    def _motion(self, values: Array) -> Array:
        """First guess of how the unknowns move as the grippers go to `values` (12,)."""
        old = moved(self.poses, self.slipped)
        factor = self._body.derivatives(self._unknowns[None], old[None])[1].factorised()
        change = self._body.load_derivative(self._unknowns[None], old[None])[0] @ (values - old)
        return -np.asarray(factor.solve(change[None, :, None])[0, :, 0])

    def _slip(self, unknowns: Array, values: Array) -> Array:
        """How far the object slips within each gripper, (12,), away from the forces that are too large."""
        found = np.zeros(12)
        for grip, wrench in enumerate(self._body.wrenches(unknowns, values)):
            for part, limit, scale in ((0, self._hold.force, 1.0), (3, self._hold.torque, self._hold.turn)):
                pull = wrench[part : part + 3]
                size = float(np.linalg.norm(pull))
                if size > limit:
                    begin = 6 * grip + part
                    found[begin : begin + 3] = -self._hold.slip * scale * (1.0 - limit / size) * pull
        return found

    @property
    def nodes(self) -> Array:
        """Where the material points (V, 3) m of the controller's mesh truly are."""
        return np.asarray(self._weights @ self._body.nodes(self._unknowns))

    def errors(self, target: Array) -> tuple[float, float]:
        """Root mean square and largest distance, mm, of its material points from a target (V, 3) m."""
        return shape_errors(target[self.has], self.nodes[self.has])

    @property
    def skin(self) -> tuple[Array, NDArray[np.int32]]:
        """Its surface: vertices (P, 3) m and triangles (F, 3)."""
        return self._body.points(self._unknowns[None])[0], self._body.faces

    def sensitivity(self) -> Array:
        """How its material points move with a small variation of the poses, (V, 3, 12); no controller is told."""
        values = moved(self.poses, self.slipped)
        moves = equilibrium_sensitivities(self._body, self._unknowns[None], values[None])[0]
        moves = moves @ turn_jacobian(values)
        by_nodes = np.stack([self._body.nodes(move) - self._body.nodes(np.zeros_like(move)) for move in moves.T], -1)
        return np.stack([self._weights @ by_nodes[..., column] for column in range(12)], axis=-1)
