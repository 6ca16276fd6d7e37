"""Warp kernel of rods: `simulation.newton` on the potential of `bodies.rod.energy` with the weight of `bodies.weight`.

One thread solves one rod; rods differ in their loads. Formulas and symbols are those of these modules. The weight joins
elements e before f by H_ef = P_e M_f^T, where the rows of P_e are the turns of e over gravity and those of M_f the mass
that f moves: L D L^T of such a Hessian takes one pass over the elements, with a sum S (3, 3) of those before.
"""

import warp as wp

from softform_core.simulation.newton import ARMIJO, MAX_ITERATIONS, RELATIVE_ROUNDING, SMALLEST_SCALE
from softform_core.simulation.warp_materials import strain_energy, strain_slopes

wp.set_module_options({"enable_backward": False, "max_unroll": 1})

# Literals in kernels are of single precision.
_ZERO, _ONE, _TWO = wp.constant(wp.float64(0.0)), wp.constant(wp.float64(1.0)), wp.constant(wp.float64(2.0))
_HALF, _THREE = wp.constant(wp.float64(0.5)), wp.constant(wp.float64(3.0))
_TANGENT = wp.constant(wp.vec3d(0.0, 0.0, 1.0))
_MOST = wp.constant(MAX_ITERATIONS)
_ARMIJO, _SMALLEST = wp.constant(wp.float64(ARMIJO)), wp.constant(wp.float64(SMALLEST_SCALE))
_ROUNDING = wp.constant(wp.float64(RELATIVE_ROUNDING))

_mat43d = wp.types.matrix(shape=(4, 3), dtype=wp.float64)

ROOM = (wp.vec4d, wp.vec4d, wp.vec4d, wp.vec4d, wp.mat33d, wp.mat44d, _mat43d, _mat43d)
"""Types of the arrays (n, E) that `solve` works on; the first are the bends."""


@wp.struct
class Elements:
    """What all rods share: E elements of four bends each, F fibres."""

    law: int
    coefficients: wp.array[wp.vec3d]  # (E,)
    weights: wp.array[wp.float64]  # (E,)
    unit: wp.array[wp.vec4d]  # (E,) strains of unit bends; nil of those that are not free
    linear: wp.array[wp.vec4d]  # (E,) stiffness, likewise
    free: wp.vec4d  # 1 of free bends
    arms: wp.array[wp.vec4d]  # (F,) derivative of the stretch by the strains
    areas: wp.array[wp.float64]  # (F,)
    least_stretch: wp.float64
    moment: wp.array[wp.float64]  # (E,) kg m, as `Weight`
    link_moment: wp.array[wp.float64]  # (E,)
    base: wp.mat33d
    gravity: wp.vec3d
    series: wp.array[wp.mat33d]  # (terms,) of `rotations.series`
    tolerance: wp.float64
    rounding: wp.float64
    largest_step: wp.float64
    runaway: wp.float64


@wp.struct
class Turn:
    """A rotation by phi, as `rotations.Turns`."""

    phi: wp.vec3d
    series: wp.mat33d
    once: wp.mat33d
    twice: wp.mat33d
    turn: wp.mat33d
    mean: wp.mat33d


@wp.func
def _hat(v: wp.vec3d) -> wp.mat33d:
    return wp.mat33d(_ZERO, -v[2], v[1], v[2], _ZERO, -v[0], -v[1], v[0], _ZERO)


@wp.func
def _column(m: wp.mat33d, i: int) -> wp.vec3d:
    return wp.vec3d(m[0, i], m[1, i], m[2, i])


@wp.func
def _turn(rod: Elements, bend: wp.vec4d) -> Turn:
    by = Turn()
    by.phi = wp.vec3d(bend[0], bend[1], bend[2])
    tau = wp.dot(by.phi, by.phi)
    values = wp.mat33d()
    for back in range(rod.series.shape[0]):
        values = values * tau + rod.series[rod.series.shape[0] - 1 - back]
    one = wp.identity(n=3, dtype=wp.float64)
    by.series = values
    by.once = _hat(by.phi)
    by.twice = by.once * by.once
    by.turn = one + values[0, 0] * by.once + values[1, 0] * by.twice
    by.mean = one + values[1, 0] * by.once + values[2, 0] * by.twice
    return by


@wp.func
def _mean_tangent_derivative(by: Turn) -> wp.mat33d:
    """Of V(phi) d3 over phi."""
    changed = _TWO * (by.series[1, 1] * _column(by.once, 2) + by.series[2, 1] * _column(by.twice, 2))
    along = _hat(_TANGENT)
    second = _hat(wp.cross(by.phi, _TANGENT)) + by.once * along
    return wp.outer(changed, by.phi) - by.series[1, 0] * along - by.series[2, 0] * second


