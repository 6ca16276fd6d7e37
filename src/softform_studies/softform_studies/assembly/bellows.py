"""Gradient and Hessian of arms of bellows by numpy, to measure what the compiled ones are worth.

The sums of `bodies.bellows.energy` and, of a reality's chain of discs, of `bodies.bellows.chain`.
"""

import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.bellows.chain import Chain
from softform_core.bodies.bellows.chain_problem import ChainProblem
from softform_core.bodies.bellows.equilibrium import BellowsProblem
from softform_core.geometry.rigid import hat
from softform_core.simulation.hessian import BlockHessian
from softform_studies.assembly.rods import (
    Assembly,
    diagonal,
    from_the_end,
    rotations,
    series,
    turned_hessian,
    weight,
    weight_terms,
)


def arm_assembly(problem: BellowsProblem) -> Assembly:
    """Gradient and Hessian of the simulator's arm by numpy."""
    arm, elements, unit = problem.arm, len(problem.arm.length), problem._unit
    sections = int(arm.section[-1]) + 1
    x, y = arm.place.T.reshape(2, sections, -1)[:, arm.section]  # (E, c)
    by_strain = np.stack([y, -x, np.zeros_like(x), np.ones_like(x)], axis=-1)  # (E, c, 4)
    products = arm.length[:, None, None] * (by_strain[..., :, None] * by_strain[..., None, :]).reshape(*x.shape, 16)
    forces = arm.length[:, None, None] * by_strain
    stiffness, shortest, longest = (
        one.reshape(sections, -1)[arm.section][:, None] for one in (arm.stiffness, arm.shortest, arm.longest)
    )
    linear = arm.length[:, None] * np.stack([arm.bending, arm.bending, arm.torsion, np.zeros(elements)], axis=1)
    pushes = problem.load_derivative(np.zeros((1, len(unit))), problem.unloaded[None])[0]

    def derivatives(unknowns: Array, actuators: Array) -> tuple[Array, BlockHessian]:
        strains = problem.strains(unknowns)
        strain = strains.swapaxes(0, 1) @ by_strain.swapaxes(1, 2)  # (E, n, c)
        share = (strain / np.where(strain < 0.0, shortest, longest)) ** 2
        left = 1.0 - share
        gradient, hessian = weight(arm, strains)
        elastic = ((stiffness * strain / left) @ forces).swapaxes(0, 1) + linear * strains
        blocks = diagonal(hessian, elements)
        blocks += ((stiffness * (1.0 + share) / left**2) @ products).reshape(*blocks.shape)
        blocks[..., range(4), range(4)] += linear[:, None]
        hessian *= unit[:, None] * unit
        gradient = (gradient + elastic.reshape(len(strains), -1)) * unit + actuators @ pushes.T
        return gradient, BlockHessian(hessian[:, None])

    return derivatives


