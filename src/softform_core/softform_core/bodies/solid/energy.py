"""Numba kernels: energy of nearly incompressible fibre-reinforced wedges, its gradient and its Hessian.

Per element and quadrature point, with F = dx/dX (3, 3), J = det F, I1 = J^(-2/3) tr F^T F and I4 = |F a|^2 along the
unit direction a of the fibres:

    shape               W(I1) dV                 at the points of the first rule
    fibres              k / 8 (I4 - 1)^2 dV      likewise
    volume              K / 2 (J - 1)^2 dV       at the points of the second rule

The second rule has fewer points: what an element of 18 nodes can do without changing its volume at 18 points is too
little to bend (selective reduced integration). Each point has a weight for the first two terms and one for the third;
one of them is nil.
"""

import numba
import numpy as np

from softform_core.simulation.materials import strain_energy


@numba.njit(cache=True)
def _deformation_gradient(positions, element, gradients, f):  # type: ignore[no-untyped-def]
    f[:] = 0.0
    for a in range(element.size):
        for i in range(3):
            x = positions[element[a], i]
            for j in range(3):
                f[i, j] += x * gradients[a, j]


@numba.njit(cache=True)
def _cofactors(f, c):  # type: ignore[no-untyped-def]
    """Cofactors of F, det F F^-T, into c; return det F."""
    for i in range(3):
        i1, i2 = (i + 1) % 3, (i + 2) % 3
        for j in range(3):
            j1, j2 = (j + 1) % 3, (j + 2) % 3
            c[i, j] = f[i1, j1] * f[i2, j2] - f[i1, j2] * f[i2, j1]
    return f[0, 0] * c[0, 0] + f[0, 1] * c[0, 1] + f[0, 2] * c[0, 2]


@numba.njit(cache=True, nogil=True)
def strain_energies(  # type: ignore[no-untyped-def]
    positions, elements, gradients, shape_volumes, volume_volumes, fibres, fibre_modulus, bulk, law, coefficients
):  # fmt: skip
    """Energy of all elements, J, and the least J of all points; infinite energy where a point is crushed.

    Args:
        positions: (V, 3) m.
        elements: (E, n) nodes of each element.
        gradients: (E, q, n, 3) derivatives of the shape functions by the rest coordinates, 1/m.
        shape_volumes: (E, q) rest volume of each point for W and the fibres, m^3; nil at points of the second rule.
        volume_volumes: (E, q) rest volume of each point for the volumetric term; nil at points of the first rule.
        fibres: (E, q, 3) unit direction of the fibres at each point.
        fibre_modulus: (E,) k, Pa.
        bulk: (E,) K, Pa.
        law: Number of the material law.
        coefficients: (E, c) of the material.
    """
    total, least = 0.0, np.inf
    f, c = np.zeros((3, 3)), np.zeros((3, 3))
    for e in range(elements.shape[0]):
        for q in range(gradients.shape[1]):
            _deformation_gradient(positions, elements[e], gradients[e, q], f)
            j = _cofactors(f, c)
            least = min(least, j)
            if not j > 0.0:
                return np.inf, j
            total += 0.5 * volume_volumes[e, q] * bulk[e] * (j - 1.0) ** 2
            if shape_volumes[e, q] == 0.0:
                continue
            density = strain_energy(law, coefficients[e], j ** (-2.0 / 3.0) * np.sum(f * f))[0]
            if fibre_modulus[e] > 0.0:
                stretched = f @ fibres[e, q]
                density += 0.125 * fibre_modulus[e] * (np.sum(stretched * stretched) - 1.0) ** 2
            total += shape_volumes[e, q] * density
    return total, least


