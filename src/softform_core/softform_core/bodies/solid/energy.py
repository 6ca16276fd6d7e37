"""Energy of nearly incompressible fibre-reinforced elements, its gradient and the Hessian of a Newton step.

Per element and quadrature point, with F = dx/dX (3, 3), J = det F, I1 = J^(-2/3) tr F^T F and I4 = |F a|^2 along the
unit direction a of the fibres:

    shape               W(I1) dV                 at the points of the first rule
    fibres              k / 8 (I4 - 1)^2 dV      likewise
    volume              K / 2 (J - 1)^2 dV       at the points of the second rule

The second rule has fewer points: what a wedge of 18 nodes can do without changing its volume at 18 points is too little
to bend, and so it is with a tetrahedron of 10 at 4 (selective reduced integration).

With B_a = dN_a/dX (3,), the cofactors c = dJ/dF = J F^-T, G = c / J, and i, k axes of nodes a, b in space, j, l those
at rest, a point adds B_aj P_ij to the gradient and B_aj A_ijkl B_bl to the Hessian:

    dI1/dF_ij          = S_ij = 2 J^(-2/3) F_ij - 2/3 I1 G_ij
    d2I1/dF_ij dF_kl   = 2 J^(-2/3) delta_ik delta_jl - 2/3 (S_ij G_kl + G_ij S_kl) - 4/9 I1 G_ij G_kl
                       + 2/3 I1 G_il G_kj
    W                  : P = W' S,  A = W'' S_ij S_kl + W' d2I1
    k / 8 (I4 - 1)^2   : P = k / 2 (I4 - 1) (F a)_i a_j,
                         A = k (F a)_i a_j (F a)_k a_l + k / 2 (I4 - 1) delta_ik a_j a_l
    K / 2 (J - 1)^2    : P = K (J - 1) c_ij,  A = K c_ij c_kl + p d2J,
                         d2J/dF_ij dF_kl = J (G_ij G_kl - G_il G_kj)

Each term of A but those with delta_ik is a product of two tensors T, so that an element's matrix is a product of two
matrices of all B_aj T_ij (`_spread`).

The exact Hessian has p = K (J - 1). There a small error of J is a large stress, and Newton's method takes short steps.
The Newton step of the problem in which p is an unknown of its own at every point (p = K (J - 1) is its other equation),
with p eliminated, is the same but for p = K (J0 - 1 + c0 : (F - F0)): the pressure that the last step, from `before`
(index 0), linearly led to. So it is with the stresses Sigma = 2 dW/dC of stiff plates and fibres, which a finite turn
would stretch: with C = F^T F, dC = F0^T (F - F0) + its transpose and s = J^(-2/3),

    A                 += delta_ik (Sigma0 + dSigma - Sigma)_jl
    Sigma              = 2 W' s (1 - tr C / 3 C^-1)  +  k / 2 (I4 - 1) a a^T
    dSigma             = 2 (W'' dI1 - W' / 3 C^-1 : dC) s (1 - tr C / 3 C^-1)
                       + 2 W' s / 3 (tr C C^-1 dC C^-1 - tr dC C^-1)  +  k / 2 (a . dC a) a a^T
    dI1                = s (tr dC - tr C / 3 C^-1 : dC)

All of this is nil where both positions agree (mixed integration points: Magisano, Leonetti, Garcea, Int. J. Numer.
Meth. Engng. 109, 2017).
"""

import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.solid.model import Solid
from softform_core.simulation.materials import energy_densities, energy_slopes


def strain_energies(solid: Solid, nodes: Array) -> tuple[float, float]:
    """Energy of all elements, J, and the least J of all points; infinite energy where a point is crushed.

    Args:
        solid: The solid.
        nodes: (V, 3) m.
    """
    shape, volumetric = _deformations(solid, nodes)
    volume, stretched_volume = np.linalg.det(shape), np.linalg.det(volumetric)
    least = float(min(volume.min(), stretched_volume.min()))
    if not least > 0.0:
        return np.inf, least
    energy = 0.5 * np.sum(solid.bulk_volumes * (stretched_volume - 1.0) ** 2)
    invariant = volume ** (-2.0 / 3.0) * (shape**2).sum(axis=(2, 3))
    density = energy_densities(solid.law, solid.coefficients, invariant)
    energy += np.sum(solid.shape_volumes * density)
    longer = (_along(solid, shape) ** 2).sum(axis=2) - 1.0
    return float(energy + 0.125 * np.sum(solid.fibre_volumes * longer**2)), least


def forces_and_stiffness(solid: Solid, nodes: Array, before: Array) -> tuple[Array, Array]:
    """Gradient (E, n, 3) N of `strain_energies` by the nodes of each element, and (E, n, 3, n, 3) N/m, A of each.

    Args:
        solid: The solid.
        nodes: (V, 3) m.
        before: (V, 3) m, where the last step began.
    """
    shape, volumetric = _deformations(solid, nodes)
    shape_before, volumetric_before = _deformations(solid, before)
    forces, hessian, crossed = _of_volume(solid, volumetric, volumetric_before)
    _add_shape(solid, shape, shape_before, forces, hessian, crossed)
    count = forces.shape[1]
    stiffness = hessian.reshape(-1, count, 3, count, 3)
    stiffness += crossed.reshape(-1, count, 3, count, 3).swapaxes(2, 4)
    return forces, stiffness


def _deformations(solid: Solid, nodes: Array) -> tuple[Array, Array]:
    """F (E, q, 3, 3) at the points of both rules."""
    places = nodes[solid.elements][:, None].swapaxes(2, 3)
    return places @ solid.shape_gradients, places @ solid.volume_gradients


