"""Numba kernels: potential energy of the membrane elements under chamber pressure, its gradient and its Hessian.

Per element and quadrature point, with deformation gradient F = dx/dX (3, 2), C = F^T F, I1 = tr C + 1 / det C:

    elastic energy        W(I1) t dA
    pressure potential    -p z (x,1 y,2 - x,2 y,1) dA

The second is p times the volume between the element and the plane of the rims z = 0, projected along z: curtain walls
close a chamber below its rim, which makes the pressure conservative however the rim moves.

Where the sheet would be compressed it wrinkles instead. We take the relaxed energy of tension field theory (Pipkin
1986, IMA J. Appl. Math. 36): with the principal stretches squared c1 >= c2 of C, a sheet narrower than its free width,
c2 < c1^(-1/2), is in uniaxial tension, I1 = c1 + 2 c1^(-1/2); with c1 < 1 too it is slack. Without this, wrinkles of
the size of an element give the same pressures many equilibria, which differ by millimetres. A thousandth of the
compressive stiffness is left (`COMPRESSION`), so that slack sheets do not make the Hessian singular.
"""

import numba
import numpy as np

from softform_core.simulation.materials import strain_energy

COMPRESSION = 1e-3


@numba.njit(cache=True)
def _tension_field(c11, c22, c12):  # type: ignore[no-untyped-def]
    """Whether the sheet wrinkles; the greater principal stretch squared, its lead on the lesser, its direction."""
    mean, half = 0.5 * (c11 + c22), 0.5 * (c11 - c22)
    spread = np.sqrt(half * half + c12 * c12)
    c1, c2 = mean + spread, mean - spread
    if c1 * c2 * c2 >= 1.0:
        return False, c1, 0.0, 1.0, 0.0
    # The better conditioned of the two rows of C - c1.
    x, y = (spread + half, c12) if half >= 0.0 else (c12, spread - half)
    norm = np.sqrt(x * x + y * y)
    if norm == 0.0:
        return True, c1, 0.0, 1.0, 0.0
    return True, c1, 2.0 * spread, x / norm, y / norm


@numba.njit(cache=True)
def _uniaxial_energy(law, coefficients, c1):  # type: ignore[no-untyped-def]
    """Relaxed energy of a wrinkled sheet and its first two derivatives by c1; nil where it is slack."""
    if c1 <= 1.0:
        return 0.0, 0.0, 0.0
    root = 1.0 / np.sqrt(c1)
    energy, slope, curvature = strain_energy(law, coefficients, c1 + 2.0 * root)
    change = 1.0 - root**3
    return energy, slope * change, curvature * change * change + 1.5 * slope * root**5


@numba.njit(cache=True)
def _deformation_gradient(positions, element, gradients):  # type: ignore[no-untyped-def]
    f = np.zeros((3, 2))
    for a in range(element.size):
        for k in range(3):
            f[k, 0] += positions[element[a], k] * gradients[a, 0]
            f[k, 1] += positions[element[a], k] * gradients[a, 1]
    return f


@numba.njit(cache=True)
def potential_energy(  # type: ignore[no-untyped-def]
    positions, elements, shapes, gradients, areas, thickness, pressure, law, coefficients
):  # fmt: skip
    """Elastic energy minus pressure work of all elements, J; infinite where an element has collapsed.

    Args:
        positions: (V, 3) m.
        elements: (E, n) vertices of each element.
        shapes: (n, q) shape functions at the quadrature points.
        gradients: (E, q, n, 2) their derivatives by the rest coordinates, 1/m.
        areas: (E, q) rest area of each quadrature point, m^2.
        thickness: (E,) m.
        pressure: (E,) Pa.
        law: Number of the material law.
        coefficients: Coefficients of the material.
    """
    total = 0.0
    for e in range(elements.shape[0]):
        for q in range(areas.shape[1]):
            f = _deformation_gradient(positions, elements[e], gradients[e, q])
            c11 = f[0, 0] ** 2 + f[1, 0] ** 2 + f[2, 0] ** 2
            c22 = f[0, 1] ** 2 + f[1, 1] ** 2 + f[2, 1] ** 2
            c12 = f[0, 0] * f[0, 1] + f[1, 0] * f[1, 1] + f[2, 0] * f[2, 1]
            det = c11 * c22 - c12 * c12
            if not det > 1e-12:
                return np.inf
            density = strain_energy(law, coefficients, c11 + c22 + 1.0 / det)[0]
            wrinkled, c1, _, _, _ = _tension_field(c11, c22, c12)
            if wrinkled:
                density = COMPRESSION * density + (1.0 - COMPRESSION) * _uniaxial_energy(law, coefficients, c1)[0]
            height = 0.0
            for a in range(elements.shape[1]):
                height += shapes[a, q] * positions[elements[e, a], 2]
            projected = f[0, 0] * f[1, 1] - f[0, 1] * f[1, 0]
            total += areas[e, q] * (thickness[e] * density - pressure[e] * height * projected)
    return total


