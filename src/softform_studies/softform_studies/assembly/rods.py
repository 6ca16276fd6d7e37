"""Gradient and Hessian of rods by numpy, to measure what the compiled ones are worth.

The sums of `bodies.rod.energy`, `bodies.rod.gravity` and `bodies.tendon_rod.energy`, all samples and elements at once;
the fibres' sums are matrix products. Of the laws `neo_hookean` and `yeoh`, which the robots' rods have.
"""

from collections.abc import Callable
from math import factorial
from typing import Any

import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.rod.equilibrium import RodProblem
from softform_core.bodies.tendon_rod.energy import TAKE_UP
from softform_core.bodies.tendon_rod.equilibrium import TendonRodProblem
from softform_core.geometry.rigid import hat
from softform_core.simulation.hessian import BlockHessian

Assembly = Callable[[Array, Array], tuple[Array, BlockHessian]]
"""Gradient and Hessian of unknowns (n, m) and actuator values (n, k), as `EquilibriumProblem.derivatives`."""

_TERMS = 16
_TANGENT = np.array([0.0, 0.0, 1.0])


def _series_matrix() -> Array:
    """Coefficients (terms, 3, 3) over the powers of tau of `series`."""
    found = np.zeros((_TERMS, 3, 3))
    for first in range(3):
        for i in range(_TERMS):
            value = (-1.0) ** i / factorial(2 * i + first + 1)
            found[i, first, 0] = value
            if i > 0:
                found[i - 1, first, 1] = value * i
            if i > 1:
                found[i - 2, first, 2] = value * i * (i - 1)
    return found


_SERIES = _series_matrix()


def series(tau: Array) -> Array:
    """sin(t)/t, (1 - cos t)/t² and (t - sin t)/t³ with two derivatives by tau = t² each, (3, 3, …)."""
    powers = np.vander(tau.ravel(), _TERMS, increasing=True)
    return np.moveaxis((powers @ _SERIES.reshape(_TERMS, 9)).reshape(*tau.shape, 3, 3), (-2, -1), (0, 1))


def rotations(phi: Array, of: Array) -> tuple[Array, Array]:
    """exp(phi) and its mean over the element, (…, 3, 3) each; `of` is `series` of |phi|²."""
    once = hat(phi)
    twice, (s, a, b) = once @ once, of[:, 0, ..., None, None]
    return np.eye(3) + s * once + a * twice, np.eye(3) + a * once + b * twice


def turned_hessian(q: Array, r: Array, u: Array, w: Array, phi: Array) -> Array:
    """As `bodies.rod.gravity.turned_hessian`, (…, 3, 3); q and r (3, …)."""
    c = np.cross(w, u)
    up, wp, cp, uw, tau = ((one * other).sum(-1) for one, other in ((u, phi), (w, phi), (c, phi), (u, w), (phi, phi)))
    first = uw * (-r[0] - r[1] * tau) + q[1] * cp + r[1] * up * wp
    second = uw * (-2.0 * r[1] - r[2] * tau) + q[2] * cp + r[2] * up * wp
    mixed = 2.0 * q[1][..., None] * c + 2.0 * r[1][..., None] * (u * wp[..., None] + w * up[..., None])
    half = phi[..., :, None] * (mixed + 2.0 * second[..., None] * phi)[..., None, :]
    half += r[0][..., None, None] * u[..., :, None] * w[..., None, :]
    return half + half.swapaxes(-1, -2) + 2.0 * first[..., None, None] * np.eye(3)


def from_the_end(values: Array) -> Array:
    """Sums (n, E, …) of all that comes at an element or behind it."""
    return np.asarray(np.cumsum(values[:, ::-1], axis=1)[:, ::-1])


def weight_terms(gravity: Array, moved: Array, pulls: Array, own: Array) -> tuple[Array, Array]:
    """Gradient (n, E d) and Hessian of the weight from `moved` and `pulls` (n, E, d, 3) and `own` (n, E, d, d)."""
    samples, count, d = moved.shape[:3]
    pairs = pulls.reshape(samples, -1, 3) @ moved.reshape(samples, -1, 3).swapaxes(1, 2)
    before = np.repeat(np.repeat(np.triu(np.ones((count, count)), 1), d, axis=0), d, axis=1)
    pairs *= before
    hessian = -pairs - pairs.swapaxes(1, 2)
    diagonal(hessian, count)[:] -= own.swapaxes(0, 1)
    return -(moved @ gravity).reshape(samples, -1), hessian


