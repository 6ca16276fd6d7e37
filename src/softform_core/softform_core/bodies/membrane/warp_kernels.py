"""Warp kernels of the membrane: `bodies.membrane.energy` for n membranes at once, which differ in their pressures.

One thread adds up the row of one vertex of one membrane, from the elements around it: nothing is added atomically, so
that the same pressures give the same bits. Formulas and symbols are those of `energy.assemble`.
"""

import warp as wp

from softform_core.bodies.membrane.energy import COMPRESSION
from softform_core.simulation.warp_materials import strain_slopes

wp.set_module_options({"enable_backward": False})

# Literals in kernels are of single precision.
_ZERO, _ONE, _TWO = wp.constant(wp.float64(0.0)), wp.constant(wp.float64(1.0)), wp.constant(wp.float64(2.0))
_HALF, _THREE, _FOUR = wp.constant(wp.float64(0.5)), wp.constant(wp.float64(3.0)), wp.constant(wp.float64(4.0))
_LEFT = wp.constant(wp.float64(COMPRESSION))


@wp.struct
class Sheet:
    """What all membranes share; V vertices, E elements of c corners, q quadrature points, B blocks of the Hessian."""

    rest: wp.array[wp.vec3d]  # (V,)
    weight: wp.array[wp.vec3d]  # (V,)
    fixed: wp.array[wp.bool]  # (V,)
    offsets: wp.array[int]  # (V + 1,) first block of each row
    columns: wp.array[int]  # (B,)
    springs: wp.array[wp.float64]  # (B,)
    laplacian: wp.array[wp.float64]  # (B,)
    corners: wp.array2d[int]  # (V, most around a vertex): c e + a where corner a of element e lies there, or -1
    elements: wp.array2d[int]  # (E, c)
    blocks: wp.array3d[int]  # (E, c, c) block of each pair of corners
    chambers: wp.array[int]  # (E,)
    shapes: wp.array2d[wp.float64]  # (c, q)
    gradients: wp.array3d[wp.vec2d]  # (E, q, c)
    areas: wp.array2d[wp.float64]  # (E, q)
    thickness: wp.array[wp.float64]  # (E,)
    law: int
    coefficients: wp.vec3d


@wp.struct
class Point:
    """A quadrature point of an element, in the symbols of `energy.assemble`."""

    f1: wp.vec3d
    f2: wp.vec3d
    inverse: wp.mat22d  # C^-1
    phi: wp.float64
    normal: wp.vec3d
    elastic: wp.float64  # t dA, or what compression leaves of it
    slope: wp.float64
    curvature: wp.float64
    relaxed: wp.float64  # t dA of the relaxed energy; nil where the sheet does not wrinkle
    tension: wp.float64
    stiffening: wp.float64
    apart: wp.float64  # c1 - c2
    along: wp.vec2d  # d
    follower: wp.float64  # p dA
    height: wp.float64
    projected: wp.float64


@wp.func
def _point(sheet: Sheet, place: wp.array[wp.vec3d], e: int, q: int, pressure: wp.float64) -> Point:
    at = Point()
    for b in range(sheet.elements.shape[1]):
        x, g = place[sheet.elements[e, b]], sheet.gradients[e, q, b]
        at.f1 += g[0] * x
        at.f2 += g[1] * x
        at.height += sheet.shapes[b, q] * x[2]
    c11, c22, c12 = wp.dot(at.f1, at.f1), wp.dot(at.f2, at.f2), wp.dot(at.f1, at.f2)
    at.phi = _ONE / (c11 * c22 - c12 * c12)
    at.inverse = at.phi * wp.mat22d(c22, -c12, -c12, c11)
    at.normal = wp.sqrt(at.phi) * wp.cross(at.f1, at.f2)
    at.projected = at.f1[0] * at.f2[1] - at.f1[1] * at.f2[0]
    at.follower = sheet.areas[e, q] * pressure
    at.elastic = sheet.areas[e, q] * sheet.thickness[e]
    slope, curvature = strain_slopes(sheet.law, sheet.coefficients, c11 + c22 + at.phi - _THREE)
    at.slope = slope
    at.curvature = curvature
    mean, half = _HALF * (c11 + c22), _HALF * (c11 - c22)
    spread = wp.sqrt(half * half + c12 * c12)
    c1, c2 = mean + spread, mean - spread
    if c1 * c2 * c2 < _ONE:
        at.relaxed = (_ONE - _LEFT) * at.elastic
        at.elastic *= _LEFT
        at.apart = _TWO * spread
        at.along = wp.vec2d(c12, spread - half)
        if half >= _ZERO:
            at.along = wp.vec2d(spread + half, c12)
        at.along = wp.normalize(at.along)
        if spread == _ZERO:
            at.along = wp.vec2d(_ONE, _ZERO)
        if c1 > _ONE:
            root = _ONE / wp.sqrt(c1)
            slope, curvature = strain_slopes(sheet.law, sheet.coefficients, c1 + _TWO * root - _THREE)
            change = _ONE - root * root * root
            at.tension = slope * change
            at.stiffening = curvature * change * change + wp.float64(1.5) * slope * wp.pow(root, wp.float64(5.0))
    return at


