"""The real arm: equilibria of a chain of discs, and where its skin is."""

import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.bellows.chain import (
    Chain,
    PlacedChain,
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
        self._unit = unit.ravel()  # angles and shifts for a unit of each unknown
        self._rest_shift = np.zeros((len(chain.height), 6))
        self._rest_shift[:, 5] = chain.height
        super().__init__(skin, unit.size, len(chain.area))

    def joints(self, unknowns: Array) -> Array:
        """Angles and shifts (n, J, 6) of unknowns (n, m)."""
        return (unknowns * self._unit).reshape(len(unknowns), -1, 6) + self._rest_shift

    def start(self, actuators: Array) -> Array:
        """The straight arm without load."""
        return np.zeros((len(actuators), len(self._unit)))

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Pi (n,), J."""
        return energies(self.chain, actuators, self.joints(unknowns))

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, BlockHessian]:
        """Gradient (n, m) J and Hessian, J."""
        gradient, hessian = derivatives(self.chain, actuators, self.joints(unknowns))
        hessian *= self._unit[:, None] * self._unit
        return gradient * self._unit, BlockHessian(hessian[:, None])

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """Derivative of the gradient by the pressures, (n, m, k)."""
        return load_derivatives(self.chain, self.joints(unknowns)) * self._unit[:, None]

    def _rings(self, unknowns: Array) -> tuple[Array, Array]:
        return self._placed_rings(place_chain(self.chain, self.joints(unknowns)))

    def _placed_rings(self, placed: PlacedChain) -> tuple[Array, Array]:
        element, beyond = self._skin.element, self._skin.beyond > 0.0
        places = np.where(beyond[:, None], placed.ends[:, element], placed.discs[:, element])
        at_discs = (placed.before @ placed.turns.turn)[:, element]
        frames = np.where(beyond[:, None, None], placed.behind[:, element], at_discs)
        places[:, 0], frames[:, 0] = 0.0, self.chain.base
        return places, frames

    def _twists(self, unknowns: Array, moves: Array) -> Array:
        joints, skin = self.joints(unknowns), self._skin
        by_joint = (moves * self._unit[:, None]).reshape(*joints.shape, -1)
        placed, before = place_chain(self.chain, joints), skin.element + skin.share.astype(int)
        twists = disc_twists(placed, joints) @ by_joint
        return carried_twists(self._placed_rings(placed)[0], before, twists, placed.discs)