def chain_assembly(problem: ChainProblem) -> Assembly:
    """Gradient and Hessian of a chain of discs by numpy."""
    chain, unit = problem.chain, problem._unit
    sections = int(chain.section[-1]) + 1
    joined = np.arange(len(chain.area)).reshape(sections, -1)[chain.section]  # (J, c) bellows of each joint
    r = np.concatenate([chain.place, np.zeros((len(chain.place), 1))], axis=1)[joined]
    turned_r, height = hat(r), chain.height[:, None]
    area, stiff, cubic, touch, hard = (
        one[joined] for one in (chain.area, chain.stiffness, chain.hardening, chain.contact, chain.contact_stiffness)
    )
    nil = np.zeros_like(chain.shear)
    linear = np.stack([chain.bending, chain.bending, chain.torsion, chain.shear, chain.shear, nil], axis=1)

    def derivatives(unknowns: Array, actuators: Array) -> tuple[Array, BlockHessian]:
        joints = problem.joints(unknowns)
        phi, t = joints[..., :3], joints[..., 3:]
        tau = (phi**2).sum(-1)
        of_half = series(0.25 * tau)
        gradient, hessian = _weight_of_chain(chain, joints, series(tau), of_half)
        s, slope, curvature = of_half[0] * np.array([1.0, 0.25, 0.0625])[:, None, None]
        across = np.cross(phi[:, :, None], r)
        d = t[:, :, None] + s[..., None, None] * across  # (n, J, c, 3)
        by_joint = np.empty((*d.shape, 6))
        by_joint[..., :3] = 2.0 * slope[..., None, None, None] * across[..., None] * phi[:, :, None, None]
        by_joint[..., :3] -= s[..., None, None, None] * turned_r
        by_joint[..., 3:] = np.eye(3)
        size = np.sqrt((d**2).sum(-1))
        n, e = d / size[..., None], size / height - 1.0
        gap = np.maximum(0.0, touch - e)
        force = stiff * e + cubic * e**3 - hard * gap**2 - actuators[:, joined] * area
        stiffness = stiff + 3.0 * cubic * e**2 + 2.0 * hard * gap
        longer = (n[..., None, :] @ by_joint)[..., 0, :]  # (n, J, c, 6)
        blocks = longer.swapaxes(2, 3) @ ((stiffness / height - force / size)[..., None] * longer)
        blocks += ((force / size)[..., None, None] * (by_joint.swapaxes(3, 4) @ by_joint)).sum(2)
        c = (force[..., None] * np.cross(r, n)).sum(2)
        cp = (c * phi).sum(-1)[..., None, None]
        slope, curvature = slope[..., None, None], curvature[..., None, None]
        half = phi[..., :, None] * (2.0 * slope * c[..., None, :] + 2.0 * curvature * cp * phi[..., None, :])
        blocks[..., :3, :3] += half + half.swapaxes(2, 3) + 2.0 * slope * cp * np.eye(3)
        blocks[..., range(6), range(6)] += linear
        diagonal(hessian, len(r))[:] += blocks.swapaxes(0, 1)
        own = (force[..., None] * longer).sum(2) + linear * joints
        hessian *= unit[:, None] * unit
        return (gradient + own.reshape(len(joints), -1)) * unit, BlockHessian(hessian[:, None])

    return derivatives


def _weight_of_chain(chain: Chain, joints: Array, of: Array, of_half: Array) -> tuple[Array, Array]:
    """Derivatives (n, 6 J), (n, 6 J, 6 J) of the weight under joints (n, J, 6)."""
    phi, t, g = joints[..., :3], joints[..., 3:], chain.gravity
    half, half_mean = rotations(0.5 * phi, of_half)
    turn, mean = rotations(phi, of)
    frames = np.empty((len(joints), len(chain.height) + 1, 3, 3))
    frames[:, 0] = chain.base
    for e in range(len(chain.height)):
        frames[:, e + 1] = frames[:, e] @ (turn[:, e] @ chain.askew[e])
    before = frames[:, :-1]
    at_disc, middle = before @ turn, before @ half
    shift = (half @ t[..., None])[..., 0]
    plate = chain.plate_length[:, None] * frames[:, 1:, :, 2]
    ends = np.cumsum((before @ shift[..., None])[..., 0] + plate, axis=1)
    discs = ends - plate
    mass = np.cumsum((chain.mass + chain.plate_mass)[::-1])[::-1, None]
    arm = from_the_end(chain.mass[:, None] * discs + chain.plate_mass[:, None] * (ends - 0.5 * plate)) - mass * discs

    moved, pulls = np.zeros((2, *joints.shape, 3))
    turns = (before @ mean).swapaxes(2, 3)
    moved[:, :, :3] = 0.5 * mass[..., None] * (before @ -hat(shift) @ half_mean).swapaxes(2, 3)
    moved[:, :, :3] += np.cross(turns, arm[:, :, None])
    moved[:, :, 3:] = mass[..., None] * middle.swapaxes(2, 3)
    pulls[:, :, :3] = np.cross(g, turns)
    felt, hung = g @ before, (arm[:, :, None] @ at_disc)[:, :, 0]
    own = np.zeros((*joints.shape, 6))
    own[..., :3, :3] = 0.25 * mass[..., None] * turned_hessian(of_half[0], of_half[1], felt, t, 0.5 * phi)
    own[..., :3, :3] += turned_hessian(of[0], of[1], felt, hung, phi)
    # felt . (mean_i x turn_k) = - mean_i . (felt x turn_k)
    own[..., :3, 3:] = -0.5 * mass[..., None] * (half_mean.swapaxes(2, 3) @ hat(felt) @ half)
    own[..., 3:, :3] = own[..., :3, 3:].swapaxes(2, 3)
    return weight_terms(g, moved, pulls, own)
