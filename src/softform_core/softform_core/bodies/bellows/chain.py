"""The real arm: a chain of rigid discs, joined by single folds; energy and derivatives of many samples.

Joint e turns the next disc by exp(phi) and shifts it by t, given in the frame halfway between both discs. Bellow j
joins the points at r_j of both: it leads along d_j = t + s phi x r_j with s = sin(|phi| / 2) / (|phi| / 2), so that

    Pi = sum_e [ sum_j (h psi_j(|d_j| / h - 1) - p_j A_j (|d_j| - h)) + S (t_1² + t_2²) / 2
                 + B (phi_1² + phi_2²) / 2 + C phi_3² / 2 ] - weight

with the axial law psi'(e) = K e + c e³ and, where folds touch (e < e_c), - k_c (e_c - e)². Behind a section follows a
rigid plate that may sit askew. Unlike the simulator's rod, the arm gives way sideways and its folds touch at once.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.bellows.skin import Skin, SkinnedArm, carried_twists
from softform_core.bodies.placement import weight_terms
from softform_core.bodies.rotations import Turns, crossed, one_after_another, series, turned_hessian, turns_by
from softform_core.geometry.rigid import hat
from softform_core.simulation.hessian import BlockHessian


class Chain(NamedTuple):
    """J joints and k bellows; SI units.

    Attributes:
        section: (J,) section of each joint.
        height: (J,) distance h of its discs at rest, m.
        mass: (J,) of the disc behind it, kg.
        askew: (J, 3, 3) how the plate behind it sits.
        plate_length: (J,) m; 0 where there is none.
        plate_mass: (J,) kg.
        base: (3, 3) directors at the base, as columns.
        gravity: (3,) m/s².
        place: (k, 2) of each bellow, m.
        area: (k,).
        stiffness: (k,) K, N.
        hardening: (k,) c, N.
        contact: (k,) strain e_c at which folds touch, below 0.
        contact_stiffness: (k,) k_c, N.
        shear: (J,) S, N/m.
        bending: (J,) B, N m.
        torsion: (J,) C, N m.
    """

    section: NDArray[np.int64]
    height: Array
    mass: Array
    askew: Array
    plate_length: Array
    plate_mass: Array
    base: Array
    gravity: Array
    place: Array
    area: Array
    stiffness: Array
    hardening: Array
    contact: Array
    contact_stiffness: Array
    shear: Array
    bending: Array
    torsion: Array


class PlacedChain(NamedTuple):
    """n samples of J joints.

    Attributes:
        turns: By phi (n, J).
        halves: By phi / 2 (n, J).
        before: (n, J, 3, 3) frames before the joints.
        behind: (n, J, 3, 3) frames at the ends of the plates.
        discs: (n, J, 3) m.
        ends: (n, J, 3) m, of the plates.
    """

    turns: Turns
    halves: Turns
    before: Array
    behind: Array
    discs: Array
    ends: Array


def place_chain(chain: Chain, joints: Array) -> PlacedChain:
    """Place the chain with joints (n, J, 6)."""
    phi, t = joints[..., :3], joints[..., 3:]
    turns, halves = turns_by(phi), turns_by(0.5 * phi)
    frames = one_after_another(chain.base, turns.turn @ chain.askew)
    before, behind = frames[:, :-1], frames[:, 1:]
    plate = chain.plate_length[:, None] * behind[..., 2]
    ends = np.cumsum((before @ (halves.turn @ t[..., None]))[..., 0] + plate, axis=1)
    return PlacedChain(turns, halves, before, behind, ends - plate, ends)


class _Bellows(NamedTuple):
    """The c bellows of J joints of n samples: their length, its derivatives by phi and t, and their strain.

    Attributes:
        joined: (J, c) bellows of each joint.
        r: (J, c, 3) m.
        d: (n, J, c, 3) m.
        size: (n, J, c) m.
        by_joint: (n, J, c, 3, 6) of d.
        longer: (n, J, c, 6) of the size.
        strain: (n, J, c).
    """

    joined: NDArray[np.int64]
    r: Array
    d: Array
    size: Array
    by_joint: Array
    longer: Array
    strain: Array


def _bellows(chain: Chain, joints: Array, of_half: Array) -> _Bellows:
    phi, t = joints[..., :3], joints[..., 3:]
    sections = int(chain.section[-1]) + 1
    joined = np.arange(len(chain.area)).reshape(sections, -1)[chain.section]
    r = np.concatenate([chain.place, np.zeros((len(chain.place), 1))], axis=1)[joined]
    s, slope = of_half[0, 0], 0.25 * of_half[0, 1]
    across = crossed(phi[:, :, None], r)
    d = t[:, :, None] + s[..., None, None] * across
    by_joint = np.empty((*d.shape, 6))
    by_joint[..., :3] = 2.0 * slope[..., None, None, None] * across[..., None] * phi[:, :, None, None]
    by_joint[..., :3] -= s[..., None, None, None] * hat(r)
    by_joint[..., 3:] = np.eye(3)
    size = np.sqrt((d**2).sum(-1))
    longer = ((d / size[..., None])[..., None, :] @ by_joint)[..., 0, :]
    return _Bellows(joined, r, d, size, by_joint, longer, size / chain.height[:, None] - 1.0)


def _linear(chain: Chain) -> Array:
    """Stiffness (J, 6) of the joints beside that of the bellows."""
    nil = np.zeros_like(chain.shear)
    return np.stack([chain.bending, chain.bending, chain.torsion, chain.shear, chain.shear, nil], axis=1)


def energies(chain: Chain, pressures: Array, joints: Array) -> Array:
    """Pi (n,) J of many samples: pressures (n, k), joints (n, J, 6); infinite where discs would pass each other."""
    placed = place_chain(chain, joints)
    of = _bellows(chain, joints, placed.halves.series)
    height, e, gap = chain.height[:, None], of.strain, np.maximum(0.0, chain.contact[of.joined] - of.strain)
    law = 0.5 * chain.stiffness[of.joined] * e**2 + 0.25 * chain.hardening[of.joined] * e**4
    law += chain.contact_stiffness[of.joined] * gap**3 / 3.0
    own = height * (law - (pressures * chain.area)[:, of.joined] * e)
    energy = own.sum(axis=(1, 2)) + 0.5 * (_linear(chain) * joints**2).sum(axis=(1, 2))
    middles = 0.5 * (placed.discs + placed.ends)
    energy -= (chain.mass * (placed.discs @ chain.gravity) + chain.plate_mass * (middles @ chain.gravity)).sum(axis=1)
    return np.where((of.d[..., 2] <= 0.0).any(axis=(1, 2)), np.inf, energy)


def derivatives(chain: Chain, pressures: Array, joints: Array) -> tuple[Array, Array]:
    """Gradients (n, 6 J) and Hessians (n, 6 J, 6 J) of many samples."""
    placed, linear, phi = place_chain(chain, joints), _linear(chain), joints[..., :3]
    of = _bellows(chain, joints, placed.halves.series)
    stiff, cubic, hard = (one[of.joined] for one in (chain.stiffness, chain.hardening, chain.contact_stiffness))
    e, gap = of.strain, np.maximum(0.0, chain.contact[of.joined] - of.strain)
    force = stiff * e + cubic * e**3 - hard * gap**2 - (pressures * chain.area)[:, of.joined]
    stiffness = stiff + 3.0 * cubic * e**2 + 2.0 * hard * gap
    turning = force / of.size
    blocks = of.longer.swapaxes(2, 3) @ ((stiffness / chain.height[:, None] - turning)[..., None] * of.longer)
    blocks += (turning[..., None, None] * (of.by_joint.swapaxes(3, 4) @ of.by_joint)).sum(2)
    c = (turning[..., None] * crossed(of.r, of.d)).sum(2)
    cp = (c * phi).sum(-1)[..., None, None]
    slope, curvature = (np.array([0.25, 0.0625])[:, None, None] * placed.halves.series[0, 1:])[..., None, None]
    half = phi[..., :, None] * (2.0 * slope * c[..., None, :] + 2.0 * curvature * cp * phi[..., None, :])
    blocks[..., :3, :3] += half + half.swapaxes(2, 3) + 2.0 * slope * cp * np.eye(3)
    blocks[..., range(6), range(6)] += linear
    gradient, hessian = _weight(chain, joints, placed, blocks)
    own = (force[..., None] * of.longer).sum(2) + linear * joints
    return gradient + own.reshape(len(joints), -1), hessian


def _weight(chain: Chain, joints: Array, placed: PlacedChain, blocks: Array) -> tuple[Array, Array]:
    """Derivatives (n, 6 J), (n, 6 J, 6 J) of the weight under joints (n, J, 6); adds `blocks` (n, J, 6, 6) of these."""
    g, before, turns, halves = chain.gravity, placed.before, placed.turns, placed.halves
    mass = np.cumsum((chain.mass + chain.plate_mass)[::-1])[::-1, None]
    middles = 0.5 * (placed.discs + placed.ends)
    moments = chain.mass[:, None] * placed.discs + chain.plate_mass[:, None] * middles
    arm = np.cumsum(moments[:, ::-1], axis=1)[:, ::-1] - mass * placed.discs
    twists = disc_twists(placed, joints).swapaxes(2, 3)
    moved = mass[..., None] * twists[..., :3] + crossed(twists[..., 3:], arm[:, :, None])
    local_gravity, hung = g @ before, (arm[:, :, None] @ (before @ turns.turn))[:, :, 0]
    own = np.zeros((*joints.shape, 6))
    half_shift = (0.25 * mass * joints[..., 3:])[None]
    own[..., :3, :3] = turned_hessian(halves.series[:2], local_gravity, half_shift, halves.phi)
    own[..., :3, :3] += turned_hessian(turns.series[:2], local_gravity, hung[None], turns.phi)
    # local_gravity . (mean_i x turn_k) = - mean_i . (local_gravity x turn_k)
    own[..., :3, 3:] = -0.5 * mass[..., None] * (halves.mean.swapaxes(2, 3) @ hat(local_gravity) @ halves.turn)
    own[..., 3:, :3] = own[..., :3, 3:].swapaxes(2, 3)
    return weight_terms(g, moved, twists[..., 3:], blocks - own)


def load_derivatives(chain: Chain, joints: Array) -> Array:
    """Derivative of the gradient by the pressures of many samples, (n, 6 J, k)."""
    samples, count = joints.shape[:2]
    of = _bellows(chain, joints, series(0.25 * (joints[..., :3] ** 2).sum(-1)))
    found = np.zeros((samples, count, 6, len(chain.area)))
    pushed = -chain.area[of.joined][..., None] * of.longer
    np.put_along_axis(found, of.joined[None, :, None, :], pushed.swapaxes(2, 3), axis=3)
    return found.reshape(samples, 6 * count, -1)


def disc_twists(placed: PlacedChain, joints: Array) -> Array:
    """Shift and turn (n, J, 6, 6) of each disc by the six coordinates of the joint before it; joints (n, J, 6)."""
    found = np.zeros((*joints.shape, 6))
    shift = (placed.halves.turn @ joints[..., 3:, None])[..., 0]
    found[..., :3, :3] = -0.5 * (placed.before @ hat(shift) @ placed.halves.mean)
    found[..., 3:, :3] = placed.before @ placed.turns.mean
    found[..., :3, 3:] = placed.before @ placed.halves.turn
    return found


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
