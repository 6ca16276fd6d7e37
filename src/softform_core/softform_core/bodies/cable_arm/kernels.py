"""Numba kernels of an arm: stable neo-Hookean tetrahedra and cables, straight into the blocks of its layers.

Per linear tetrahedron of volume V, with B_a = dN_a/dX (3,), F = sum x_a B_a^T, J = det F, I = F : F and c = dJ/dF:

    Psi                = mu / 2 (I - 3) - mu / 2 log((I + 1) / 4) + lambda / 2 ((J - alpha)^2 - (1 - alpha)^2)
    alpha              = 1 + 3 mu / (4 lambda)

the energy of Smith, De Goes and Kim (ACM Trans. Graph. 37, 2018), here nil at rest. It stays finite where an element
turns inside out. Its small strains have Lame's constants of mu = 4/3 mu_L, lambda = lambda_L + 5/6 mu_L. A point adds
P B_a to the gradient, and to the Hessian, with i, k axes of nodes a, b:

    P                  = mu (1 - 1 / (I + 1)) F + lambda (J - alpha) c
    H_ai,bk / V        = mu (1 - 1 / (I + 1)) B_a . B_b delta_ik + 2 mu / (I + 1)^2 (F B_a)_i (F B_b)_k
                       + lambda (c B_a)_i (c B_b)_k + lambda (J - alpha) epsilon_ikm (F (B_a x B_b))_m

Of the cables see `bodies.loads.cable`: under tensions T the blocks take T d2l/dx2, and what joins all nodes of a cable
stays out of them.

Nodes are (V, 3), layer by layer of w nodes; those of the first layer are held and have no unknowns.
"""

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def _deformation(nodes, element, slopes, f, c):  # type: ignore[no-untyped-def]  # numba infers the types
    """Set F and c of an element; returns I and J."""
    invariant = 0.0
    for i in range(3):
        for j in range(3):
            total = 0.0
            for a in range(4):
                total += nodes[element[a], i] * slopes[a, j]
            f[i, j] = total
            invariant += total * total
    for i in range(3):
        p, q = (i + 1) % 3, (i + 2) % 3
        c[i, 0] = f[p, 1] * f[q, 2] - f[p, 2] * f[q, 1]
        c[i, 1] = f[p, 2] * f[q, 0] - f[p, 0] * f[q, 2]
        c[i, 2] = f[p, 0] * f[q, 1] - f[p, 1] * f[q, 0]
    return invariant, f[0, 0] * c[0, 0] + f[0, 1] * c[0, 1] + f[0, 2] * c[0, 2]


@numba.njit(cache=True, nogil=True)
def strain_energy(nodes, elements, slopes, volumes, shear, bulk):  # type: ignore[no-untyped-def]
    """Energy of all elements, J, and the least J.

    Args:
        nodes: (V, 3) m.
        elements: (E, 4).
        slopes: (E, 4, 3) B, 1/m.
        volumes: (E,) m^3.
        shear: (E,) mu, Pa.
        bulk: (E,) lambda, Pa.
    """
    f, c = np.empty((3, 3)), np.empty((3, 3))
    total, least = 0.0, np.inf
    for e in range(elements.shape[0]):
        invariant, volume = _deformation(nodes, elements[e], slopes[e], f, c)
        mu, lam = shear[e], bulk[e]
        alpha = 1.0 + 0.75 * mu / lam
        over, resting = volume - alpha, 1.0 - alpha
        density = 0.5 * mu * (invariant - 3.0 - np.log(0.25 * (invariant + 1.0)))
        total += volumes[e] * (density + 0.5 * lam * (over * over - resting * resting))
        least = min(least, volume)
    return total, least


@numba.njit(cache=True, nogil=True)
def add_strain_gradient(nodes, elements, slopes, volumes, shear, bulk, gradient):  # type: ignore[no-untyped-def]
    """Add its gradient to `gradient` (V, 3) N; other arguments as of `strain_energy`."""
    f, c = np.empty((3, 3)), np.empty((3, 3))
    for e in range(elements.shape[0]):
        invariant, volume = _deformation(nodes, elements[e], slopes[e], f, c)
        mu, lam = shear[e], bulk[e]
        stretch = volumes[e] * mu * (1.0 - 1.0 / (invariant + 1.0))
        press = volumes[e] * lam * (volume - 1.0 - 0.75 * mu / lam)
        for a in range(4):
            node = elements[e, a]
            for i in range(3):
                total = 0.0
                for j in range(3):
                    total += (stretch * f[i, j] + press * c[i, j]) * slopes[e, a, j]
                gradient[node, i] += total


