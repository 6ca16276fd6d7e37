"""Numba kernels of the real arm: a chain of rigid discs, joined by single folds.

Joint e turns the next disc by exp(phi) and shifts it by t, given in the frame halfway between both discs. Bellow j
joins the points at r_j of both: it leads along d_j = t + s phi x r_j with s = sin(|phi| / 2) / (|phi| / 2), so that

    Pi = sum_e [ sum_j (h psi_j(|d_j| / h - 1) - p_j A_j (|d_j| - h)) + S (t_1² + t_2²) / 2
                 + B (phi_1² + phi_2²) / 2 + C phi_3² / 2 ] - weight

with the axial law psi'(e) = K e + c e³ and, where folds touch (e < e_c), - k_c (e_c - e)². Behind a section follows a
rigid plate that may sit askew. Unlike the simulator's rod, the arm gives way sideways and its folds touch at once.
"""

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.rod.gravity import series, turned_hessian
from softform_core.bodies.rod.kinematics import cross, rotation_and_mean


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


@numba.njit(cache=True)
def _law(chain, j, e):  # type: ignore[no-untyped-def]
    """psi(e), J/m, and its first two derivatives."""
    k, c, gap = chain.stiffness[j], chain.hardening[j], max(0.0, chain.contact[j] - e)
    hard = chain.contact_stiffness[j]
    energy = 0.5 * k * e**2 + 0.25 * c * e**4 + hard * gap**3 / 3.0
    return energy, k * e + c * e**3 - hard * gap**2, k + 3.0 * c * e**2 + 2.0 * hard * gap


@numba.njit(cache=True)
def _sine(phi):  # type: ignore[no-untyped-def]
    """Value of s and its first two derivatives by |phi|²."""
    value, slope, curvature = series(0.25 * (phi * phi).sum(), 1)
    return value, 0.25 * slope, 0.0625 * curvature


@numba.njit(cache=True)
def place_chain(chain, joints):  # type: ignore[no-untyped-def]
    """Frames before joints, at discs and at plates (3, J, 3, 3), and the places of discs and plates' ends (2, J, 3)."""
    count = joints.shape[0]
    frames, places = np.empty((3, count, 3, 3)), np.empty((2, count, 3))
    frame, place = chain.base.copy(), np.zeros(3)
    for e in range(count):
        half, _ = rotation_and_mean(0.5 * joints[e, :3])
        frames[0, e] = frame
        middle = frame @ half
        place = place + middle @ joints[e, 3:].copy()
        frame = middle @ half
        frames[1, e], places[0, e] = frame, place
        frame = frame @ chain.askew[e]
        place = place + chain.plate_length[e] * frame[:, 2]
        frames[2, e], places[1, e] = frame, place
    return frames, places


@numba.njit(cache=True)
def _energy(chain, pressures, joints):  # type: ignore[no-untyped-def]
    energy, count = 0.0, chain.area.shape[0] // (chain.section[-1] + 1)
    for e in range(joints.shape[0]):
        phi, t, h = joints[e, :3], joints[e, 3:], chain.height[e]
        s = _sine(phi)[0]
        for j in range(chain.section[e] * count, (chain.section[e] + 1) * count):
            d = t + s * cross(phi, np.array([chain.place[j, 0], chain.place[j, 1], 0.0]))
            length = np.sqrt((d * d).sum())
            if d[2] <= 0.0:
                return np.inf
            energy += h * _law(chain, j, length / h - 1.0)[0] - pressures[j] * chain.area[j] * (length - h)
        energy += 0.5 * chain.shear[e] * (t[0] ** 2 + t[1] ** 2)
        energy += 0.5 * (chain.bending[e] * (phi[0] ** 2 + phi[1] ** 2) + chain.torsion[e] * phi[2] ** 2)
    _, places = place_chain(chain, joints)
    for e in range(joints.shape[0]):
        energy -= chain.mass[e] * np.dot(chain.gravity, places[0, e])
        energy -= chain.plate_mass[e] * np.dot(chain.gravity, 0.5 * (places[0, e] + places[1, e]))
    return energy