@numba.njit(cache=True, nogil=True)
def assemble(  # type: ignore[no-untyped-def]
    positions, before, elements, gradients, shape_volumes, volume_volumes, fibres, fibre_modulus, bulk, law,
    coefficients, slots, strides, gradient, hessian,
):  # fmt: skip
    """Add the gradient of `strain_energies` and the Hessian of a Newton step to `gradient` and `hessian`.

    With B_a = dN_a/dX (3,), the cofactors c = dJ/dF = J F^-T, G = c / J, and i, k axes of nodes a, b in space, j, l
    those at rest, a point adds B_aj P_ij to the gradient and B_aj A_ijkl B_bl to the Hessian:

        dI1/dF_ij          = S_ij = 2 J^(-2/3) F_ij - 2/3 I1 G_ij
        d2I1/dF_ij dF_kl   = 2 J^(-2/3) (delta_ik delta_jl - 2/3 (F_ij G_kl + G_ij F_kl))
                           + 4/9 I1 G_ij G_kl + 2/3 I1 G_il G_kj
        W                  : P = W' S,  A = W'' S_ij S_kl + W' d2I1
        k / 8 (I4 - 1)^2   : P = k / 2 (I4 - 1) (F a)_i a_j,
                             A = k (F a)_i a_j (F a)_k a_l + k / 2 (I4 - 1) delta_ik a_j a_l
        K / 2 (J - 1)^2    : P = K (J - 1) c_ij,  A = K c_ij c_kl + p d2J,
                             d2J/dF_ij dF_kl = J (G_ij G_kl - G_il G_kj)

    The exact Hessian has p = K (J - 1). There a small error of J is a large stress, and Newton's method takes short
    steps. The Newton step of the problem in which p is an unknown of its own at every point (p = K (J - 1) is its other
    equation), with p eliminated, is the same but for p = K (J0 - 1 + c0 : (F - F0)): the pressure that the last step,
    from `before` (index 0), linearly led to. So it is with the stresses Sigma = 2 dW/dC of stiff plates and fibres,
    which a finite turn would stretch: with C = F^T F, dC = F0^T (F - F0) + its transpose and s = J^(-2/3),

        A                 += delta_ik (Sigma0 + dSigma - Sigma)_jl
        Sigma              = 2 W' s (1 - tr C / 3 C^-1)  +  k / 2 (I4 - 1) a a^T
        dSigma             = 2 (W'' dI1 - W' / 3 C^-1 : dC) s (1 - tr C / 3 C^-1)
                           + 2 W' s / 3 (tr C C^-1 dC C^-1 - tr dC C^-1)  +  k / 2 (a . dC a) a a^T
        dI1                = s (tr dC - tr C / 3 C^-1 : dC)

    All of this is nil where both positions agree (mixed integration points: Magisano, Leonetti, Garcea, Int. J. Numer.
    Meth. Engng. 109, 2017).

    Args:
        positions: (V, 3) m.
        before: (V, 3) m, where the last step began.
        elements: (E, n) nodes of each element; it and the next eight as `strain_energies` has them.
        gradients: (E, q, n, 3) 1/m.
        shape_volumes: (E, q) m^3.
        volume_volumes: (E, q) m^3.
        fibres: (E, q, 3).
        fibre_modulus: (E,) Pa.
        bulk: (E,) Pa.
        law: Number of the material law.
        coefficients: (E, c) of the material.
        slots: (E, n, n) place of the first entry of each element's 3 x 3 block (row a, column b) in `hessian`; -1 where
            a node is fixed.
        strides: (V,) from an entry to that of the next column of a node's blocks.
        gradient: (V, 3) N, is added to.
        hessian: (s,) N/m, values of the sparse Hessian by columns, is added to; an empty one is left alone.
    """
    n = elements.shape[1]
    f, c, f0, c0, g = np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((3, 3))
    stress, s, pull = np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((3, 3))
    tangent = np.zeros((3, 3, 3, 3))
    wanted = hessian.size > 0
    spread = np.zeros((3, 3 * n))
    block = np.zeros((3, n, 3 * n))
    for e in range(elements.shape[0]):
        block[:] = 0.0
        for q in range(gradients.shape[1]):
            b = gradients[e, q]
            _deformation_gradient(positions, elements[e], b, f)
            volume = _cofactors(f, c)
            stress[:] = 0.0
            tangent[:] = 0.0
            dv = volume_volumes[e, q]
            if dv > 0.0:
                _deformation_gradient(before, elements[e], b, f0)
                last = _cofactors(f0, c0)
                p = dv * bulk[e] * (last - 1.0 + np.sum(c0 * (f - f0)))
                for i in range(3):
                    for j in range(3):
                        stress[i, j] += dv * bulk[e] * (volume - 1.0) * c[i, j]
                        for k in range(3):
                            for m in range(3):
                                tangent[i, j, k, m] += (dv * bulk[e] + p / volume) * c[i, j] * c[k, m]
                                tangent[i, j, k, m] -= p / volume * c[i, m] * c[k, j]
            dv = shape_volumes[e, q]
            if dv > 0.0:
                scale = volume ** (-2.0 / 3.0)
                invariant = scale * np.sum(f * f)
                _, slope, curvature = strain_energy(law, coefficients[e], invariant)
                slope, curvature = dv * slope, dv * curvature
                g[:] = c / volume
                s[:] = 2.0 * scale * f - 2.0 / 3.0 * invariant * g
                for i in range(3):
                    for j in range(3):
                        stress[i, j] += slope * s[i, j]
                        tangent[i, j, i, j] += 2.0 * slope * scale
                        for k in range(3):
                            for m in range(3):
                                tangent[i, j, k, m] += curvature * s[i, j] * s[k, m] + slope * (
                                    invariant * (4.0 / 9.0 * g[i, j] * g[k, m] + 2.0 / 3.0 * g[i, m] * g[k, j])
                                    - 4.0 / 3.0 * scale * (f[i, j] * g[k, m] + g[i, j] * f[k, m])
                                )
                if fibre_modulus[e] > 0.0:
                    along = fibres[e, q]
                    stretched = f @ along
                    tension = 0.5 * dv * fibre_modulus[e] * (np.sum(stretched * stretched) - 1.0)
                    for i in range(3):
                        for j in range(3):
                            pull[i, j] = stretched[i] * along[j]
                            stress[i, j] += tension * pull[i, j]
                    for i in range(3):
                        for j in range(3):
                            for m in range(3):
                                tangent[i, j, i, m] += tension * along[j] * along[m]
                            for k in range(3):
                                for m in range(3):
                                    tangent[i, j, k, m] += dv * fibre_modulus[e] * pull[i, j] * pull[k, m]
                if wanted:
                    _deformation_gradient(before, elements[e], b, f0)
                    ahead = _stress(f, law, coefficients[e], fibre_modulus[e], fibres[e, q])
                    ahead = _led_to(f0, f, law, coefficients[e], fibre_modulus[e], fibres[e, q]) - ahead
                    for i in range(3):
                        for j in range(3):
                            for m in range(3):
                                tangent[i, j, i, m] += dv * ahead[j, m]
            for a in range(n):
                for i in range(3):
                    gradient[elements[e, a], i] += (
                        stress[i, 0] * b[a, 0] + stress[i, 1] * b[a, 1] + stress[i, 2] * b[a, 2]
                    )
            if not wanted:
                continue
            for i in range(3):
                for j in range(3):
                    for d in range(n):
                        for k in range(3):
                            spread[j, 3 * d + k] = (
                                tangent[i, j, k, 0] * b[d, 0]
                                + tangent[i, j, k, 1] * b[d, 1]
                                + tangent[i, j, k, 2] * b[d, 2]
                            )
                rows = block[i]
                for a in range(n):
                    row, b0, b1, b2 = rows[a], b[a, 0], b[a, 1], b[a, 2]
                    for r in range(3 * n):
                        row[r] += b0 * spread[0, r] + b1 * spread[1, r] + b2 * spread[2, r]
        if wanted:
            add_blocks(block, elements[e], slots[e], strides, hessian)