@wp.func
def _turned_hessian(by: Turn, k: int, u: wp.vec3d, w: wp.vec3d) -> wp.mat33d:
    """Second derivatives over phi of u . X w, where X is exp(phi) for k = 0 and V(phi) for 1."""
    phi = by.phi
    q, r = by.series[k], by.series[k + 1]
    c = wp.cross(w, u)
    u_phi, w_phi, c_phi, uw, tau = wp.dot(u, phi), wp.dot(w, phi), wp.dot(c, phi), wp.dot(u, w), wp.dot(phi, phi)
    mixed_up = u_phi * w_phi - tau * uw
    once = q[1] * c_phi + r[1] * mixed_up - r[0] * uw
    twice = q[2] * c_phi + r[2] * mixed_up - _TWO * r[1] * uw
    mixed = q[1] * c + r[1] * (u_phi * w + w_phi * u) + twice * phi
    half = wp.outer(phi, _TWO * mixed) + r[0] * wp.outer(u, w)
    return half + wp.transpose(half) + _TWO * once * wp.identity(n=3, dtype=wp.float64)


@wp.func
def _energy(rod: Elements, load: wp.array[wp.vec4d], bends: wp.array[wp.vec4d]) -> wp.float64:
    """Pi less what does not change, J; infinite where a fibre would be crushed or an element has run away."""
    total = wp.float64(0.0)
    before = rod.base
    for e in range(load.shape[0]):
        bend = bends[e]
        if wp.max(wp.abs(bend)) > rod.runaway:
            return wp.float64(wp.inf)
        strains = wp.cw_mul(rod.unit[e], bend)
        density = wp.float64(0.0)
        for f in range(rod.areas.shape[0]):
            stretch = _ONE + wp.dot(strains, rod.arms[f])
            if stretch < rod.least_stretch:
                return wp.float64(wp.inf)
            j = stretch * stretch + _TWO / stretch - _THREE
            density += rod.areas[f] * strain_energy(rod.law, rod.coefficients[e], j)
        by = _turn(rod, bend)
        hung = rod.moment[e] * (_ONE + bend[3]) * (before * (by.mean * _TANGENT))
        before = before * by.turn
        hung += rod.link_moment[e] * (before * _TANGENT)
        total += rod.weights[e] * density - wp.dot(rod.gravity, hung)
        total += wp.dot(bend, _HALF * wp.cw_mul(rod.linear[e], bend) + load[e])
    return total


@wp.func
def _wall(rod: Elements, e: int, bend: wp.vec4d) -> tuple[wp.vec4d, wp.mat44d]:
    """Gradient and Hessian of the wall of element e."""
    strains = wp.cw_mul(rod.unit[e], bend)
    gradient = wp.vec4d()
    block = wp.mat44d()
    for f in range(rod.areas.shape[0]):
        arm = rod.arms[f]
        stretch = _ONE + wp.dot(strains, arm)
        inverse = _ONE / stretch
        square = inverse * inverse
        slope, curvature = strain_slopes(rod.law, rod.coefficients[e], stretch * stretch + _TWO * inverse - _THREE)
        rise = stretch - square
        stiffness = _TWO * curvature * rise * rise + slope * (_ONE + _TWO * inverse * square)
        gradient += rod.areas[f] * slope * rise * arm
        block += rod.areas[f] * stiffness * wp.outer(arm, arm)
    unit = wp.diag(rod.unit[e])
    gradient = _TWO * rod.weights[e] * (unit * gradient) + wp.cw_mul(rod.linear[e], bend)
    return gradient, _TWO * rod.weights[e] * (unit * block * unit) + wp.diag(rod.linear[e])


@wp.func
def _assemble(
    rod: Elements,
    load: wp.array[wp.vec4d],
    bends: wp.array[wp.vec4d],
    directors: wp.array[wp.mat33d],
    gradient: wp.array[wp.vec4d],
    blocks: wp.array[wp.mat44d],
    pulls: wp.array[_mat43d],
    moved: wp.array[_mat43d],
) -> wp.float64:
    """Gradient, diagonal blocks of the Hessian, P and M of a rod; returns the norm of its gradient."""
    count = load.shape[0]
    before = rod.base
    for e in range(count):
        directors[e] = before
        before = before * _turn(rod, bends[e]).turn
    arm = wp.vec3d()  # of all beyond about the element's end
    square = wp.float64(0.0)
    for back in range(count):
        e = count - 1 - back
        by, here = _turn(rod, bends[e]), directors[e]
        behind, turned = here * by.turn, here * by.mean
        arm += rod.link_moment[e] * (behind * _TANGENT)
        stretched = rod.moment[e] * (_ONE + bends[e][3])
        bent = _mean_tangent_derivative(by)
        shifted = here * bent
        felt = wp.transpose(here) * rod.gravity
        own = _turned_hessian(by, 0, felt, wp.transpose(behind) * arm)
        own += _turned_hessian(by, 1, felt, stretched * _TANGENT)
        along = rod.moment[e] * (wp.transpose(bent) * felt)
        slope, block = _wall(rod, e, bends[e])
        m, p = _mat43d(), _mat43d()
        for i in range(3):
            turn = rod.free[i] * _column(turned, i)
            pull = wp.cross(turn, rod.gravity)
            mass = wp.cross(turn, arm) + stretched * rod.free[i] * _column(shifted, i)
            for k in range(3):
                p[i, k] = pull[k]
                m[i, k] = mass[k]
                block[i, k] = block[i, k] - own[i, k]
            block[i, 3] = block[i, 3] - along[i]
            block[3, i] = block[3, i] - along[i]
            m[3, i] = rod.free[3] * rod.moment[e] * turned[i, 2]
        for i in range(4):
            for k in range(4):
                block[i, k] = block[i, k] * rod.free[i] * rod.free[k]
            block[i, i] = block[i, i] + _ONE - rod.free[i]
        slope += load[e] - m * rod.gravity
        square += wp.dot(slope, slope)
        gradient[e] = slope
        blocks[e] = block
        pulls[e] = p
        moved[e] = m
        arm += stretched * (turned * _TANGENT)
    return wp.sqrt(square)


