"""Equilibrium of the membrane under chamber pressures: damped Newton on the total potential.

    Pi(x) = sum of W(I1) t dA  +  1/2 k |x - X|^2 along the walls  -  sum p_i V_i(x)  -  weight . (x - X)

A pressure load has a potential because each chamber's volume has one (see `simulation.energy`), so the Hessian is
symmetric and a line search on Pi guards every step.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csc_matrix, diags
from scipy.sparse.linalg import SuperLU, splu

from softform_core.errors import SoftformError
from softform_core.simulation.energy import assemble, potential_energy
from softform_core.simulation.materials import shear_modulus
from softform_core.simulation.membrane import Membrane

Array = NDArray[np.float64]

RESIDUAL_TOLERANCE = 1e-8  # of the pressure and weight forces
ROUNDING = 1e-14  # of Young's modulus times thickness: what 64-bit sums over the mesh resolve
MAX_ITERATIONS = 80
MAX_STEP = 0.25  # largest move of a vertex in one Newton step, of the membrane's side
RUNAWAY = 3.0  # a vertex further away than this many sides has run away
SMALLEST_LOAD_STEP = 1.0 / 128.0


class NoEquilibriumError(SoftformError):
    """The membrane finds no equilibrium under these pressures."""


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """A membrane at rest under pressure.

    Attributes:
        vertices: (V, 3) m.
        pressures: (k,) Pa.
        energy: Total potential, J.
        residual: Norm of the forces out of balance, N.
        iterations: Newton iterations spent, load steps included.
        converged: True; a solve that does not converge raises.
        factor: Last factor of the Hessian (None where no step was needed).
    """

    vertices: Array
    pressures: Array
    energy: float
    residual: float
    iterations: int
    converged: bool = True
    factor: SuperLU | None = field(default=None, repr=False)


def total_potential(membrane: Membrane, vertices: Array, pressures_pa: ArrayLike) -> float:
    """Total potential Pi at `vertices` (V, 3) m, J; infinite where an element has collapsed."""
    return _potential(membrane, vertices, membrane.pressure_of_element(pressures_pa))


def gradient_and_hessian(membrane: Membrane, vertices: Array, pressures_pa: ArrayLike) -> tuple[Array, csc_matrix]:
    """Gradient (m,) N and Hessian (m, m) N/m of Pi over the free degrees of freedom `membrane.pattern.order`."""
    return _derivatives(membrane, vertices, membrane.pressure_of_element(pressures_pa))


def potential_gradient(membrane: Membrane, vertices: Array, pressures_pa: ArrayLike) -> Array:
    """Gradient (m,) N of Pi over the free degrees of freedom `membrane.pattern.order`."""
    gradient, _ = _gradient_and_values(membrane, vertices, membrane.pressure_of_element(pressures_pa), np.empty(0))
    return gradient


def solve_equilibrium(membrane: Membrane, pressures_pa: ArrayLike, start: Array | None = None) -> Equilibrium:
    """Equilibrium under `pressures_pa`, from `start` or from a dome of a taut sheet.

    Where a direct solve fails, the pressures are raised in steps from the last equilibrium found.

    Args:
        membrane: From `build_membrane`.
        pressures_pa: (k,) Pa gauge.
        start: (V, 3) m to start from (an equilibrium nearby makes it faster); fixed vertices stay where it puts them.

    Raises:
        SoftformError: If the pressures are not (k,) finite numbers, or `start` does not fit the mesh.
        NoEquilibriumError: If the membrane runs away or no solution is found.
    """
    pressure = membrane.pressure_of_element(pressures_pa)
    pressures = np.array(pressures_pa, dtype=np.float64)
    if start is None and not pressure.any() and not membrane.weight.any():
        return Equilibrium(membrane.rest_vertices.copy(), pressures, 0.0, 0.0, 0)
    if start is not None and np.shape(start) != membrane.rest_vertices.shape:
        raise SoftformError(
            f"The start has shape {np.shape(start)}, the membrane {membrane.rest_vertices.shape}.",
            "Start from vertices of the same membrane.",
        )
    first = dome(membrane, pressure) if start is None else np.array(start, dtype=np.float64)
    try:
        return _newton(membrane, first, pressure, pressures, 0)
    except NoEquilibriumError:
        return _raise_load(membrane, pressure, pressures)


def _raise_load(membrane: Membrane, pressure: Array, pressures: Array) -> Equilibrium:
    """Continuation: pressures raised in steps from a small load, halved where Newton fails."""
    reached, step, spent = 0.0, 0.25, 0
    vertices: Array | None = None
    while True:
        load = min(1.0, reached + step)
        start = dome(membrane, load * pressure) if vertices is None else vertices
        try:
            found = _newton(membrane, start, load * pressure, load * pressures, spent)
        except NoEquilibriumError as error:
            step *= 0.5
            if step < SMALLEST_LOAD_STEP:
                raise NoEquilibriumError(
                    f"The membrane has no equilibrium at pressures {np.round(pressures, 1).tolist()} Pa: it runs away "
                    f"beyond {100.0 * reached:.0f} % of them.",
                    "Lower the pressures, or give the material a stiffening law (yeoh, gent).",
                ) from error
            continue
        if load >= 1.0:
            return found
        reached, vertices, spent, step = load, found.vertices, found.iterations, 2.0 * step


def _newton(membrane: Membrane, start: Array, pressure: Array, pressures: Array, spent: int) -> Equilibrium:
    """Damped Newton from `start`; `spent` iterations are counted on top."""
    order = membrane.pattern.order
    vertices = np.ascontiguousarray(start)
    stiffness = 3.0 * shear_modulus(membrane.material) * float(membrane.thickness.mean())
    tolerance = max(RESIDUAL_TOLERANCE * _load_size(membrane, pressure), ROUNDING * stiffness * membrane.extent)
    energy = _potential(membrane, vertices, pressure)
    if not np.isfinite(energy):
        raise NoEquilibriumError("The start lets elements collapse.", "Start from the rest shape or an equilibrium.")
    factor: SuperLU | None = None
    for iteration in range(MAX_ITERATIONS):
        gradient, hessian = _derivatives(membrane, vertices, pressure)
        residual = float(np.linalg.norm(gradient))
        if residual <= tolerance:
            if factor is not None and not _is_minimum(factor):
                raise NoEquilibriumError("Newton ended in an unstable balance.", "Lower the pressures.")
            return Equilibrium(vertices, pressures, energy, residual, spent + iteration, True, factor)
        factor, step = _descent(hessian, gradient)
        slope = float(gradient @ step)
        move = np.zeros_like(vertices)
        move.reshape(-1)[order] = step
        largest = float(np.abs(move).max())
        scale = min(1.0, MAX_STEP * membrane.extent / largest)
        # A step whose gain is below the rounding of the energy is judged by its residual alone.
        if -slope < max(1e-12 * abs(energy), ROUNDING * stiffness * membrane.extent**2):
            vertices = vertices + scale * move
            energy = _potential(membrane, vertices, pressure)
            continue
        while True:
            trial = vertices + scale * move
            trial_energy = _potential(membrane, trial, pressure)
            if trial_energy <= energy + 1e-4 * scale * slope:
                break
            scale *= 0.5
            if scale < 1e-10:
                raise NoEquilibriumError("The line search finds no descent.", "Start nearer to the equilibrium.")
        vertices, energy = trial, trial_energy
        if float(np.abs(vertices - membrane.rest_vertices).max()) > RUNAWAY * membrane.extent:
            raise NoEquilibriumError("The membrane runs away.", "Lower the pressures.")
    raise NoEquilibriumError(f"Newton does not converge in {MAX_ITERATIONS} iterations.", "Lower the pressures.")


def factorised(hessian: csc_matrix) -> SuperLU:
    """Factor L D L^T of a symmetric matrix over the degrees of freedom `membrane.pattern.order`.

    Raises:
        RuntimeError: If the matrix is exactly singular.
    """
    return splu(hessian, permc_spec="NATURAL", diag_pivot_thresh=0.0, options={"SymmetricMode": True})


def _descent(hessian: csc_matrix, gradient: Array) -> tuple[SuperLU, Array]:
    """Newton step, with the Hessian shifted until the step goes down."""
    shift = 0.0
    while True:
        shifted = hessian if shift == 0.0 else csc_matrix(hessian + diags(np.full(gradient.size, shift)))
        try:
            factor = factorised(shifted)
            step = -factor.solve(gradient)
            if np.isfinite(step).all() and gradient @ step < 0.0:
                return factor, step
        except RuntimeError:
            pass  # exactly singular: shift as well
        shift = max(10.0 * shift, 1e-3 * float(np.abs(hessian.diagonal()).mean()))
        if not np.isfinite(shift):
            raise NoEquilibriumError("The Hessian is not finite.", "Lower the pressures.")


def _is_minimum(factor: SuperLU) -> bool:
    """Whether the factored Hessian is positive definite.

    Without pivoting, SuperLU's factors of a symmetric matrix are L D L^T, and the signs of D are its inertia.
    """
    return bool((factor.U.diagonal() > 0.0).all())


def _derivatives(membrane: Membrane, vertices: Array, pressure: Array) -> tuple[Array, csc_matrix]:
    gradient, values = _gradient_and_values(membrane, vertices, pressure, membrane.pattern.constant.copy())
    return gradient, membrane.pattern.matrix(values)


def _gradient_and_values(membrane: Membrane, vertices: Array, pressure: Array, values: Array) -> tuple[Array, Array]:
    """Gradient of the free degrees of freedom, and the Hessian's `values` with those of the elements added."""
    gradient = membrane.springs @ (vertices - membrane.rest_vertices) - membrane.weight
    assemble(
        vertices, membrane.elements, membrane.shapes, membrane.gradients, membrane.areas, membrane.thickness, pressure,
        membrane.law, membrane.coefficients, membrane.pattern.slots, gradient, values,
    )  # fmt: skip
    return gradient.ravel()[membrane.pattern.order], values


