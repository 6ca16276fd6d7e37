"""Gradient and Hessian of rods by numpy, to measure what the compiled ones are worth.

The sums of `bodies.rod.energy`, `bodies.rod.gravity` and `bodies.tendon_rod.energy`, all samples and elements at once;
the fibres' sums are matrix products. Of the laws `neo_hookean` and `yeoh`, which the robots' rods have.
"""

from collections.abc import Callable

import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.bellows.weight import diagonal, weight
from softform_core.bodies.rod.equilibrium import RodProblem
from softform_core.bodies.tendon_rod.energy import TAKE_UP
from softform_core.bodies.tendon_rod.equilibrium import TendonRodProblem
from softform_core.simulation.hessian import BlockHessian

Assembly = Callable[[Array, Array], tuple[Array, BlockHessian]]
"""Gradient and Hessian of unknowns (n, m) and actuator values (n, k), as `EquilibriumProblem.derivatives`."""


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