@numba.njit(cache=True)
def _stress(f, law, coefficients, fibre_modulus, along):  # type: ignore[no-untyped-def]
    """Sigma (3, 3), Pa: `assemble`."""
    cofactors = np.zeros((3, 3))
    volume = _cofactors(f, cofactors)
    inverse = cofactors.T @ cofactors / volume**2
    scale, trace = volume ** (-2.0 / 3.0), np.sum(f * f)
    slope = strain_energy(law, coefficients, scale * trace)[1]
    stretched = f @ along
    tension = 0.5 * fibre_modulus * (np.sum(stretched * stretched) - 1.0)
    return 2.0 * slope * scale * (np.eye(3) - trace / 3.0 * inverse) + tension * np.outer(along, along)


@numba.njit(cache=True)
def _led_to(f0, f, law, coefficients, fibre_modulus, along):  # type: ignore[no-untyped-def]
    """Sigma0 + dSigma (3, 3), Pa, of a step from F0 to F: `assemble`."""
    cofactors = np.zeros((3, 3))
    volume = _cofactors(f0, cofactors)
    inverse = cofactors.T @ cofactors / volume**2
    change = f0.T @ (f - f0)
    change = change + change.T
    scale, trace, grown = volume ** (-2.0 / 3.0), np.sum(f0 * f0), np.trace(change)
    compressed = np.sum(inverse * change)
    _, slope, curvature = strain_energy(law, coefficients, scale * trace)
    spherical = scale * (np.eye(3) - trace / 3.0 * inverse)
    factor = slope + curvature * scale * (grown - trace / 3.0 * compressed) - slope / 3.0 * compressed
    rest = slope * scale / 3.0 * (trace * (inverse @ change @ inverse) - grown * inverse)
    stretched = f0 @ along
    tension = 0.5 * fibre_modulus * (np.sum(stretched * stretched) - 1.0 + along @ change @ along)
    return 2.0 * (factor * spherical + rest) + tension * np.outer(along, along)


@numba.njit(cache=True)
def add_blocks(block, element, slots, strides, hessian):  # type: ignore[no-untyped-def]
    """Add an element's Hessian (3, n, 3 n), of axis i of node a by node and axis, to the sparse values."""
    n = element.size
    for a in range(n):
        for d in range(n):
            slot = slots[a, d]
            if slot < 0:
                continue
            stride = strides[element[d]]
            for k in range(3):
                for i in range(3):
                    hessian[slot + k * stride + i] += block[i, a, 3 * d + k]