@numba.njit(cache=True)
def _course(phi, t, r):  # type: ignore[no-untyped-def]
    """d_j (3,) and its derivative (3, 6) by phi and t."""
    s, slope, _ = _sine(phi)
    across = cross(phi, r)
    by_joint = np.zeros((3, 6))
    for i in range(3):
        unit = np.zeros(3)
        unit[i] = 1.0
        by_joint[:, i] = s * cross(unit, r) + 2.0 * slope * phi[i] * across
        by_joint[i, 3 + i] = 1.0
    return t + s * across, by_joint


@numba.njit(cache=True)
def _add_joint(chain, pressures, joints, e, gradient, hessian):  # type: ignore[no-untyped-def]
    """Add the elastic derivatives of joint e."""
    phi, t, h, at = joints[e, :3].copy(), joints[e, 3:].copy(), chain.height[e], 6 * e
    count = chain.area.shape[0] // (chain.section[-1] + 1)
    _, slope, curvature = _sine(phi)
    for j in range(chain.section[e] * count, (chain.section[e] + 1) * count):
        r = np.array([chain.place[j, 0], chain.place[j, 1], 0.0])
        d, by_joint = _course(phi, t, r)
        length = np.sqrt((d * d).sum())
        n = d / length
        _, force, stiffness = _law(chain, j, length / h - 1.0)
        force -= pressures[j] * chain.area[j]
        longer = n @ by_joint
        square = by_joint.T.copy() @ by_joint
        gradient[at : at + 6] += force * longer
        along = stiffness / h - force / length
        hessian[at : at + 6, at : at + 6] += along * np.outer(longer, longer) + force / length * square
        c = force * cross(r, n)
        cp = np.dot(c, phi)
        for i in range(3):
            hessian[at + i, at + i] += 2.0 * slope * cp
            for k in range(3):
                hessian[at + i, at + k] += 2.0 * slope * (phi[i] * c[k] + phi[k] * c[i])
                hessian[at + i, at + k] += 4.0 * curvature * phi[i] * phi[k] * cp
    for i in range(5):
        stiffness = chain.shear[e] if i > 2 else chain.torsion[e] if i == 2 else chain.bending[e]
        gradient[at + i] += stiffness * joints[e, i]
        hessian[at + i, at + i] += stiffness


@numba.njit(cache=True)
def _twists(frame, joint):  # type: ignore[no-untyped-def]
    """Shift and turn (6, 6) of the disc behind a joint as each of its six coordinates changes."""
    found, phi, t = np.zeros((6, 6)), joint[:3], joint[3:].copy()
    half, mean = rotation_and_mean(0.5 * phi)
    _, whole = rotation_and_mean(phi)
    turned = half @ t
    for i in range(3):
        found[i, :3] = frame @ (0.5 * cross(mean[:, i].copy(), turned))
        found[i, 3:] = frame @ whole[:, i].copy()
        found[3 + i, :3] = frame @ half[:, i].copy()
    return found


