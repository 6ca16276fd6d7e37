"""The simulator's arm: total potential of a rod of bellows, its equilibria, and where its skin is.

    Pi(q) = sum_e l_e (sum_j phi_j(e_j) + B (kappa_1² + kappa_2²) / 2 + C kappa_3² / 2) - sum_j p_j A_j L_j(q) - weight

e_j = epsilon - kappa_2 x_1 + kappa_1 x_2 is the strain of bellow j at its axis and L_j its length: the pressure of a
bellow works on its effective area times the change of its length. The axial law is

    phi(e) = - K m² / 2 ln(1 - (e / m)²),   phi'(e) = K e / (1 - (e / m)²),

a soft spring at the natural length that stiffens without bound as the folds touch (m below 0) or lie flat (m above 0);
both branches agree at 0 up to the third derivative.
"""

from dataclasses import dataclass

import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.bellows.description import BellowsBody
from softform_core.bodies.bellows.skin import Skin, SkinnedArm, carried_twists, element_twists, ring_frames
from softform_core.bodies.placement import Elements, Placed, Weight, by_strains, ends, in_sections, place, twists
from softform_core.simulation.hessian import BlockHessian

GRAVITY = 9.81

DOWN = np.diag([1.0, -1.0, -1.0])
"""Directors of a hanging arm: its first bellow lies on the x axis, and it leads along -z."""


@dataclass(frozen=True, eq=False)
class BellowsArm(Elements):
    """E elements with k bellows, whose links are the plates; SI units.

    Attributes:
        place: (k, 2) of each bellow in the cross-section.
        area: (k,).
        stiffness: (k,) force over strain at the natural length, N.
        shortest: (k,) least strain, below 0.
        longest: (k,) largest strain.
        bending: (E,) of all bellows about their own axes, N m².
        torsion: (E,) N m².
    """

    place: Array
    area: Array
    stiffness: Array
    shortest: Array
    longest: Array
    bending: Array
    torsion: Array


def build_arm(body: BellowsBody) -> BellowsArm:
    """Arrays of an arm."""
    section, bellows = body.section, len(body.inputs)
    elements = body.sections * body.elements
    mass = np.full(elements, section.count * section.mass / body.elements)
    return BellowsArm(
        **in_sections(body.sections, mass, body.plate_length, body.plate_mass),
        length=np.full(elements, section.length / body.elements),
        base=directors(body),
        gravity=np.array([0.0, 0.0, -GRAVITY]),
        place=np.tile(section.places, (body.sections, 1)),
        area=np.full(bellows, section.area),
        stiffness=np.full(bellows, section.stiffness),
        shortest=np.full(bellows, section.shortest - 1.0),
        longest=np.full(bellows, section.longest - 1.0),
        bending=np.full(elements, section.count * section.bending),
        torsion=np.full(elements, section.count * section.torsion),
    )


def directors(body: BellowsBody) -> Array:
    """Directors (3, 3) at the base, as columns: the third leads along the arm."""
    return DOWN if body.hanging else np.eye(3)


class BellowsEnergy:
    """Energy of an arm under pressures; its bends (n, E, 4) are those of `bodies.placement`.

    Args:
        arm: The arm.

    Attributes:
        pushes: (4 E, k) derivative of the gradient by the pressures: the same everywhere.
    """

    def __init__(self, arm: BellowsArm) -> None:
        elements, bellows, self._length = len(arm.length), len(arm.area), arm.length[:, None]
        self._joined = np.arange(bellows).reshape(int(arm.section[-1]) + 1, -1)[arm.section]  # (E, c)
        self._by_bends = by_strains(arm.place)[self._joined]  # (E, c, 4) of the bellows' strains
        self._by_bends[..., :3] /= self._length[..., None]
        self._lengthened = self._length[..., None] * self._by_bends
        nil, torsion = np.zeros(elements), arm.torsion / arm.length
        self._linear = np.stack([arm.bending / arm.length, arm.bending / arm.length, torsion, nil], axis=1)
        self._linear_blocks = self._linear[:, :, None] * np.eye(4)
        self._stiffness = arm.stiffness[self._joined]
        self._shortest, self._longest = arm.shortest[self._joined], arm.longest[self._joined]
        self._area = arm.area
        pushes = np.zeros((elements, 4, bellows))
        pushes[np.arange(elements)[:, None], :, self._joined] = -arm.area[self._joined][..., None] * self._lengthened
        self.pushes = pushes.reshape(-1, bellows)

    def _law(self, bends: Array) -> tuple[Array, Array, Array]:
        """Strain e of the bellows (n, E, c), m² and 1 - (e / m)²."""
        strain = (self._by_bends @ bends[..., None])[..., 0]
        limit = np.where(strain < 0.0, self._shortest, self._longest)
        return strain, limit**2, 1.0 - (strain / limit) ** 2

    def energies(self, bends: Array, pressures: Array) -> Array:
        """Pi (n,), J, under pressures (n, k); infinite where folds would pass each other."""
        strain, limit2, left = self._law(bends)
        own = -0.5 * self._stiffness * limit2 * np.log(np.where(left > 0.0, left, 1.0))
        own -= (pressures * self._area)[:, self._joined] * strain
        energy = (self._length * own).sum(axis=(1, 2)) + 0.5 * (self._linear * bends**2).sum(axis=(1, 2))
        return np.where((left <= 0.0).any(axis=(1, 2)), np.inf, energy)

    def derivatives(self, bends: Array, pressures: Array) -> tuple[Array, Array]:
        """Gradient (n, 4 E) and Hessian of each element (n, E, 4, 4), J."""
        strain, _, left = self._law(bends)
        force = self._stiffness * strain / left - (pressures * self._area)[:, self._joined]
        slope = self._stiffness * (2.0 - left) / left**2
        gradient = (force[:, :, None] @ self._lengthened)[:, :, 0] + self._linear * bends
        blocks = self._lengthened.swapaxes(1, 2) @ (slope[..., None] * self._by_bends)
        return gradient.reshape(len(bends), -1), blocks + self._linear_blocks


def strain_under(force: Array, stiffness: Array, shortest: Array, longest: Array) -> Array:
    """Strain (…) at which bellows pull with `force` (…) N: phi'(e) = force, in closed form."""
    limit = np.where(force < 0.0, shortest, longest)
    # force e² / m² + K e - force = 0
    return 2.0 * force / (stiffness + np.sqrt(stiffness**2 + (2.0 * force / limit) ** 2))


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
