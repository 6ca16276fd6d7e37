"""The simulator's arm: equilibria of a rod of bellows, and where its skin is."""

import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.bellows.energy import BellowsEnergy, strain_under
from softform_core.bodies.bellows.model import BellowsArm
from softform_core.bodies.bellows.skin import Skin, carried_twists, element_twists, ring_frames
from softform_core.bodies.bellows.skinned import SkinnedArm
from softform_core.bodies.placement import Placed, by_strains, ends, place, twists
from softform_core.bodies.weight import Weight
from softform_core.simulation.hessian import BlockHessian


class BellowsProblem(SkinnedArm):
    """`SimulatedBody` of an arm; the unknowns are its bends, see `bodies.placement`.

    Args:
        arm: Result of `build_arm`.
        skin: Its skin, over the same elements.
    """

    def __init__(self, arm: BellowsArm, skin: Skin) -> None:
        self.arm, self._bellows, self._weight = arm, BellowsEnergy(arm), Weight(arm)
        super().__init__(skin, 4 * len(arm.length), len(arm.area))
        count = len(arm.area) // (int(arm.section[-1]) + 1)
        # Curvatures and stretch of a section by its bellows' strains.
        self._by_bellows = np.linalg.pinv(by_strains(arm.place[:count])[:, [0, 1, 3]])

    def strains(self, unknowns: Array) -> Array:
        """Strains (n, E, 4), curvatures and stretch, of unknowns (n, m)."""
        return self._bends(unknowns) / np.where(np.arange(4) == 3, 1.0, self.arm.length[:, None])

    def _bends(self, unknowns: Array) -> Array:
        return unknowns.reshape(len(unknowns), -1, 4)

    def _placed(self, unknowns: Array) -> Placed:
        return place(self.arm, self._bends(unknowns))

    def start(self, actuators: Array) -> Array:
        """Where each section would be if its bellows had neither weight nor stiffness in bending."""
        arm = self.arm
        alone = strain_under(actuators * arm.area, arm.stiffness, arm.shortest, arm.longest)
        sections = int(arm.section[-1]) + 1
        bends = np.zeros((len(actuators), len(arm.length), 4))
        bends[:, :, [0, 1, 3]] = (alone.reshape(len(actuators), sections, -1) @ self._by_bellows.T)[:, arm.section]
        bends[:, :, :3] *= arm.length[:, None]
        return bends.reshape(len(actuators), -1)

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Pi (n,), J."""
        return self._bellows.energies(self._bends(unknowns), actuators) + self._weight.energies(self._placed(unknowns))

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, BlockHessian]:
        """Gradient (n, m) J and Hessian, J."""
        gradient, blocks = self._bellows.derivatives(self._bends(unknowns), actuators)
        pulled, hessian = self._weight.derivatives(self._placed(unknowns), blocks)
        return gradient + pulled, BlockHessian(hessian[:, None])

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """Derivative of the gradient by the pressures, (n, m, k)."""
        return np.broadcast_to(self._bellows.pushes, (len(unknowns), *self._bellows.pushes.shape))

    def _rings(self, unknowns: Array) -> tuple[Array, Array]:
        return ring_frames(self.arm, self._skin, self._placed(unknowns))

    def _twists(self, unknowns: Array, moves: Array) -> Array:
        placed, skin = self._placed(unknowns), self._skin
        by_bend = moves.reshape(len(unknowns), len(self.arm.length), 4, -1)
        places, frames = ring_frames(self.arm, skin, placed)
        whole = twists(self.arm.length, placed.directors[:, :-1], placed.turns, placed.bends[..., 3]) @ by_bend
        own = element_twists(self.arm, skin.element, skin.share, placed) @ by_bend[:, skin.element]
        plate = (skin.beyond * self.arm.link_length[skin.element])[:, None] * frames[..., 2]
        own[:, :, :3] += np.cross(own[:, :, 3:], plate[..., None], axis=2)
        return np.asarray(carried_twists(places, skin.element, whole, ends(self.arm, placed)[0]) + own)
