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
from softform_core.bodies.bellows.rotations import rotations, series, turned_hessian
from softform_core.bodies.bellows.weight import diagonal, from_the_end, weight_terms
from softform_core.geometry.rigid import hat


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
        series: (3, 3, n, J), `series` of |phi|².
        half_series: The same of |phi / 2|².
        turn: (n, J, 3, 3), exp(phi).
        mean: (n, J, 3, 3), V(phi).
        half: (n, J, 3, 3), exp(phi / 2).
        half_mean: (n, J, 3, 3), V(phi / 2).
        before: (n, J, 3, 3) frames before the joints.
        behind: (n, J, 3, 3) frames at the ends of the plates.
        discs: (n, J, 3) m.
        ends: (n, J, 3) m, of the plates.
    """

    series: Array
    half_series: Array
    turn: Array
    mean: Array
    half: Array
    half_mean: Array
    before: Array
    behind: Array
    discs: Array
    ends: Array


def place_chain(chain: Chain, joints: Array) -> PlacedChain:
    """Place the chain with joints (n, J, 6)."""
    phi, t = joints[..., :3], joints[..., 3:]
    tau = (phi**2).sum(-1)
    of, of_half = series(tau), series(0.25 * tau)
    half, half_mean = rotations(0.5 * phi, of_half)
    turn, mean = rotations(phi, of)
    frames = np.empty((len(joints), len(chain.height) + 1, 3, 3))
    frames[:, 0] = chain.base
    onwards = turn @ chain.askew
    for e in range(len(chain.height)):
        frames[:, e + 1] = frames[:, e] @ onwards[:, e]
    before, behind = frames[:, :-1], frames[:, 1:]
    plate = chain.plate_length[:, None] * behind[..., 2]
    ends = np.cumsum((before @ (half @ t[..., None]))[..., 0] + plate, axis=1)
    return PlacedChain(of, of_half, turn, mean, half, half_mean, before, behind, ends - plate, ends)


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
    across = np.cross(phi[:, :, None], r)
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
    of = _bellows(chain, joints, placed.half_series)
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
    of = _bellows(chain, joints, placed.half_series)
    gradient, hessian = _weight(chain, joints, placed)
    stiff, cubic, hard = (one[of.joined] for one in (chain.stiffness, chain.hardening, chain.contact_stiffness))
    e, gap = of.strain, np.maximum(0.0, chain.contact[of.joined] - of.strain)
    force = stiff * e + cubic * e**3 - hard * gap**2 - (pressures * chain.area)[:, of.joined]
    stiffness = stiff + 3.0 * cubic * e**2 + 2.0 * hard * gap
    turning = force / of.size
    blocks = of.longer.swapaxes(2, 3) @ ((stiffness / chain.height[:, None] - turning)[..., None] * of.longer)
    blocks += (turning[..., None, None] * (of.by_joint.swapaxes(3, 4) @ of.by_joint)).sum(2)
    c = (turning[..., None] * np.cross(of.r, of.d)).sum(2)
    cp = (c * phi).sum(-1)[..., None, None]
    slope, curvature = (np.array([0.25, 0.0625])[:, None, None] * placed.half_series[0, 1:])[..., None, None]
    half = phi[..., :, None] * (2.0 * slope * c[..., None, :] + 2.0 * curvature * cp * phi[..., None, :])
    blocks[..., :3, :3] += half + half.swapaxes(2, 3) + 2.0 * slope * cp * np.eye(3)
    blocks[..., range(6), range(6)] += linear
    diagonal(hessian, len(chain.height))[:] += blocks.swapaxes(0, 1)
    own = (force[..., None] * of.longer).sum(2) + linear * joints
    return gradient + own.reshape(len(joints), -1), hessian


def _weight(chain: Chain, joints: Array, placed: PlacedChain) -> tuple[Array, Array]:
    """Derivatives (n, 6 J), (n, 6 J, 6 J) of the weight under joints (n, J, 6)."""
    phi, t, g, before = joints[..., :3], joints[..., 3:], chain.gravity, placed.before
    of, of_half = placed.series, placed.half_series
    mass = np.cumsum((chain.mass + chain.plate_mass)[::-1])[::-1, None]
    middles = 0.5 * (placed.discs + placed.ends)
    moments = from_the_end(chain.mass[:, None] * placed.discs + chain.plate_mass[:, None] * middles)
    arm = moments - mass * placed.discs
    twists = disc_twists(placed, joints).swapaxes(2, 3)
    moved = mass[..., None] * twists[..., :3] + np.cross(twists[..., 3:], arm[:, :, None])
    pulls = np.cross(g, twists[..., 3:])
    felt, hung = g @ before, (arm[:, :, None] @ (before @ placed.turn))[:, :, 0]
    own = np.zeros((*joints.shape, 6))
    own[..., :3, :3] = 0.25 * mass[..., None] * turned_hessian(of_half[0], of_half[1], felt, t, 0.5 * phi)
    own[..., :3, :3] += turned_hessian(of[0], of[1], felt, hung, phi)
    # felt . (mean_i x turn_k) = - mean_i . (felt x turn_k)
    own[..., :3, 3:] = -0.5 * mass[..., None] * (placed.half_mean.swapaxes(2, 3) @ hat(felt) @ placed.half)
    own[..., 3:, :3] = own[..., :3, 3:].swapaxes(2, 3)
    return weight_terms(g, moved, pulls, own)


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
    shift = (placed.half @ joints[..., 3:, None])[..., 0]
    found[..., :3, :3] = -0.5 * (placed.before @ hat(shift) @ placed.half_mean)
    found[..., 3:, :3] = placed.before @ placed.mean
    found[..., :3, 3:] = placed.before @ placed.half
    return found
