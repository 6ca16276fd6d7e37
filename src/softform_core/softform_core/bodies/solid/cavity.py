"""Numba kernel: the volume of closed cavities from their faces, its gradient and its Hessian.

A face contributes 1/3 x . (x,1 x x,2) per reference area, x,1 and x,2 its derivatives along the face and their cross
product outwards: by the divergence theorem the sum over a closed surface is its volume, however it moves. So pressure
has the potential -p V, and its Hessian is symmetric.
"""

import numba
import numpy as np

from softform_core.bodies.solid.energy import add_blocks


@numba.njit(cache=True, nogil=True)
def cavity_volumes(  # type: ignore[no-untyped-def]
    positions, faces, cavity_of_face, shapes, derivatives, weights, pressures, slots, strides, volumes, gradients,
    hessian,
):  # fmt: skip
    """Add to volumes, to their gradients, and -p times their Hessians to the Hessian of the potential.

    With d = x . (x,1 x x,2) = det [x x,1 x,2], N_a the shape functions, N_a1 and N_a2 their derivatives:

        3 dV/dx_a             = N_a x,1 x x,2 + N_a1 x,2 x x + N_a2 x x x,1
        3 d2V/dx_ai dx_bk     = epsilon_ikm v_m,
        v                     = (N_a N_b1 - N_a1 N_b) x,2 + (N_a1 N_b2 - N_a2 N_b1) x + (N_a2 N_b - N_a N_b2) x,1

    Args:
        positions: (V, 3) m.
        faces: (F, n) nodes of each face.
        cavity_of_face: (F,).
        shapes: (q, n) shape functions at the quadrature points.
        derivatives: (q, n, 2) along the face.
        weights: (q,).
        pressures: (k,) Pa of each cavity.
        slots: (F, n, n) as `energy.assemble`; empty where no Hessian is wanted.
        strides: (V,) likewise.
        volumes: (k,) m^3, is added to.
        gradients: (k, V, 3) m^2, is added to; an empty one is left alone.
        hessian: (s,) N/m, is added to.
    """
    n = faces.shape[1]
    block = np.zeros((3, n, 3 * n))
    for e in range(faces.shape[0]):
        cavity = cavity_of_face[e]
        block[:] = 0.0
        for q in range(weights.size):
            x, x1, x2 = np.zeros(3), np.zeros(3), np.zeros(3)
            for a in range(n):
                for i in range(3):
                    place = positions[faces[e, a], i]
                    x[i] += shapes[q, a] * place
                    x1[i] += derivatives[q, a, 0] * place
                    x2[i] += derivatives[q, a, 1] * place
            third = weights[q] / 3.0
            normal, second, first = np.cross(x1, x2), np.cross(x2, x), np.cross(x, x1)
            volumes[cavity] += third * np.sum(x * normal)
            if gradients.size:
                for a in range(n):
                    for i in range(3):
                        gradients[cavity, faces[e, a], i] += third * (
                            shapes[q, a] * normal[i]
                            + derivatives[q, a, 0] * second[i]
                            + derivatives[q, a, 1] * first[i]
                        )
            if not slots.size:
                continue
            load = -third * pressures[cavity]
            for a in range(n):
                for b in range(n):
                    on2 = shapes[q, a] * derivatives[q, b, 0] - derivatives[q, a, 0] * shapes[q, b]
                    on0 = derivatives[q, a, 0] * derivatives[q, b, 1] - derivatives[q, a, 1] * derivatives[q, b, 0]
                    on1 = derivatives[q, a, 1] * shapes[q, b] - shapes[q, a] * derivatives[q, b, 1]
                    for i in range(3):
                        k, m = (i + 1) % 3, (i + 2) % 3
                        value = load * (on2 * x2[m] + on0 * x[m] + on1 * x1[m])
                        block[i, a, 3 * b + k] += value
                        block[k, a, 3 * b + i] -= value
        if slots.size:
            add_blocks(block, faces[e], slots[e], strides, hessian)