@numba.njit(cache=True)
def assemble(  # type: ignore[no-untyped-def]
    positions, elements, shapes, gradients, areas, thickness, pressure, law, coefficients, slots, gradient, hessian
):  # fmt: skip
    """Add the gradient and the Hessian of `potential_energy` to `gradient` and `hessian`.

    With B_a = dN_a/dX (2,), C^-1, the unit normal n, phi = 1 / det C and i, j axes of vertices a, b, a quadrature
    point adds, per rest volume t dA for the elastic terms and per rest area dA for the pressure:

        dI1/dx_ai          = S_ai = 2 (F B_a - phi F C^-1 B_a)_i
        d2I1/dx_ai dx_bj   = 2 delta_ij B_a . B_b
                           + 4 phi (F C^-1 B_a)_i (F C^-1 B_b)_j + 2 phi (F C^-1 B_b)_i (F C^-1 B_a)_j
                           - 2 phi (B_a . C^-1 B_b) n_i n_j
        d2W                = W'' S_ai S_bj + W' d2I1

    Where the sheet wrinkles, W is replaced by COMPRESSION W + (1 - COMPRESSION) w(c1), with the unit directions d of
    tension and e across it in the rest plane, r_a = B_a . d and T_ai = r_a (F e)_i + (B_a . e) (F d)_i:

        dc1/dx_ai          = G_ai = 2 r_a (F d)_i
        d2w                = w'' G_ai G_bj + w' (2 delta_ij r_a r_b + 2 T_ai T_bj / (c1 - c2))

    The pressure potential -p z A, with the height z = sum_a N_a x_a3 and the projected area A = x,1 y,2 - x,2 y,1:

        dA/dx_a            = K_a = (B_a1 y,2 - B_a2 y,1, x,1 B_a2 - x,2 B_a1)
        d(z A)/dx_a        = (z K_a1, z K_a2, N_a A)
        d2(z A)            : N_a K_bj for i = 3, j < 3 and its transpose; z (B_a1 B_b2 - B_a2 B_b1) for i = 1, j = 2
                             and minus that for i = 2, j = 1; nil elsewhere

    The first nine arguments are those of `potential_energy`. Then `slots` (E, 3n, 3n) is the place of each entry of an
    element's Hessian in `hessian`, -1 for a fixed one; `gradient` (V, 3) N and `hessian` (m,) N/m, the values of the
    sparse Hessian, are added to. An empty `hessian` is left alone, for the gradient only.
    """
    n = elements.shape[1]
    stress = np.zeros((n, 3))  # dI1/dF contracted with the shape gradients
    inverse = np.zeros((n, 3))  # F C^-1 contracted with the shape gradients
    volume = np.zeros((n, 3))  # gradient of the projected volume
    curtain = np.zeros((n, 2))  # of it, the derivatives of the projected area by x and y
    ray = np.zeros(n)  # shape gradients along the tension of a wrinkled sheet
    stretch = np.zeros((n, 3))  # gradient of c1
    turn = np.zeros((n, 3))  # change of the direction of tension
    for e in range(elements.shape[0]):
        p = pressure[e]
        for q in range(areas.shape[1]):
            g = gradients[e, q]
            f = _deformation_gradient(positions, elements[e], g)
            c11 = f[0, 0] ** 2 + f[1, 0] ** 2 + f[2, 0] ** 2
            c22 = f[0, 1] ** 2 + f[1, 1] ** 2 + f[2, 1] ** 2
            c12 = f[0, 0] * f[0, 1] + f[1, 0] * f[1, 1] + f[2, 0] * f[2, 1]
            det = c11 * c22 - c12 * c12
            phi = 1.0 / det
            b11, b22, b12 = c22 * phi, c11 * phi, -c12 * phi
            _, slope, curvature = strain_energy(law, coefficients, c11 + c22 + phi)
            root = np.sqrt(phi)
            n0 = (f[1, 0] * f[2, 1] - f[2, 0] * f[1, 1]) * root
            n1 = (f[2, 0] * f[0, 1] - f[0, 0] * f[2, 1]) * root
            n2 = (f[0, 0] * f[1, 1] - f[1, 0] * f[0, 1]) * root
            projected = f[0, 0] * f[1, 1] - f[0, 1] * f[1, 0]
            height = 0.0
            for a in range(n):
                height += shapes[a, q] * positions[elements[e, a], 2]
                raised1 = b11 * g[a, 0] + b12 * g[a, 1]
                raised2 = b12 * g[a, 0] + b22 * g[a, 1]
                for k in range(3):
                    inverse[a, k] = f[k, 0] * raised1 + f[k, 1] * raised2
                    stress[a, k] = 2.0 * (f[k, 0] * g[a, 0] + f[k, 1] * g[a, 1] - phi * inverse[a, k])
                curtain[a, 0] = g[a, 0] * f[1, 1] - g[a, 1] * f[1, 0]
                curtain[a, 1] = f[0, 0] * g[a, 1] - f[0, 1] * g[a, 0]
            for a in range(n):
                volume[a, 0] = height * curtain[a, 0]
                volume[a, 1] = height * curtain[a, 1]
                volume[a, 2] = shapes[a, q] * projected
            elastic = areas[e, q] * thickness[e]
            wrinkled, c1, apart, along1, along2 = _tension_field(c11, c22, c12)
            relaxed, tension, stiffening = 0.0, 0.0, 0.0
            if wrinkled:
                relaxed = (1.0 - COMPRESSION) * elastic
                elastic *= COMPRESSION
                _, tension, stiffening = _uniaxial_energy(law, coefficients, c1)
                for a in range(n):
                    ray[a] = g[a, 0] * along1 + g[a, 1] * along2
                    side = g[a, 1] * along1 - g[a, 0] * along2
                    for k in range(3):
                        pull = f[k, 0] * along1 + f[k, 1] * along2
                        stretch[a, k] = 2.0 * ray[a] * pull
                        turn[a, k] = ray[a] * (f[k, 1] * along1 - f[k, 0] * along2) + side * pull
            follower = areas[e, q] * p
            for a in range(n):
                for k in range(3):
                    gradient[elements[e, a], k] += elastic * slope * stress[a, k] - follower * volume[a, k]
                    if wrinkled:
                        gradient[elements[e, a], k] += relaxed * tension * stretch[a, k]
                for b in range(n if hessian.size else 0):
                    flat = g[a, 0] * g[b, 0] + g[a, 1] * g[b, 1]
                    bent = phi * (g[a, 0] * (b11 * g[b, 0] + b12 * g[b, 1]) + g[a, 1] * (b12 * g[b, 0] + b22 * g[b, 1]))
                    twist = height * (g[a, 0] * g[b, 1] - g[a, 1] * g[b, 0])
                    for k in range(3):
                        nk = n0 if k == 0 else (n1 if k == 1 else n2)
                        for m in range(3):
                            slot = slots[e, 3 * a + k, 3 * b + m]
                            if slot < 0:
                                continue
                            nm = n0 if m == 0 else (n1 if m == 1 else n2)
                            second = (
                                4.0 * phi * inverse[a, k] * inverse[b, m]
                                + 2.0 * phi * inverse[b, k] * inverse[a, m]
                                - 2.0 * bent * nk * nm
                            )
                            if k == m:
                                second += 2.0 * flat
                            value = elastic * (curvature * stress[a, k] * stress[b, m] + slope * second)
                            if wrinkled and tension > 0.0:
                                second = 2.0 * turn[a, k] * turn[b, m] / apart
                                if k == m:
                                    second += 2.0 * ray[a] * ray[b]
                                value += relaxed * (stiffening * stretch[a, k] * stretch[b, m] + tension * second)
                            if k == 2 and m < 2:
                                value -= follower * shapes[a, q] * curtain[b, m]
                            elif m == 2 and k < 2:
                                value -= follower * shapes[b, q] * curtain[a, k]
                            elif k == 0 and m == 1:
                                value -= follower * twist
                            elif k == 1 and m == 0:
                                value += follower * twist
                            hessian[slot] += value