def _potential(membrane: Membrane, vertices: Array, pressure: Array) -> float:
    displacement = vertices - membrane.rest_vertices
    tethers = 0.5 * float(np.sum(displacement * (membrane.springs @ displacement)))
    elements = potential_energy(
        vertices, membrane.elements, membrane.shapes, membrane.gradients, membrane.areas, membrane.thickness, pressure,
        membrane.law, membrane.coefficients,
    )  # fmt: skip
    return float(elements) + tethers - float(np.sum(membrane.weight * displacement))


def _load_size(membrane: Membrane, pressure: Array) -> float:
    """Norm of the nodal forces of pressure and weight on the flat sheet, N."""
    return float(np.linalg.norm(_flat_load(membrane, pressure))) + float(np.linalg.norm(membrane.weight))


def _flat_load(membrane: Membrane, pressure: Array) -> Array:
    force = np.zeros(len(membrane.rest_vertices))
    np.add.at(force, membrane.elements, np.einsum("eq,nq,e->en", membrane.areas, membrane.shapes, pressure))
    return force


def dome(membrane: Membrane, pressure: Array) -> Array:
    """A smooth start off the flat shape, whose out-of-plane stiffness is nil: a taut sheet under `pressure` (E,) Pa.

    Its height solves -T laplace(z) + k z = load; the tension T is that of Hencky's circular membrane of a chamber's
    area under the mean load, weighted by the load itself so that idle chambers do not slacken the sheet.
    """
    load = _flat_load(membrane, pressure) + membrane.weight[:, 2]
    if not load.any():  # nothing but a weight within the plane: the sheet stays flat
        return membrane.rest_vertices.copy()
    free = np.flatnonzero(~membrane.fixed)
    area = float(membrane.areas.sum())
    radius = np.sqrt(area / membrane.chambers / np.pi)
    density = np.abs(load) / np.maximum(_flat_load(membrane, np.ones(len(pressure))), 1e-300)
    mean = float((density**2).sum() / density.sum())
    stiffness = 3.0 * shear_modulus(membrane.material) * float(membrane.thickness.mean())
    rise = 0.595 * radius * (mean * radius / stiffness) ** (1.0 / 3.0)
    tension = mean * radius**2 / (4.0 * rise)
    system = tension * membrane.laplacian + membrane.springs
    height = np.zeros(len(load))
    height[free] = splu(csc_matrix(system[free][:, free])).solve(load[free])
    start = membrane.rest_vertices.copy()
    start[:, 2] = height
    return start
