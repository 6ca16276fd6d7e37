"""A true object that yields and breaks, by the plasticity of its body (`softform_core.bodies.freeform.plastic`).

Shape and plastic strain are found in turns. An element whose plastic strain reaches rupture
breaks the object: each part then goes with its gripper as it was, and the camera sees the gap.
"""

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.simulation.newton import NoEquilibriumError
from softform_shaping.model import HeldModel, HeldShape
from softform_shaping.objects import ShapedObject
from softform_shaping.poses import motion_of
from softform_shaping.true_object import TrueObject

__all__ = ["PlasticObject"]

_TURNS, _SETTLED = 60, 2e-6
"""Most turns of shape and plastic strain in a move, and the change of strain from which they count as settled."""
_STEP = 0.03
"""rad and, over the size, shift of a gripper in one step: the way matters where something yields."""
_GAP = 0.006
"""m to both sides of where it broke in which nothing of it is seen."""
_RELAXING, _PROBE, _NO_FORCE = 12, 1e-4, 1e-4


class PlasticObject(TrueObject):
    """An object whose truth has plasticity, on the rig.

    Attributes:
        poses: (12,) of the grippers, as commanded.
        slipped: (12,) zero: it is held firmly.
        has: (V,) which of the material points it has.
        is_broken: Whether it broke.

    Args:
        described: The object.
        rest_nodes: (V, 3) m, nodes of the controller's mesh at rest.

    Raises:
        SoftformError: If its truth has no plasticity, or is wrong.
    """

    def __init__(self, described: ShapedObject, rest_nodes: Array) -> None:
        self._body = self._body_of(described, {})
        if not hasattr(self._body, "law"):
            raise SoftformError(f"Object '{described.name}' does not yield.", "Give its truth plasticity.")
        grips = [load for load in getattr(described.body, "loads", []) if load.load == "grip"]
        self._rupture, self._model = self._body.law.rupture, HeldModel(self._body)
        self._weights = self._body.weights_of(rest_nodes)
        self.has = np.linalg.norm(self._body.rest_nodes[self._weights.indices] - rest_nodes, axis=1) < 1e-3
        self.poses, self.slipped, self.is_broken = np.zeros(12), np.zeros(12), False
        self._shape = self._model.shape(self.poses)
        self._unknowns = self._shape.unknowns
        self._gap: float | None = None
        self._centres = [0.5 * np.add(grip.begin, grip.end) for grip in grips]

    @property
    def stress(self) -> float:
        """Largest von Mises stress in it, Pa."""
        return float(self._body.stresses(self._shape.unknowns).max())

    @property
    def plastic_strain(self) -> float:
        """Largest equivalent plastic strain so far."""
        return float(self._body.hardened.max())

    def move(self, poses: Array) -> None:
        """Bring the grippers to `poses` (12,), by small steps.

        Raises:
            NoEquilibriumError: If it finds no shape there; it then is where it came to.
        """
        way = np.asarray(poses) - self.poses
        steps = np.abs(way).reshape(2, 2, 3) / np.array([_STEP * self._model.size, _STEP])[:, None]
        begun, count = self.poses, max(1, int(np.ceil(steps.max())))
        for number in range(1, count + 1):
            if not self.is_broken:
                self._follow(begun + number / count * way)
        self.poses = np.array(poses)

    def _follow(self, poses: Array) -> None:
        body = self._body
        before = body.plastic, body.hardened
        try:
            shape = self._model.shape(poses, self._shape)
            for _ in range(_TURNS):
                plastic, hardened = body.returned(shape.unknowns, *before)
                change = float(np.abs(plastic - body.plastic).max())
                body.plastic, body.hardened = plastic, hardened
                if change < _SETTLED:
                    break
                shape = self._model.shape(poses, shape)
            else:
                raise NoEquilibriumError("What yields does not settle there.", "Move the grippers less.")
        except NoEquilibriumError:
            body.plastic, body.hardened = before
            raise
        self._shape, self._unknowns, self.poses = shape, shape.unknowns, poses
        worst = int(body.hardened.argmax())
        if body.hardened[worst] >= self._rupture:
            self.is_broken, self._gap = True, float(body.rest_nodes[body.tetrahedra[worst], 2].mean())

    @property
    def nodes(self) -> Array:
        """Where the material points (V, 3) m of the controller's mesh truly are."""
        return np.asarray(self._weights @ self._all_nodes())

    def _all_nodes(self) -> Array:
        nodes = self._shape.nodes
        if self._gap is None:
            return nodes
        nodes, is_right = np.array(nodes), self._body.rest_nodes[:, 2] > self._gap
        poses = zip(self._centres, self.poses.reshape(2, 6), self._shape.poses.reshape(2, 6), strict=True)
        for part, (centre, now, then) in zip((~is_right, is_right), poses, strict=True):
            nodes[part] = motion_of(now, centre).after(motion_of(then, centre).inverse()).apply(nodes[part])
        return nodes

    @property
    def skin(self) -> tuple[Array, NDArray[np.int32]]:
        """Its surface: vertices (P, 3) m and triangles (F, 3); with a gap where it broke."""
        vertices, faces = self._all_nodes()[self._body.skin], self._body.faces
        if self._gap is None:
            return vertices, faces
        along = np.abs(self._body.rest_nodes[self._body.skin, 2] - self._gap)
        return vertices, faces[(along[faces] > _GAP).all(axis=1)]

    def left_over(self) -> tuple[float, float]:
        """How it stays when the right gripper lets go: largest distance of a node from rest, mm, and bend, rad.

        Beside the left gripper; nothing yields meanwhile.

        Raises:
            NoEquilibriumError: If it finds no shape.
        """
        shape, body = self._shape, self._body
        weight = max(float(np.abs(body.wrenches(self._model.rest.unknowns, np.zeros(12))[1]).max()), 1e-12)
        for _ in range(_RELAXING):
            pull = self._pull(shape)
            if float(np.abs(pull).max()) < max(_NO_FORCE, 2.0 * weight):
                break
            slope = np.stack([self._pull(self._model.shape(shape.poses + probe, shape)) - pull for probe in _PROBES], 1)
            step = np.linalg.lstsq(slope / _PROBE, -pull, rcond=None)[0]
            step *= min(1.0, 0.2 / max(float(np.abs(step[3:]).max()), 1e-9))
            shape = self._model.shape(shape.poses + np.concatenate([np.zeros(6), step]), shape)
        left, right = (_motion(body.rest_nodes[held], shape.nodes[held]) for held in body.held)
        back = (shape.nodes - left[1]) @ left[0]
        bend = np.arccos(np.clip(0.5 * (np.trace(left[0].T @ right[0]) - 1.0), -1.0, 1.0))
        return 1e3 * float(np.linalg.norm(back - body.rest_nodes, axis=1).max()), float(bend)

    def _pull(self, shape: HeldShape) -> Array:
        """Wrench (6,) of the right gripper."""
        return self._body.wrenches(shape.unknowns, shape.poses)[1]


_PROBES = np.concatenate([np.zeros((6, 6)), _PROBE * np.eye(6)], axis=1)


def _motion(rest: Array, now: Array) -> tuple[Array, Array]:
    """Rotation (3, 3) and shift (3,) that take points (B, 3) to where they are now: best in squares."""
    middle, there = rest.mean(axis=0), now.mean(axis=0)
    left, _, right = np.linalg.svd((now - there).T @ (rest - middle))
    sign = np.diag([1.0, 1.0, np.sign(np.linalg.det(left @ right))])
    turn = left @ sign @ right
    return turn, there - turn @ middle