@numba.njit(cache=True)
def chamber_volumes(  # type: ignore[no-untyped-def]
    positions, elements, shapes, gradients, areas, chamber_of_element, volumes, volume_gradients
):  # fmt: skip
    """Add the volume of each chamber, (k,) m^3, and its gradient, (k, V, 3) m^2, to the last two arguments."""
    n = elements.shape[1]
    for e in range(elements.shape[0]):
        chamber = chamber_of_element[e]
        for q in range(areas.shape[1]):
            g = gradients[e, q]
            f = _deformation_gradient(positions, elements[e], g)
            projected = f[0, 0] * f[1, 1] - f[0, 1] * f[1, 0]
            height = 0.0
            for a in range(n):
                height += shapes[a, q] * positions[elements[e, a], 2]
            volumes[chamber] += areas[e, q] * height * projected
            for a in range(n):
                v = elements[e, a]
                volume_gradients[chamber, v, 0] += areas[e, q] * height * (g[a, 0] * f[1, 1] - g[a, 1] * f[1, 0])
                volume_gradients[chamber, v, 1] += areas[e, q] * height * (f[0, 0] * g[a, 1] - f[0, 1] * g[a, 0])
                volume_gradients[chamber, v, 2] += areas[e, q] * shapes[a, q] * projected
