"""The simulator's arm: equilibria of a rod of bellows, and where its skin is."""

import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.bellows.energy import derivatives, energies, load_derivatives, strain_under
from softform_core.bodies.bellows.model import BellowsArm
from softform_core.bodies.bellows.placement import element_twists, ring_frames
from softform_core.bodies.bellows.skin import Skin, at_ends, carried_twists
from softform_core.bodies.bellows.skinned import SkinnedArm
from softform_core.simulation.hessian import BlockHessian


class BellowsProblem(SkinnedArm):
    """`SimulatedBody` of an arm; the unknowns are its strains, curvatures times the element's length.

    Args:
        arm: Result of `build_arm`.
        skin: Its skin, over the same elements.
    """

    def __init__(self, arm: BellowsArm, skin: Skin) -> None:
        self.arm, self._elements = arm, len(arm.length)
        unit = np.column_stack([np.repeat(1.0 / arm.length[:, None], 3, axis=1), np.ones(self._elements)]).ravel()
        super().__init__(skin, unit, len(arm.area))
        count = len(arm.area) // (int(arm.section[-1]) + 1)
        by_strains = np.column_stack([arm.place[:count, 1], -arm.place[:count, 0], np.ones(count)])
        self._by_bellows = np.linalg.pinv(by_strains)  # curvatures and stretch of a section by its bellows' strains

    def strains(self, unknowns: Array) -> Array:
        """Strains (n, E, 4) of unknowns (n, m)."""
        return (unknowns * self._unit).reshape(len(unknowns), self._elements, 4)

    def start(self, actuators: Array) -> Array:
        """Where each section would be if its bellows had neither weight nor stiffness in bending."""
        arm = self.arm
        alone = strain_under(actuators * arm.area, arm.stiffness, arm.shortest, arm.longest)
        sections = int(arm.section[-1]) + 1
        strains = np.zeros((len(actuators), self._elements, 4))
        strains[:, :, [0, 1, 3]] = (alone.reshape(len(actuators), sections, -1) @ self._by_bellows.T)[:, arm.section]
        return strains.reshape(len(actuators), -1) / self._unit

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Pi (n,), J."""
        return energies(self.arm, actuators, self.strains(unknowns))

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, BlockHessian]:
        """Gradient (n, m) J and Hessian, J."""
        gradient, hessian = derivatives(self.arm, actuators, self.strains(unknowns))
        hessian *= self._unit[:, None] * self._unit
        return gradient * self._unit, BlockHessian(hessian[:, None])

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """Derivative of the gradient by the pressures, (n, m, k)."""
        one = load_derivatives(self.arm) * self._unit[:, None]
        return np.broadcast_to(one, (len(unknowns), *one.shape))

    def _rings(self, unknowns: Array) -> tuple[Array, Array]:
        return ring_frames(self.arm, self._skin, self.strains(unknowns))

    def _twists(self, unknowns: Array, moves: Array) -> Array:
        strains, skin, elements = self.strains(unknowns), self._skin, np.arange(self._elements)
        by_strain = (moves * self._unit[:, None]).reshape(len(unknowns), self._elements, 4, -1)
        places, frames = self._rings(unknowns)
        ends = ring_frames(self.arm, at_ends(self._skin, self._elements), strains)[0]
        whole = element_twists(self.arm, elements, np.ones(self._elements), strains) @ by_strain
        own = element_twists(self.arm, skin.element, skin.share, strains) @ by_strain[:, skin.element]
        plate = (skin.beyond * self.arm.link_length[skin.element])[:, None] * frames[..., 2]
        own[:, :, :3] += np.cross(own[:, :, 3:], plate[..., None], axis=2)
        return np.asarray(carried_twists(places, skin.element, whole, ends) + own)
