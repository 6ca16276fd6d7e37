"""Quasi-static equilibrium of a pneumatic rod: Newton's method on the total potential (numba).

    Pi(q) = sum_e l_e w(q_e) - sum_i p_i V_i(q) - sum_j m_j g . x_j(q)

w is the hyperelastic energy of the wall's fibres, of stretch 1 + epsilon - kappa_2 x_1 + kappa_1 x_2 each, with the
strain limiter and the torsion; V_i is the volume of chamber i, so that pressure is a bending moment p A x and a force
p A.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.rods.kinematics import cross, mean_tangent_derivative, place_rod, rotation_and_mean
from softform_core.rods.rod import Rod
from softform_core.simulation.materials import strain_energy

Array = NDArray[np.float64]

_MOST_ITERATIONS = 60
_SMALLEST_STEP = 1e-10  # rad an element, or strain
_TRUSTED_STEP = 1e-6
_LEAST_STRETCH = 0.05
_CHUNK = 256  # actuations a task of the threads


@dataclass(frozen=True)
class RodEquilibria:
    """Equilibria of n actuations.

    Attributes:
        strains: (n, E, 4), see `rods.rod`; NaN where none was found.
        tips: (n, 3) m, end of the last link in the robot's frame.
        iterations: (n,) of Newton's method; -1 where no equilibrium was found.
    """

    strains: Array
    tips: Array
    iterations: NDArray[np.int64]


@numba.njit(cache=True)
def elastic_terms(rod, pressures, e, q, gradient, hessian):  # type: ignore[no-untyped-def]
    """Energy of one element without gravity; fills its gradient (4,) and Hessian (4, 4) over the strains."""
    energy = 0.0
    gradient[:] = 0.0
    hessian[:] = 0.0
    scale, area_scale = rod.scale[e], rod.scale[e] ** 2
    for f in range(rod.fibre_area.shape[0]):
        x1, x2 = scale * rod.fibre_place[f, 0], scale * rod.fibre_place[f, 1]
        stretch = 1.0 + q[3] - q[1] * x1 + q[0] * x2
        if stretch < _LEAST_STRETCH:
            return np.inf
        w, dw, ddw = strain_energy(rod.law, rod.coefficients[e], stretch * stretch + 2.0 / stretch)
        area = area_scale * rod.fibre_area[f]
        slope = 2.0 * stretch - 2.0 / stretch**2
        stress = area * dw * slope
        stiffness = area * (ddw * slope * slope + dw * (2.0 + 4.0 / stretch**3))
        energy += area * w
        gradient[0] += stress * x2
        gradient[1] -= stress * x1
        gradient[3] += stress
        hessian[0, 0] += stiffness * x2 * x2
        hessian[0, 1] -= stiffness * x1 * x2
        hessian[0, 3] += stiffness * x2
        hessian[1, 1] += stiffness * x1 * x1
        hessian[1, 3] -= stiffness * x1
        hessian[3, 3] += stiffness
    chambers = rod.chamber_area.shape[0] // (rod.section[-1] + 1)
    for c in range(rod.section[e] * chambers, (rod.section[e] + 1) * chambers):
        x1, x2 = scale * rod.chamber_place[c, 0], scale * rod.chamber_place[c, 1]
        force = pressures[c] * area_scale * rod.chamber_area[c]
        energy -= force * (1.0 + q[3] - q[1] * x1 + q[0] * x2)
        gradient[0] -= force * x2
        gradient[1] += force * x1
        gradient[3] -= force
    energy += 0.5 * (rod.limiter[e] * q[3] ** 2 + rod.torsion[e] * q[2] ** 2)
    gradient[2] += rod.torsion[e] * q[2]
    gradient[3] += rod.limiter[e] * q[3]
    hessian[2, 2] += rod.torsion[e]
    hessian[3, 3] += rod.limiter[e]
    for i in range(4):
        for j in range(i):
            hessian[i, j] = hessian[j, i]
    return energy


@numba.njit(cache=True)
def total_energy(rod, pressures, strains):  # type: ignore[no-untyped-def]
    """Pi, J, of strains (E, 4); infinite if a fibre would be crushed."""
    gradient, hessian = np.empty(4), np.empty((4, 4))
    energy = 0.0
    for e in range(strains.shape[0]):
        energy += rod.length[e] * elastic_terms(rod, pressures, e, strains[e], gradient, hessian)
    if np.any(rod.gravity != 0.0):
        directors, ends, link_ends = place_rod(rod, strains)
        for e in range(strains.shape[0]):
            middle = 0.5 * (ends[e] + link_ends[e])
            energy -= rod.node_mass[e] * np.dot(rod.gravity, ends[e]) + rod.link_mass[e] * np.dot(rod.gravity, middle)
    return energy


@numba.njit(cache=True)
def gradient_and_hessian(rod, pressures, strains):  # type: ignore[no-untyped-def]
    """Derivatives of Pi over the free strains, element by element: (E d,) and (E d, E d).

    Of gravity's second derivatives, those within one element are taken as of a rigid turn about its end (their error is
    of second order in the element's length, and only slows the last Newton steps).
    """
    count, free = strains.shape[0], rod.strains
    d = free.shape[0]
    gradient, hessian = np.zeros(count * d), np.zeros((count * d, count * d))
    own_gradient, own_hessian = np.empty(4), np.empty((4, 4))
    for e in range(count):
        elastic_terms(rod, pressures, e, strains[e], own_gradient, own_hessian)
        for i in range(d):
            gradient[e * d + i] = rod.length[e] * own_gradient[free[i]]
            for j in range(d):
                hessian[e * d + i, e * d + j] = rod.length[e] * own_hessian[free[i], free[j]]
    if not np.any(rod.gravity != 0.0):
        return gradient, hessian
    directors, ends, link_ends = place_rod(rod, strains)
    beyond_mass, beyond_moment = 0.0, np.zeros(3)  # of all that hangs on an element's end; moment: sum of m x
    moved, pulls = np.zeros((count, d, 3)), np.zeros((count, d, 3))
    for e in range(count - 1, -1, -1):
        beyond_mass += rod.node_mass[e] + rod.link_mass[e]
        beyond_moment += rod.node_mass[e] * ends[e] + rod.link_mass[e] * 0.5 * (ends[e] + link_ends[e])
        arm = beyond_moment - beyond_mass * ends[e]
        length, phi = rod.length[e], strains[e, :3] * rod.length[e]
        _, mean = rotation_and_mean(phi)
        bent = mean_tangent_derivative(phi)
        for i in range(d):
            if free[i] == 3:
                moved[e, i] = beyond_mass * length * (directors[e] @ mean[:, 2].copy())
                continue
            turn = length * (directors[e] @ mean[:, free[i]].copy())
            pulls[e, i] = cross(rod.gravity, turn)
            shift = length**2 * (1.0 + strains[e, 3]) * (directors[e] @ bent[:, free[i]].copy())
            moved[e, i] = beyond_mass * shift + cross(turn, arm)
        for i in range(d):
            gradient[e * d + i] -= np.dot(rod.gravity, moved[e, i])
    for f in range(count):
        for j in range(d):
            u, v, w = moved[f, j]
            for e in range(f + 1):
                for i in range(d):
                    value = pulls[e, i, 0] * u + pulls[e, i, 1] * v + pulls[e, i, 2] * w
                    share = 1.0 if e < f else 0.5
                    hessian[e * d + i, f * d + j] -= share * value
                    hessian[f * d + j, e * d + i] -= share * value
    return gradient, hessian


@numba.njit(cache=True)
def _newton_step(rod, gradient, hessian):  # type: ignore[no-untyped-def]
    d = rod.strains.shape[0]
    if np.any(rod.gravity != 0.0):
        return np.linalg.solve(hessian, -gradient)
    step = np.empty_like(gradient)  # without gravity the elements do not feel each other
    for e in range(0, len(gradient), d):
        step[e : e + d] = np.linalg.solve(hessian[e : e + d, e : e + d].copy(), -gradient[e : e + d])
    return step


@numba.njit(cache=True)
def solve_strains(rod, pressures, start):  # type: ignore[no-untyped-def]
    """Strains (E, 4) of equilibrium and Newton iterations, -1 if there is none near `start`."""
    strains = start.copy()
    count, d = strains.shape[0], rod.strains.shape[0]
    energy = total_energy(rod, pressures, strains)
    for iteration in range(_MOST_ITERATIONS):
        gradient, hessian = gradient_and_hessian(rod, pressures, strains)
        step = _newton_step(rod, gradient, hessian)
        largest = 0.0
        for e in range(count):
            for i in range(d):
                unit = 1.0 if rod.strains[i] == 3 else rod.length[e]
                largest = max(largest, abs(step[e * d + i]) * unit)
        if largest <= _SMALLEST_STEP:
            return strains, iteration
        descent = np.dot(gradient, step)
        if not descent < 0.0:
            return strains, -1
        # The energy of so small a step drowns in rounding; Newton's method is in its last, quadratic steps.
        trusted = largest <= _TRUSTED_STEP
        size = 1.0
        while True:
            trial = strains.copy()
            for e in range(count):
                for i in range(d):
                    trial[e, rod.strains[i]] += size * step[e * d + i]
            trial_energy = total_energy(rod, pressures, trial)
            if trusted or trial_energy <= energy + 1e-4 * size * descent:
                break
            size *= 0.5
            if size < 1e-6:
                return strains, -1
        strains, energy = trial, trial_energy
    return strains, -1


@numba.njit(cache=True, nogil=True)
def _solve_all(rod, pressures, starts):  # type: ignore[no-untyped-def]
    count = pressures.shape[0]
    strains, tips = np.full(starts.shape, np.nan), np.full((count, 3), np.nan)
    iterations = np.full(count, -1)
    for n in range(count):
        found, iterations[n] = solve_strains(rod, pressures[n], starts[n])
        if iterations[n] >= 0:
            strains[n] = found
            tips[n] = place_rod(rod, found)[2][-1]
    return strains, tips, iterations


def solve_equilibria(
    rod: Rod, pressures: NDArray[np.float64], starts: Array | None = None, *, jobs: int = 1
) -> RodEquilibria:
    """Equilibria under many pressures.

    Args:
        rod: From `build_rod`.
        pressures: (n, k) Pa in the chambers.
        starts: (n, E, 4) strains to start from; the straight rod by default.
        jobs: Threads that share the work.

    Raises:
        SoftformError: If pressures are not finite or of another number than the rod's chambers.
    """
    pressures = np.ascontiguousarray(pressures, dtype=np.float64)
    if pressures.ndim != 2 or pressures.shape[1] != rod.chambers or not np.isfinite(pressures).all():
        raise SoftformError(
            f"Pressures of shape {pressures.shape} are no finite pressures of {rod.chambers} chambers.",
            "Give (n, k) pressures in Pa.",
        )
    starts = np.zeros((len(pressures), rod.elements, 4)) if starts is None else starts
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        parts = list(pool.map(lambda part: _solve_all(rod, pressures[part], starts[part]), _chunks(len(pressures))))
    if not parts:
        return RodEquilibria(starts, np.zeros((0, 3)), np.zeros(0, dtype=np.int64))
    return RodEquilibria(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _chunks(count: int) -> Iterator[slice]:
    return (slice(begin, min(begin + _CHUNK, count)) for begin in range(0, count, _CHUNK))