@numba.njit(cache=True)
def _add_weight(chain, joints, gradient, hessian):  # type: ignore[no-untyped-def]
    """Add the derivatives of the weight's potential; compare `bodies.rod.gravity.add_gravity`."""
    count, g = joints.shape[0], chain.gravity
    frames, places = place_chain(chain, joints)
    mass, moment = 0.0, np.zeros(3)  # of all that hangs on a disc; moment: sum of m x
    moved, pulls = np.zeros((count, 6, 3)), np.zeros((count, 6, 3))
    for e in range(count - 1, -1, -1):
        mass += chain.mass[e] + chain.plate_mass[e]
        moment = moment + chain.mass[e] * places[0, e] + chain.plate_mass[e] * 0.5 * (places[0, e] + places[1, e])
        arm = moment - mass * places[0, e]
        twists, at = _twists(frames[0, e], joints[e]), 6 * e
        for i in range(6):
            moved[e, i] = mass * twists[i, :3] + cross(twists[i, 3:], arm)
            pulls[e, i] = cross(g, twists[i, 3:])
            gradient[at + i] -= np.dot(g, moved[e, i])
        phi, t = joints[e, :3].copy(), joints[e, 3:].copy()
        felt, hung = frames[0, e].T.copy() @ g, frames[1, e].T.copy() @ arm
        tau, half = np.dot(phi, phi), 0.5 * phi
        own = 0.25 * mass * turned_hessian(series(0.25 * tau, 1), series(0.25 * tau, 2), felt, t, half)
        own += turned_hessian(series(tau, 1), series(tau, 2), felt, hung, phi)
        hessian[at : at + 3, at : at + 3] -= own
        turn, mean = rotation_and_mean(half)
        for i in range(3):
            for k in range(3):
                value = 0.5 * mass * np.dot(felt, cross(mean[:, i].copy(), turn[:, k].copy()))
                hessian[at + i, at + 3 + k] -= value
                hessian[at + 3 + k, at + i] -= value
    for f in range(count):
        for k in range(6):
            for e in range(f):
                for i in range(3):
                    value = np.dot(pulls[e, i], moved[f, k])
                    hessian[6 * e + i, 6 * f + k] -= value
                    hessian[6 * f + k, 6 * e + i] -= value


@numba.njit(cache=True, nogil=True)
def energies(chain, pressures, joints):  # type: ignore[no-untyped-def]
    """Pi (n,) J of many samples: pressures (n, k), joints (n, J, 6); infinite where discs would pass each other."""
    found = np.empty(pressures.shape[0])
    for n in range(found.shape[0]):
        found[n] = _energy(chain, pressures[n], joints[n])
    return found


@numba.njit(cache=True, nogil=True)
def derivatives(chain, pressures, joints):  # type: ignore[no-untyped-def]
    """Gradients (n, 6 J) and Hessians (n, 6 J, 6 J) of many samples."""
    samples, width = joints.shape[0], 6 * joints.shape[1]
    gradients, hessians = np.zeros((samples, width)), np.zeros((samples, width, width))
    for n in range(samples):
        for e in range(joints.shape[1]):
            _add_joint(chain, pressures[n], joints[n], e, gradients[n], hessians[n])
        _add_weight(chain, joints[n], gradients[n], hessians[n])
    return gradients, hessians


@numba.njit(cache=True, nogil=True)
def load_derivatives(chain, joints):  # type: ignore[no-untyped-def]
    """Derivative of the gradient by the pressures of many samples, (n, 6 J, k)."""
    samples, count = joints.shape[0], joints.shape[1]
    found = np.zeros((samples, 6 * count, chain.area.shape[0]))
    per_section = chain.area.shape[0] // (chain.section[-1] + 1)
    for n in range(samples):
        for e in range(count):
            for j in range(chain.section[e] * per_section, (chain.section[e] + 1) * per_section):
                r = np.array([chain.place[j, 0], chain.place[j, 1], 0.0])
                d, by_joint = _course(joints[n, e, :3].copy(), joints[n, e, 3:].copy(), r)
                found[n, 6 * e : 6 * e + 6, j] = -chain.area[j] * ((d / np.sqrt((d * d).sum())) @ by_joint)
    return found


@numba.njit(cache=True, nogil=True)
def disc_twists(chain, joints):  # type: ignore[no-untyped-def]
    """Shift and turn (n, J, 6, 6) of each disc by the six coordinates of the joint before it; joints (n, J, 6)."""
    found = np.empty((*joints.shape, 6))
    for n in range(joints.shape[0]):
        frames, _ = place_chain(chain, joints[n])
        for e in range(joints.shape[1]):
            found[n, e] = _twists(frames[0, e], joints[n, e]).T
    return found