@wp.func
def _inverse_of(at: Point, g: wp.vec2d) -> wp.vec3d:
    raised = at.inverse * g
    return at.f1 * raised[0] + at.f2 * raised[1]


@wp.func
def _stress(at: Point, g: wp.vec2d) -> wp.vec3d:
    return _TWO * (at.f1 * g[0] + at.f2 * g[1] - at.phi * _inverse_of(at, g))


@wp.func
def _stretch(at: Point, g: wp.vec2d) -> wp.vec3d:
    return _TWO * wp.dot(g, at.along) * (at.f1 * at.along[0] + at.f2 * at.along[1])


@wp.func
def _turn(at: Point, g: wp.vec2d) -> wp.vec3d:
    across = wp.vec2d(-at.along[1], at.along[0])
    pull, push = at.f1 * at.along[0] + at.f2 * at.along[1], at.f1 * across[0] + at.f2 * across[1]
    return wp.dot(g, at.along) * push + wp.dot(g, across) * pull


@wp.func
def _curtain(at: Point, g: wp.vec2d) -> wp.vec3d:
    return wp.vec3d(g[0] * at.f2[1] - g[1] * at.f1[1], g[1] * at.f1[0] - g[0] * at.f2[0], _ZERO)


@wp.func
def _force(at: Point, g: wp.vec2d, shape: wp.float64) -> wp.vec3d:
    """Minus the gradient of the potential at a corner."""
    volume = at.height * _curtain(at, g) + wp.vec3d(_ZERO, _ZERO, shape * at.projected)
    return at.follower * volume - at.elastic * at.slope * _stress(at, g) - at.relaxed * at.tension * _stretch(at, g)


@wp.func
def _hessian(at: Point, ga: wp.vec2d, na: wp.float64, gb: wp.vec2d, nb: wp.float64) -> wp.mat33d:
    """Second derivative of the potential by corners a and b."""
    one = wp.identity(n=3, dtype=wp.float64)
    up = wp.vec3d(_ZERO, _ZERO, _ONE)
    sa, sb, ia, ib = _stress(at, ga), _stress(at, gb), _inverse_of(at, ga), _inverse_of(at, gb)
    bent = at.phi * wp.dot(ga, at.inverse * gb)
    second = (
        _FOUR * at.phi * wp.outer(ia, ib)
        + _TWO * at.phi * wp.outer(ib, ia)
        - _TWO * bent * wp.outer(at.normal, at.normal)
        + _TWO * wp.dot(ga, gb) * one
    )
    total = at.elastic * (at.curvature * wp.outer(sa, sb) + at.slope * second)
    if at.tension > _ZERO:
        second = _TWO / at.apart * wp.outer(_turn(at, ga), _turn(at, gb))
        second += _TWO * wp.dot(ga, at.along) * wp.dot(gb, at.along) * one
        stretched = at.stiffening * wp.outer(_stretch(at, ga), _stretch(at, gb))
        total += at.relaxed * (stretched + at.tension * second)
    load = na * wp.outer(up, _curtain(at, gb)) + nb * wp.outer(_curtain(at, ga), up)
    twist = at.height * (ga[0] * gb[1] - ga[1] * gb[0])
    load[0, 1] = load[0, 1] + twist
    load[1, 0] = load[1, 0] - twist
    return total - at.follower * load