@wp.func
def _is_positive(block: wp.mat44d) -> bool:
    """Whether it is positive definite."""
    left = block + wp.mat44d()
    for k in range(4):
        if not left[k, k] > _ZERO:
            return False
        for i in range(k + 1, 4):
            factor = left[i, k] / left[k, k]
            for j in range(k + 1, 4):
                left[i, j] = left[i, j] - factor * left[k, j]
    return True


@wp.func
def _newton_step(
    gradient: wp.array[wp.vec4d],
    blocks: wp.array[wp.mat44d],
    pulls: wp.array[_mat43d],
    moved: wp.array[_mat43d],
    step: wp.array[wp.vec4d],
) -> bool:
    """Solve for the step, which overwrites blocks and pulls; returns whether the Hessian is positive definite."""
    count = step.shape[0]
    is_minimum = wp.bool(True)
    before, carried = wp.mat33d(), wp.vec3d()
    for e in range(count):
        m = moved[e]
        p = pulls[e] - m * before
        block = blocks[e] - m * before * wp.transpose(m)
        is_minimum = is_minimum and _is_positive(block)
        inverse = wp.inverse(block)
        w, right = inverse * p, -gradient[e] - m * carried
        carried += wp.transpose(w) * right
        before += wp.transpose(p) * w
        blocks[e] = inverse
        pulls[e] = w
        step[e] = inverse * right
    beyond = wp.vec3d()
    for back in range(count):
        e = count - 1 - back
        step[e] = step[e] - pulls[e] * beyond
        beyond += wp.transpose(moved[e]) * step[e]
    return is_minimum


@wp.func
def _line_search(
    rod: Elements,
    load: wp.array[wp.vec4d],
    energy: wp.float64,
    gradient: wp.array[wp.vec4d],
    step: wp.array[wp.vec4d],
    bends: wp.array[wp.vec4d],
    trial: wp.array[wp.vec4d],
) -> wp.float64:
    """Move the bends; returns their energy, infinite where no step goes down."""
    slope, largest = wp.float64(0.0), wp.float64(0.0)
    for e in range(step.shape[0]):
        slope += wp.dot(gradient[e], step[e])
        largest = wp.max(largest, wp.max(wp.abs(step[e])))
    if not slope < _ZERO:
        return wp.float64(wp.inf)
    scale = wp.min(_ONE, rod.largest_step / wp.max(largest, _SMALLEST))
    trusted = -slope < wp.max(_ROUNDING * wp.abs(energy), rod.rounding)
    while scale >= _SMALLEST:
        for e in range(step.shape[0]):
            trial[e] = bends[e] + scale * step[e]
        reached = _energy(rod, load, trial)
        if trusted or reached <= energy + _ARMIJO * scale * slope:
            for e in range(step.shape[0]):
                bends[e] = trial[e]
            return reached
        scale *= _HALF
    return wp.float64(wp.inf)


@wp.kernel
def solve(
    rod: Elements,
    loads: wp.array2d[wp.vec4d],
    bends: wp.array2d[wp.vec4d],
    trials: wp.array2d[wp.vec4d],
    steps: wp.array2d[wp.vec4d],
    gradients: wp.array2d[wp.vec4d],
    directors: wp.array2d[wp.mat33d],
    blocks: wp.array2d[wp.mat44d],
    pulls: wp.array2d[_mat43d],
    moved: wp.array2d[_mat43d],
    iterations: wp.array[int],
    converged: wp.array[wp.bool],
) -> None:
    """Newton's method from bends (n, E) under loads (n, E), the derivative of the pressures' work; the rest is room.

    Where a step does not go down, or where it ends in an unstable balance, a rod is given up: Hessians are not shifted.
    """
    s = wp.tid()
    energy = _energy(rod, loads[s], bends[s])
    count = wp.int32(0)
    is_minimum = wp.bool(True)
    going = wp.isfinite(energy)
    while going:
        residual = _assemble(rod, loads[s], bends[s], directors[s], gradients[s], blocks[s], pulls[s], moved[s])
        if residual <= rod.tolerance:
            converged[s] = is_minimum
            going = False
        elif count == _MOST:
            going = False
        else:
            is_minimum = _newton_step(gradients[s], blocks[s], pulls[s], moved[s], steps[s])
            energy = _line_search(rod, loads[s], energy, gradients[s], steps[s], bends[s], trials[s])
            going = wp.isfinite(energy)
            count += 1
    iterations[s] = count
