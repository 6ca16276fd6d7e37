"""The real arm: equilibria of a chain of discs, and where its skin is."""

import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.bellows.chain import (
    Chain,
    derivatives,
    disc_twists,
    energies,
    load_derivatives,
    place_chain,
)
from softform_core.bodies.bellows.skin import Skin, carried_twists
from softform_core.bodies.bellows.skinned import SkinnedArm
from softform_core.simulation.hessian import BlockHessian


class ChainProblem(SkinnedArm):
    """`SimulatedBody` of a chain; the unknowns are angles of its joints and their shifts over their height.

    Args:
        chain: The chain.
        skin: Its skin, with a ring at each disc.
    """

    def __init__(self, chain: Chain, skin: Skin) -> None:
        self.chain = chain
        unit = np.column_stack([np.ones((len(chain.height), 3)), np.repeat(chain.height[:, None], 3, axis=1)])
        self._rest_shift = np.zeros((len(chain.height), 6))
        self._rest_shift[:, 5] = chain.height
        super().__init__(skin, unit.ravel(), len(chain.area))

    def joints(self, unknowns: Array) -> Array:
        """Angles and shifts (n, J, 6) of unknowns (n, m)."""
        return np.ascontiguousarray((unknowns * self._unit).reshape(len(unknowns), -1, 6) + self._rest_shift)

    def start(self, actuators: Array) -> Array:
        """The straight arm without load."""
        return np.zeros((len(actuators), len(self._unit)))

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Pi (n,), J."""
        return np.asarray(energies(self.chain, np.ascontiguousarray(actuators), self.joints(unknowns)))

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, BlockHessian]:
        """Gradient (n, m) J and Hessian, J."""
        gradient, hessian = derivatives(self.chain, np.ascontiguousarray(actuators), self.joints(unknowns))
        hessian *= self._unit[:, None] * self._unit
        return gradient * self._unit, BlockHessian(hessian[:, None])

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """Derivative of the gradient by the pressures, (n, m, k)."""
        return np.asarray(load_derivatives(self.chain, self.joints(unknowns)) * self._unit[:, None])

    def _rings(self, unknowns: Array) -> tuple[Array, Array]:
        skin, samples = self._skin, len(unknowns)
        places, frames = np.empty((samples, len(skin.element), 3)), np.empty((samples, len(skin.element), 3, 3))
        for n, joints in enumerate(self.joints(unknowns)):
            turned, placed = place_chain(self.chain, joints)
            beyond = skin.beyond.astype(int)
            places[n], frames[n] = placed[beyond, skin.element], turned[1 + beyond, skin.element]
        places[:, 0], frames[:, 0] = 0.0, self.chain.base
        return places, frames

    def _twists(self, unknowns: Array, moves: Array) -> Array:
        joints, skin = self.joints(unknowns), self._skin
        by_joint = (moves * self._unit[:, None]).reshape(*joints.shape, -1)
        discs = np.stack([place_chain(self.chain, one)[1][0] for one in joints])
        before = skin.element + skin.share.astype(int)
        return carried_twists(self._rings(unknowns)[0], before, disc_twists(self.chain, joints) @ by_joint, discs)