@wp.kernel
def assemble(
    sheet: Sheet,
    pressures: wp.array2d[wp.float64],
    going: wp.array[wp.bool],
    positions: wp.array2d[wp.vec3d],
    force: wp.array2d[wp.vec3d],
    hessian: wp.array[wp.mat33d],
) -> None:
    """Forces out of balance (n, V) and the blocks (n B,) of the Hessian; no force where a membrane is not `going`.

    Rows and columns of fixed vertices are those of the identity.
    """
    s, v = wp.tid()
    force[s, v] = wp.vec3d()
    if not going[s]:
        return
    first = s * sheet.columns.shape[0]
    one = wp.identity(n=3, dtype=wp.float64)
    if sheet.fixed[v]:
        for k in range(sheet.offsets[v], sheet.offsets[v + 1]):
            hessian[first + k] = wp.where(sheet.columns[k] == v, one, wp.mat33d())
        return
    place = positions[s]
    pull = sheet.weight[v]
    for k in range(sheet.offsets[v], sheet.offsets[v + 1]):
        w = sheet.columns[k]
        pull -= sheet.springs[k] * (place[w] - sheet.rest[w])
        hessian[first + k] = sheet.springs[k] * one
    count = sheet.elements.shape[1]
    for c in range(sheet.corners.shape[1]):
        corner = sheet.corners[v, c]
        if corner >= 0:
            e, a = corner // count, corner % count
            for q in range(sheet.areas.shape[1]):
                at = _point(sheet, place, e, q, pressures[s, sheet.chambers[e]])
                ga, na = sheet.gradients[e, q, a], sheet.shapes[a, q]
                pull += _force(at, ga, na)
                for b in range(count):
                    k = first + sheet.blocks[e, a, b]
                    hessian[k] = hessian[k] + _hessian(at, ga, na, sheet.gradients[e, q, b], sheet.shapes[b, q])
    for k in range(sheet.offsets[v], sheet.offsets[v + 1]):
        if sheet.fixed[sheet.columns[k]]:
            hessian[first + k] = wp.mat33d()
    force[s, v] = pull


@wp.kernel
def assemble_taut(
    sheet: Sheet,
    tensions: wp.array[wp.float64],
    loads: wp.array2d[wp.float64],
    force: wp.array2d[wp.vec3d],
    hessian: wp.array[wp.mat33d],
) -> None:
    """Forces and blocks as `assemble`, of the taut sheets of `potential.dome` under loads (n, V)."""
    s, v = wp.tid()
    first = s * sheet.columns.shape[0]
    one = wp.identity(n=3, dtype=wp.float64)
    for k in range(sheet.offsets[v], sheet.offsets[v + 1]):
        w = sheet.columns[k]
        stiffness = tensions[s] * sheet.laplacian[k] + sheet.springs[k]
        if sheet.fixed[v] or sheet.fixed[w]:
            stiffness = wp.where(v == w, _ONE, _ZERO)
        hessian[first + k] = stiffness * one
    force[s, v] = wp.vec3d(_ZERO, _ZERO, wp.where(sheet.fixed[v], _ZERO, loads[s, v]))


@wp.kernel
def hold(going: wp.array[wp.bool], force: wp.array2d[wp.vec3d]) -> None:
    """Clear the forces (n, V) of membranes that are not `going`, so that no step is taken."""
    s, v = wp.tid()
    if not going[s]:
        force[s, v] = wp.vec3d()


@wp.kernel
def move(step: wp.array2d[wp.vec3d], positions: wp.array2d[wp.vec3d]) -> None:
    """Add steps (n, V) to positions (n, V)."""
    s, v = wp.tid()
    positions[s, v] = positions[s, v] + step[s, v]


@wp.kernel
def add_curvature(step: wp.array2d[wp.vec3d], load: wp.array2d[wp.vec3d], sums: wp.array[wp.float64]) -> None:
    """Add step . load of each membrane, (n, V), to sums (n,)."""
    s, v = wp.tid()
    wp.atomic_add(sums, s, wp.dot(step[s, v], load[s, v]))


@wp.kernel
def note_curvature(sums: wp.array[wp.float64], bent_down: wp.array[wp.bool]) -> None:
    """Mark in bent_down (n,) where sums (n,) are negative, and clear them."""
    s = wp.tid()
    if sums[s] < _ZERO:
        bent_down[s] = True
    sums[s] = _ZERO
