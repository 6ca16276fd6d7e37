"""The body of linear elements that turn whose material yields: J2 plasticity with linear hardening.

With the strain e = S - 1 of `CorotationalBody`, a plastic strain p without change of volume stays of it, and the stress
is 2 mu (e - p) + lambda tr(e) 1. Where von Mises' exceeds the yield stress, p grows in its direction until it does not
(radial return, paper 003, Eq. 9 as the criterion). Who moves the body finds shape and p in turns, not it by itself.
"""

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.freeform.corotational import CorotationalBody
from softform_core.bodies.freeform.description import MeshedBody
from softform_core.robots.description import Description, Positive

__all__ = ["PlasticBody", "Plasticity"]


class Plasticity(Description):
    """How a material yields, and where it breaks.

    Attributes:
        yield_stress: Of von Mises, Pa.
        hardening: By which it rises with plastic strain, Pa.
        rupture: Plastic strain at which it breaks.
    """

    yield_stress: Positive
    hardening: Positive
    rupture: Positive


class PlasticBody(CorotationalBody):
    """A `CorotationalBody` whose material keeps a plastic strain.

    Attributes:
        plastic: (E, 3, 3) of each element, without change of volume.
        hardened: (E,) equivalent plastic strain so far.

    Args:
        body: As `CorotationalBody`, and so are points, elements and is_rigid.
        points: As there.
        elements: As there.
        is_rigid: As there.
        law: Of the material beyond its yield stress.
    """

    def __init__(
        self,
        body: MeshedBody,
        points: Array,
        elements: NDArray[np.integer],
        is_rigid: NDArray[np.bool_],
        law: Plasticity,
    ) -> None:
        super().__init__(body, points, elements, is_rigid)
        self.plastic = np.zeros((len(self.tetrahedra), 3, 3))
        self.hardened = np.zeros(len(self.tetrahedra))
        self.law = law

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
        beyond = 2.0 * self._mu * size - (self.law.yield_stress + self.law.hardening * hardened)
        grows = np.maximum(beyond, 0.0) / (3.0 * self._mu + self.law.hardening)
        direction = 1.5 * trial / np.maximum(size, 1e-30)[:, None, None]
        return plastic + grows[:, None, None] * direction, hardened + grows