def diagonal(hessian: Array, count: int) -> Array:
    """View (E, n, d, d) on the diagonal blocks of Hessians (n, E d, E d)."""
    blocks = hessian.reshape(len(hessian), count, hessian.shape[1] // count, count, -1)
    view: Array = np.einsum("neiej->enij", blocks)
    return view


def weight(rod: Any, strains: Array) -> tuple[Array, Array]:
    """Derivatives (n, E d), (n, E d, E d) of the weight of a rod under strains (n, E, 4)."""
    phi, length = strains[..., :3] * rod.length[:, None], rod.length[:, None]
    of = series((phi**2).sum(-1))
    turn, mean = rotations(phi, of)
    directors = np.empty((len(strains), rod.length.size + 1, 3, 3))
    directors[:, 0] = rod.base
    for e in range(rod.length.size):
        directors[:, e + 1] = directors[:, e] @ turn[:, e]
    before, behind = directors[:, :-1], directors[:, 1:]
    turned = before @ mean
    link = rod.link_length[:, None] * behind[..., 2]
    stretched = length * (1.0 + strains[..., 3:])
    link_ends = np.cumsum(stretched * turned[..., 2] + link, axis=1)
    ends = link_ends - link
    mass = np.cumsum((rod.node_mass + rod.link_mass)[::-1])[::-1, None]
    moment = from_the_end(rod.node_mass[:, None] * ends + rod.link_mass[:, None] * (link_ends - 0.5 * link))
    arm = moment - mass * ends

    once = np.cross(phi, _TANGENT)
    twice, (a, b), (da, db) = np.cross(phi, once), of[1:, 0, ..., None, None], 2.0 * of[1:, 1, ..., None]
    bent = (da * once + db * twice)[..., None] * phi[..., None, :]
    bent -= a * hat(_TANGENT) + b * (hat(once) + hat(phi) @ hat(_TANGENT))
    moved, pulls = np.zeros((2, *strains.shape, 3))
    turns = length[..., None] * turned.swapaxes(-1, -2)  # (n, E, 3, 3), each row one turn
    moved[:, :, :3] = (mass * length * stretched)[..., None] * (before @ bent).swapaxes(-1, -2)
    moved[:, :, :3] += np.cross(turns, arm[:, :, None])
    moved[:, :, 3] = mass * length * turned[..., 2]
    pulls[:, :, :3] = np.cross(rod.gravity, turns)
    felt, hung = rod.gravity @ before, (arm[:, :, None] @ behind)[:, :, 0]
    own = np.zeros((*strains.shape, 4))
    squared = (length**2)[..., None]
    own[..., :3, :3] = squared * (
        (mass * stretched)[..., None] * turned_hessian(of[1], of[2], felt, np.broadcast_to(_TANGENT, felt.shape), phi)
        + turned_hessian(of[0], of[1], felt, hung, phi)
    )
    own[..., :3, 3] = own[..., 3, :3] = mass * length**2 * (felt[:, :, None] @ bent)[:, :, 0]
    free = rod.strains
    return weight_terms(rod.gravity, moved[:, :, free], pulls[:, :, free], own[:, :, free][..., free])


def yeoh_coefficients(law: int, coefficients: Array) -> Array:
    """c1, c2, c3 (3, E) of the laws 0, `neo_hookean`, and 1, `yeoh`."""
    return coefficients.T if law == 1 else np.stack([0.5 * coefficients[:, 0], *np.zeros((2, len(coefficients)))])


def rod_assembly(problem: RodProblem) -> Assembly:
    """Gradient and Hessian of a rod under pressures by numpy."""
    rod, free, samples_first = problem.rod, problem.rod.strains, (1, 0, 2)
    scale, elements, d = rod.scale[:, None], rod.elements, len(rod.strains)
    x, y = (scale * rod.fibre_place[:, axis] for axis in (0, 1))
    arms = np.stack([y, -x, np.zeros_like(x), np.ones_like(x)], axis=-1)[..., free]  # (E, F, d)
    products = (arms[..., :, None] * arms[..., None, :]).reshape(elements, -1, d * d)
    by_strain = np.ascontiguousarray(arms.swapaxes(1, 2))
    area = (rod.length[:, None] * scale**2 * rod.fibre_area)[:, None]
    c1, c2, c3 = yeoh_coefficients(rod.law, rod.coefficients)[..., None, None]
    none = np.zeros(elements)
    linear = rod.length[:, None] * np.stack([none, none, rod.torsion, rod.limiter], axis=1)[:, free]  # (E, d)
    unit = problem._unit.reshape(elements, d)
    units = unit[..., :, None] * unit[..., None, :]
    pushes = problem.load_derivative(problem.rest[None], problem.unloaded[None])[0] if rod.chambers else None

    def derivatives(unknowns: Array, actuators: Array) -> tuple[Array, BlockHessian]:
        q = unknowns.reshape(len(unknowns), elements, d) * unit
        stretch = 1.0 + q.transpose(samples_first) @ by_strain  # (E, n, F)
        inverse = 1.0 / stretch
        j = stretch**2 + 2.0 * inverse - 3.0
        rise = 2.0 * (stretch - inverse**2)
        slope = area * (c1 + j * (2.0 * c2 + 3.0 * c3 * j))
        stiffness = area * (2.0 * c2 + 6.0 * c3 * j) * rise**2 + slope * (2.0 + 4.0 * inverse**3)
        gradient = ((slope * rise) @ arms).transpose(samples_first) + linear * q
        blocks = (stiffness @ products).transpose(samples_first).reshape(len(q), elements, d, d)
        blocks[:, :, range(d), range(d)] += linear
        blocks *= units
        gradient = (gradient * unit).reshape(len(q), -1)
        if pushes is not None:
            gradient += actuators @ pushes.T
        if not rod.gravity.any():
            return gradient, BlockHessian(blocks)
        pulled, hessian = weight(rod, problem.strains(unknowns))
        hessian *= problem._unit[:, None] * problem._unit
        diagonal(hessian, elements)[:] += blocks.swapaxes(0, 1)
        return gradient + pulled * problem._unit, BlockHessian(hessian[:, None])

    return derivatives


def tendon_rod_assembly(problem: TendonRodProblem) -> Assembly:
    """Gradient and Hessian of a rod under the pulls of tendons by numpy."""
    of_rod, rod, tendons = rod_assembly(problem), problem.rod, problem.tendons
    elements, d = rod.elements, len(rod.strains)
    x, y = np.moveaxis(tendons.place, -1, 0)
    by_strains = np.zeros((*x.shape, 3, 4))
    by_strains[..., 0, 2], by_strains[..., 1, 2], by_strains[..., 2, 0], by_strains[..., 2, 1] = -y, x, y, -x
    by_strains[..., 2, 3] = 1.0
    by_strains = by_strains[..., rod.strains]
    straight = np.concatenate([tendons.slope, np.ones((*x.shape, 1))], axis=-1)
    square = by_strains.swapaxes(-1, -2) @ by_strains
    length, unit = tendons.inside * rod.length, problem._unit.reshape(elements, d)
    units = unit[..., :, None] * unit[..., None, :]

    def derivatives(unknowns: Array, actuators: Array) -> tuple[Array, BlockHessian]:
        gradient, hessian = of_rod(unknowns, actuators)
        q = (unknowns.reshape(len(unknowns), 1, elements, d) * unit)[..., None]
        v = straight + (by_strains @ q)[..., 0]  # (n, k, E, 3)
        size = np.sqrt((v**2).sum(-1))
        along = ((v / size[..., None])[..., None, :] @ by_strains)[..., 0, :]
        stretch = np.maximum((length * size).sum(-1) - tendons.rest_length + actuators, 0.0)
        past = stretch >= TAKE_UP
        tension = tendons.stiffness * np.where(past, stretch - 0.5 * TAKE_UP, stretch**2 / (2.0 * TAKE_UP))
        stiffness = tendons.stiffness * np.where(past, 1.0, stretch / TAKE_UP)
        longer = (length[..., None] * along * unit).reshape(*stretch.shape, -1)
        dense = hessian.blocks if hessian.blocks.shape[1] == 1 else _dense(hessian.blocks)
        dense[:, 0] += longer.swapaxes(1, 2) @ (stiffness[..., None] * longer)
        turn = square - along[..., :, None] * along[..., None, :]
        turn = ((tension[..., None] * length / size)[..., None, None] * turn).sum(1) * units
        diagonal(dense[:, 0], elements)[:] += turn.swapaxes(0, 1)
        return gradient + (tension[:, None] @ longer)[:, 0], BlockHessian(dense)

    return derivatives


def _dense(blocks: Array) -> Array:
    samples, elements, d, _ = blocks.shape
    dense = np.zeros((samples, 1, elements * d, elements * d))
    diagonal(dense[:, 0], elements)[:] = blocks.swapaxes(0, 1)
    return dense