def _of_volume(solid: Solid, f: Array, f0: Array) -> tuple[Array, Array, Array]:
    """Of K / 2 (J - 1)^2: forces, the Hessian's products, and those where the axes i and k are exchanged."""
    (c, volume), (c0, volume0) = _cofactors(f), _cofactors(f0)
    bulk = solid.bulk_volumes
    over = bulk * (volume0 - 1.0 + _dot(c0, f - f0)) / volume  # p / J
    spread = _spread(solid.volume_gradients, c)
    forces = np.einsum("eq,eqm->em", bulk * (volume - 1.0), spread)
    hessian = spread.swapaxes(1, 2) @ ((bulk + over)[..., None] * spread)
    crossed = spread.swapaxes(1, 2) @ (-over[..., None] * spread)
    return forces.reshape(len(f), -1, 3), hessian, crossed


def _add_shape(solid: Solid, f: Array, f0: Array, forces: Array, hessian: Array, crossed: Array) -> None:
    """Add the terms of W and of the fibres to the results of `_of_volume`."""
    c, volume = _cofactors(f)
    scale = volume ** (-2.0 / 3.0)
    invariant = scale * _dot(f, f)
    slopes = energy_slopes(solid.law, solid.coefficients, invariant)
    slope, curvature = (one * solid.shape_volumes for one in slopes)
    g = c / volume[..., None, None]
    s = 2.0 * scale[..., None, None] * f - (2.0 / 3.0 * invariant)[..., None, None] * g
    g, s = _spread(solid.shape_gradients, g), _spread(solid.shape_gradients, s)
    third = slope[..., None] / 1.5
    forces += np.einsum("eq,eqm->em", slope, s).reshape(forces.shape)
    hessian += s.swapaxes(1, 2) @ (curvature[..., None] * s - third * g)
    hessian -= g.swapaxes(1, 2) @ (third * (s + (invariant / 1.5)[..., None] * g))
    crossed += g.swapaxes(1, 2) @ (third * invariant[..., None] * g)

    ours, fibres = solid.fibred, solid.fibres[solid.fibred, : f.shape[1]]
    stretched = _along(solid, f)
    tension = 0.5 * solid.fibre_volumes * ((stretched**2).sum(axis=2) - 1.0)
    pulled = _spread(solid.shape_gradients[ours], stretched[..., None] * fibres[:, :, None])
    forces[ours] += np.einsum("eq,eqm->em", tension, pulled).reshape(len(ours), *forces.shape[1:])
    hessian[ours] += pulled.swapaxes(1, 2) @ (solid.fibre_volumes[..., None] * pulled)

    inside = (2.0 * slope * scale)[..., None, None] * np.eye(3)  # A less its products: delta_ik times this
    if not np.array_equal(f, f0):
        change = f0.swapaxes(2, 3) @ (f - f0)
        change += change.swapaxes(2, 3)
        ahead = _law_stresses(solid, f0, change) - _law_stresses(solid, f, np.zeros_like(change))
        inside += solid.shape_volumes[..., None, None] * ahead
        led = (_along(solid, f0) ** 2).sum(axis=2) - 1.0 + np.einsum("eqi,eqij,eqj->eq", fibres, change[ours], fibres)
        tension = 0.5 * solid.fibre_volumes * led
    inside[ours] += tension[..., None, None] * fibres[..., None] * fibres[:, :, None]
    count, b = forces.shape[1], solid.shape_gradients
    rows = (b @ inside).swapaxes(2, 3).reshape(len(b), -1, count)
    same = rows.swapaxes(1, 2) @ b.swapaxes(2, 3).reshape(len(b), -1, count)
    axes = np.arange(3)
    hessian.reshape(-1, count, 3, count, 3)[:, :, axes, :, axes] += same


def _law_stresses(solid: Solid, f: Array, change: Array) -> Array:
    """Sigma + dSigma (E, q, 3, 3) of W alone, Pa, for a change dC."""
    c, volume = _cofactors(f)
    inverse = c.swapaxes(2, 3) @ c / (volume**2)[..., None, None]
    scale, trace = volume ** (-2.0 / 3.0), _dot(f, f)
    slope, curvature = energy_slopes(solid.law, solid.coefficients, scale * trace)
    grown, compressed = np.trace(change, axis1=2, axis2=3), _dot(inverse, change)
    factor = slope + curvature * scale * (grown - trace / 3.0 * compressed) - slope / 3.0 * compressed
    twice = (slope * trace / 3.0)[..., None, None] * (inverse @ change @ inverse)
    once = ((factor * trace + slope * grown) / 3.0)[..., None, None] * inverse
    return np.asarray(2.0 * scale[..., None, None] * (factor[..., None, None] * np.eye(3) + twice - once))


def _along(solid: Solid, f: Array) -> Array:
    """F a (W, q, 3) in the elements with fibres."""
    return np.asarray((f[solid.fibred] @ solid.fibres[solid.fibred, : f.shape[1], :, None])[..., 0])


def _spread(gradients: Array, tensor: Array) -> Array:
    """B_aj T_ij (E, q, 3 n), by node and axis."""
    return (gradients @ tensor.swapaxes(2, 3)).reshape(*tensor.shape[:2], 3 * gradients.shape[2])


def _cofactors(f: Array) -> tuple[Array, Array]:
    """Cofactors det F F^-T (…, 3, 3) and det F (…,)."""
    c = np.cross(np.roll(f, -1, axis=-2), np.roll(f, -2, axis=-2))
    return c, np.asarray((f[..., 0, :] * c[..., 0, :]).sum(axis=-1))


def _dot(one: Array, other: Array) -> Array:
    """Products one : other, (…,)."""
    return np.asarray(np.einsum("...ij,...ij->...", one, other))