@numba.njit(cache=True, nogil=True)
def add_strain_hessian(  # type: ignore[no-untyped-def]
    nodes, elements, slopes, volumes, shear, bulk, width, diagonal, below
):  # fmt: skip
    """Add its Hessian to the blocks `diagonal` (n, 3w, 3w) and `below` (n - 1, 3w, 3w) of layers of w nodes."""
    f, c = np.empty((3, 3)), np.empty((3, 3))
    fb, cb, block = np.empty((4, 3)), np.empty((4, 3)), np.empty((3, 3))
    layer, column = np.empty(4, dtype=np.int64), np.empty(4, dtype=np.int64)
    for e in range(elements.shape[0]):
        b = slopes[e]
        invariant, volume = _deformation(nodes, elements[e], b, f, c)
        mu, lam = shear[e], bulk[e]
        inner = 1.0 / (invariant + 1.0)
        same, outer = volumes[e] * mu * (1.0 - inner), volumes[e] * 2.0 * mu * inner * inner
        squeezed, press = volumes[e] * lam, volumes[e] * lam * (volume - 1.0 - 0.75 * mu / lam)
        for a in range(4):
            layer[a] = elements[e, a] // width - 1
            column[a] = 3 * (elements[e, a] % width)
            for i in range(3):
                fb[a, i] = f[i, 0] * b[a, 0] + f[i, 1] * b[a, 1] + f[i, 2] * b[a, 2]
                cb[a, i] = c[i, 0] * b[a, 0] + c[i, 1] * b[a, 1] + c[i, 2] * b[a, 2]
        for first in range(4):
            for second in range(first, 4):
                # Rows are of the later layer; both halves of a block on the diagonal are filled.
                one, other = (second, first) if layer[second] >= layer[first] else (first, second)
                if layer[other] < 0:
                    continue
                x = b[one, 1] * b[other, 2] - b[one, 2] * b[other, 1]
                y = b[one, 2] * b[other, 0] - b[one, 0] * b[other, 2]
                z = b[one, 0] * b[other, 1] - b[one, 1] * b[other, 0]
                u = press * (f[0, 0] * x + f[0, 1] * y + f[0, 2] * z)
                v = press * (f[1, 0] * x + f[1, 1] * y + f[1, 2] * z)
                w = press * (f[2, 0] * x + f[2, 1] * y + f[2, 2] * z)
                dot = same * (b[one, 0] * b[other, 0] + b[one, 1] * b[other, 1] + b[one, 2] * b[other, 2])
                for i in range(3):
                    for k in range(3):
                        block[i, k] = outer * fb[one, i] * fb[other, k] + squeezed * cb[one, i] * cb[other, k]
                    block[i, i] += dot
                block[0, 1] += w
                block[1, 0] -= w
                block[0, 2] -= v
                block[2, 0] += v
                block[1, 2] += u
                block[2, 1] -= u
                row, col = column[one], column[other]
                if layer[one] == layer[other]:
                    for i in range(3):
                        for k in range(3):
                            diagonal[layer[one], row + i, col + k] += block[i, k]
                            if one != other:
                                diagonal[layer[one], col + k, row + i] += block[i, k]
                else:
                    for i in range(3):
                        for k in range(3):
                            below[layer[other], row + i, col + k] += block[i, k]


@numba.njit(cache=True, nogil=True)
def _piece(nodes, places, weights):  # type: ignore[no-untyped-def]
    """Return (x, y, z) m along a piece of a cable, by its nodes (6,) and their weights (6,)."""
    x = y = z = 0.0
    for a in range(6):
        share, node = weights[a], places[a]
        x += share * nodes[node, 0]
        y += share * nodes[node, 1]
        z += share * nodes[node, 2]
    return x, y, z


@numba.njit(cache=True, nogil=True)
def cable_lengths(nodes, pieces, weights, cable, lengths):  # type: ignore[no-untyped-def]
    """Set lengths (k,) m of the cables with pieces (S, 6), their weights (S, 6), and the cable (S,) of each."""
    lengths[:] = 0.0
    for s in range(pieces.shape[0]):
        x, y, z = _piece(nodes, pieces[s], weights[s])
        lengths[cable[s]] += np.sqrt(x * x + y * y + z * z)


@numba.njit(cache=True, nogil=True)
def add_cable_slopes(nodes, pieces, weights, cable, slopes):  # type: ignore[no-untyped-def]
    """Add dl/dx of each cable to `slopes` (V, 3, k); other arguments as of `cable_lengths`."""
    for s in range(pieces.shape[0]):
        x, y, z = _piece(nodes, pieces[s], weights[s])
        length = np.sqrt(x * x + y * y + z * z)
        for a in range(6):
            share, node, which = weights[s, a] / length, pieces[s, a], cable[s]
            slopes[node, 0, which] += share * x
            slopes[node, 1, which] += share * y
            slopes[node, 2, which] += share * z


