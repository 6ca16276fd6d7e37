"""A true object that yields and breaks: linear elements that turn, J2 plasticity with linear hardening, rupture.

With the strain e = S - 1 of `CorotationalBody`, a plastic strain p without change of volume stays of it, and the stress
is 2 mu (e - p) + lambda tr(e) 1. Where von Mises' exceeds the yield stress, p grows in its direction until it does not
(radial return, Eq. 9 as the criterion); shape and p are found in turns. An element whose plastic strain reaches rupture
breaks the object: each part then goes with its gripper as it was, and the camera sees the gap.
"""

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.freeform.corotational import CorotationalBody
from softform_core.bodies.freeform.description import FreeformBody
from softform_core.bodies.freeform.mesh import mesh_freeform
from softform_core.bodies.loads.description import GripLoad
from softform_core.errors import SoftformError
from softform_core.simulation.newton import NoEquilibriumError
from softform_shaping.model import HeldModel, HeldShape
from softform_shaping.objects import ShapedObject
from softform_shaping.poses import motion_of
from softform_shaping.true_object import TrueObject

__all__ = ["PlasticBody", "PlasticObject"]

_TURNS, _SETTLED = 60, 2e-6
"""Most turns of shape and plastic strain in a move, and the change of strain from which they count as settled."""
_STEP = 0.03
"""rad and, over the size, shift of a gripper in one step: the way matters where something yields."""
_GAP = 0.006
"""m to both sides of where it broke in which nothing of it is seen."""
_RELAXING, _PROBE, _NO_FORCE = 12, 1e-4, 1e-4


class PlasticBody(CorotationalBody):
    """A `CorotationalBody` whose material keeps a plastic strain.

    Attributes:
        plastic: (E, 3, 3) of each element, without change of volume.
        hardened: (E,) equivalent plastic strain so far.

    Args:
        body: The description.
        yield_stress: Of von Mises, Pa.
        hardening: Pa.
    """

    def __init__(self, body: FreeformBody, yield_stress: float, hardening: float) -> None:
        mesh = mesh_freeform(body, np.zeros((0, 3))).solid
        super().__init__(body, mesh.nodes, mesh.elements, mesh.is_plate)
        self.plastic = np.zeros((len(self.tetrahedra), 3, 3))
        self.hardened = np.zeros(len(self.tetrahedra))
        self._yield_stress, self._hardening = yield_stress, hardening

    def _polar(self, nodes: Array) -> tuple[Array, Array]:
        """Rotations (E, 3, 3), and deviators (E, 3, 3) of the strains."""
        gradient = np.einsum("eai,eaj->eij", nodes[self.tetrahedra], self._slopes)
        left, stretch, right = np.linalg.svd(gradient)
        strain = np.einsum("eki,ek,ekj->eij", right, stretch - 1.0, right)
        return left @ right, strain - np.trace(strain, axis1=1, axis2=2)[:, None, None] / 3.0 * np.eye(3)

    def gradient(self, unknowns: Array, actuators: Array) -> Array:
        """Gradient (1, m) N, with the forces of the plastic strain."""
        found = super().gradient(unknowns, actuators)
        if not self.hardened.any():
            return found
        nodes = self.nodes(unknowns[0])
        turned = self._polar(nodes)[0] @ self.plastic
        forces = -2.0 * (self._mu * self.volumes)[:, None, None] * np.einsum("eij,eaj->eai", turned, self._slopes)
        added = np.zeros_like(nodes)
        np.add.at(added, self.tetrahedra, forces)
        return np.asarray(found + added.reshape(-1)[self._order][None])

    def stresses(self, unknowns: Array) -> Array:
        """Von Mises stress (E,) Pa, of what is elastic of the strain."""
        elastic = self._polar(self.nodes(unknowns))[1] - self.plastic
        return np.asarray(2.0 * self._mu * np.sqrt(1.5 * np.einsum("eij,eij->e", elastic, elastic)))

    def returned(self, unknowns: Array, plastic: Array, hardened: Array) -> tuple[Array, Array]:
        """Plastic strain (E, 3, 3) and its equivalent (E,) at unknowns (m,), from where they were before a move."""
        trial = self._polar(self.nodes(unknowns))[1] - plastic
        size = np.sqrt(1.5 * np.einsum("eij,eij->e", trial, trial))
        beyond = 2.0 * self._mu * size - (self._yield_stress + self._hardening * hardened)
        grows = np.maximum(beyond, 0.0) / (3.0 * self._mu + self._hardening)
        direction = 1.5 * trial / np.maximum(size, 1e-30)[:, None, None]
        return plastic + grows[:, None, None] * direction, hardened + grows


class PlasticObject(TrueObject):
    """An object with `plasticity` on the rig.

    Attributes:
        poses: (12,) of the grippers, as commanded.
        slipped: (12,) zero: it is held firmly.
        has: (V,) which of the material points it has.
        is_broken: Whether it broke.

    Args:
        described: The object.
        rest_nodes: (V, 3) m, nodes of the controller's mesh at rest.

    Raises:
        SoftformError: If its truth says more than another material and weight, or has no plasticity.
    """

    def __init__(self, described: ShapedObject, rest_nodes: Array) -> None:
        body, law = described.body, described.plasticity
        if law is None or described.yield_stress is None or not isinstance(body, FreeformBody):
            raise SoftformError(f"Object '{described.name}' does not yield.", "Give it plasticity and yield_stress.")
        others = set(described.truth) - {"material", "gravity"}
        if others:
            raise SoftformError(
                f"Of an object that yields, truth takes no {', '.join(sorted(others))}.", "Leave it out, or plasticity."
            )
        self._body = PlasticBody(
            body.model_validate({**body.model_dump(), **described.truth}), described.yield_stress, law.hardening
        )
        self._rupture, self._model = law.rupture, HeldModel(self._body)
        self._weights = self._body.weights_of(rest_nodes)
        self.has = np.linalg.norm(self._body.rest_nodes[self._weights.indices] - rest_nodes, axis=1) < 1e-3
        self.poses, self.slipped, self.is_broken = np.zeros(12), np.zeros(12), False
        self._shape = self._model.shape(self.poses)
        self._unknowns = self._shape.unknowns
        self._gap: float | None = None
        self._centres = [0.5 * np.add(grip.begin, grip.end) for grip in body.loads if isinstance(grip, GripLoad)]

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