@numba.njit(cache=True, nogil=True)
def add_cable_hessian(nodes, pieces, weights, cable, tension, width, diagonal, below):  # type: ignore[no-untyped-def]
    """Add T d2l/dx2 under tensions (k,) N to the blocks; other arguments as above."""
    along = np.empty(3)
    for s in range(pieces.shape[0]):
        pull = tension[cable[s]]
        if pull == 0.0:
            continue
        along[0], along[1], along[2] = _piece(nodes, pieces[s], weights[s])
        length = np.sqrt(along[0] ** 2 + along[1] ** 2 + along[2] ** 2)
        along /= length
        for one in range(6):
            row_layer = pieces[s, one] // width - 1
            if row_layer < 0 or weights[s, one] == 0.0:
                continue
            for other in range(6):
                col_layer = pieces[s, other] // width - 1
                if col_layer < 0 or col_layer > row_layer:
                    continue
                factor = pull / length * weights[s, one] * weights[s, other]
                row, col = 3 * (pieces[s, one] % width), 3 * (pieces[s, other] % width)
                place = diagonal[row_layer] if row_layer == col_layer else below[col_layer]
                for i in range(3):
                    for k in range(3):
                        place[row + i, col + k] -= factor * along[i] * along[k]
                    place[row + i, col + i] += factor


@numba.njit(cache=True, nogil=True)
def _turn(vector):  # type: ignore[no-untyped-def]
    """Rotation (3, 3) by a rotation vector (Rodrigues)."""
    angle = np.sqrt(vector[0] ** 2 + vector[1] ** 2 + vector[2] ** 2)
    turn = np.eye(3)
    if angle < 1e-12:
        first, second = 1.0, 0.5
    else:
        first, second = np.sin(angle) / angle, (1.0 - np.cos(angle)) / angle**2
    x, y, z = vector
    hat = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return turn + first * hat + second * (hat @ hat)


@numba.njit(cache=True, nogil=True)
def moved_by_layers(nodes, step, width):  # type: ignore[no-untyped-def]
    """Nodes (V, 3) after a step (V, 3), applied as turns and strains of layers that are carried along the arm.

    Applied as it is, a step that turns the arm far would inflate it. Of layer l with centre c_l, step dc_l of it, turn
    w_l by which it moves at best, and what remains of the step, q, with R_0 the turn of the first layer:

        R_(l+1)         = R_l exp(w_(l+1) - w_l),         R_m = R_l exp((w_(l+1) - w_l) / 2)
        c'_(l+1) - c'_l = R_m (c_(l+1) - c_l + dc_(l+1) - dc_l - (w_l + w_(l+1)) / 2 x (c_(l+1) - c_l))
        x'              = c'_l + R_l (x - c_l + q)
    """
    moved = np.empty_like(nodes)
    centre, shift, vector, middle, longer = np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3)
    before, centre_before, shift_before, vector_before = np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3)
    arm, place, turn, inertia = np.zeros(3), np.zeros(3), np.eye(3), np.empty((3, 3))
    for l in range(nodes.shape[0] // width):  # noqa: E741 - as in the formulas
        centre[:], shift[:], vector[:], inertia[:] = 0.0, 0.0, 0.0, 0.0
        for a in range(l * width, (l + 1) * width):
            for i in range(3):
                centre[i] += nodes[a, i] / width
                shift[i] += step[a, i] / width
        for a in range(l * width, (l + 1) * width):
            x, y, z = nodes[a, 0] - centre[0], nodes[a, 1] - centre[1], nodes[a, 2] - centre[2]
            u, v, w = step[a, 0] - shift[0], step[a, 1] - shift[1], step[a, 2] - shift[2]
            inertia[0, 0] += y * y + z * z
            inertia[1, 1] += x * x + z * z
            inertia[2, 2] += x * x + y * y
            inertia[0, 1] -= x * y
            inertia[0, 2] -= x * z
            inertia[1, 2] -= y * z
            vector[0] += y * w - z * v
            vector[1] += z * u - x * w
            vector[2] += x * v - y * u
        inertia[1, 0], inertia[2, 0], inertia[2, 1] = inertia[0, 1], inertia[0, 2], inertia[1, 2]
        vector[:] = np.linalg.solve(inertia, vector)
        if l == 0:
            turn = _turn(vector)
            place[:] = centre + shift
        else:
            middle[:] = 0.5 * (vector + vector_before)
            arm[:] = centre - centre_before
            _cross(middle, arm, longer)
            longer[:] = arm + shift - shift_before - longer
            change = vector - vector_before
            place[:] = before + turn @ (_turn(0.5 * change) @ longer)
            turn = turn @ _turn(change)
        for a in range(l * width, (l + 1) * width):
            for i in range(3):
                arm[i] = nodes[a, i] - centre[i]
            _cross(vector, arm, longer)
            for i in range(3):
                longer[i] = arm[i] + step[a, i] - shift[i] - longer[i]
            for i in range(3):
                moved[a, i] = place[i] + turn[i, 0] * longer[0] + turn[i, 1] * longer[1] + turn[i, 2] * longer[2]
        before[:], centre_before[:], shift_before[:], vector_before[:] = place, centre, shift, vector
    return moved


@numba.njit(cache=True, nogil=True)
def _cross(one, other, product):  # type: ignore[no-untyped-def]
    """Set the product of two vectors, which it must not be itself."""
    product[0] = one[1] * other[2] - one[2] * other[1]
    product[1] = one[2] * other[0] - one[0] * other[2]
    product[2] = one[0] * other[1] - one[1] * other[0]
