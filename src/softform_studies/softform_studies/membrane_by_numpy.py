"""Gradient and Hessian of a membrane by numpy's einsum, to measure what the compiled assembly is worth.

The sums of `bodies.membrane.energy.assemble`, for a sheet that is taut everywhere (the terms of wrinkles would make
numpy slower still) and of Yeoh's law.
"""

from typing import Any

import numpy as np

from softform_core.arrays import Array


def taut_gradient_and_hessian(membrane: Any, vertices: Array, pressures: Array) -> tuple[Array, Array]:
    """Gradient (V, 3) N of the elements, and their part of the sparse Hessian's values (m,) N/m.

    Args:
        membrane: The model of a body of kind `membrane`.
        vertices: (V, 3) m.
        pressures: (k,) Pa.
    """
    places, b = vertices[membrane.elements], membrane.gradients  # (E, n, 3), (E, q, n, 2)
    f = np.einsum("eak,eqai->eqki", places, b)
    c = np.einsum("eqki,eqkj->eqij", f, f)
    phi = 1.0 / np.linalg.det(c)
    inverse_c = np.linalg.inv(c)
    c1, c2, c3 = membrane.coefficients
    j = np.trace(c, axis1=2, axis2=3) + phi - 3.0
    elastic = membrane.areas * membrane.thickness[:, None]
    slope, curvature = elastic * (c1 + j * (2.0 * c2 + 3.0 * j * c3)), elastic * (2.0 * c2 + 6.0 * j * c3)
    raised = np.einsum("eqij,eqaj->eqai", inverse_c, b)
    inverse = np.einsum("eqki,eqai->eqak", f, raised)
    stress = 2.0 * (np.einsum("eqki,eqai->eqak", f, b) - phi[:, :, None, None] * inverse)
    normal = np.cross(f[..., 0], f[..., 1]) * np.sqrt(phi)[:, :, None]
    follower = membrane.areas * membrane.pressure_of_element(pressures)[:, None]
    height = np.einsum("aq,ea->eq", membrane.shapes, places[:, :, 2])
    projected = f[:, :, 0, 0] * f[:, :, 1, 1] - f[:, :, 0, 1] * f[:, :, 1, 0]
    curtain = np.zeros_like(stress)
    curtain[..., 0] = b[..., 0] * f[:, :, 1, 1, None] - b[..., 1] * f[:, :, 1, 0, None]
    curtain[..., 1] = f[:, :, 0, 0, None] * b[..., 1] - f[:, :, 0, 1, None] * b[..., 0]
    volume = height[:, :, None, None] * curtain
    volume[..., 2] = membrane.shapes.T * projected[:, :, None]
    forces = np.einsum("eq,eqak->eak", slope, stress) - np.einsum("eq,eqak->eak", follower, volume)

    unit = np.eye(3)
    hessian = np.einsum("eq,eqak,eqbm->eakbm", curvature, stress, stress, optimize=True)
    hessian += np.einsum("eq,eqak,eqbm->eakbm", 4.0 * phi * slope, inverse, inverse, optimize=True)
    hessian += np.einsum("eq,eqbk,eqam->eakbm", 2.0 * phi * slope, inverse, inverse, optimize=True)
    bent = np.einsum("eq,eqai,eqbi->eqab", 2.0 * phi * slope, b, raised, optimize=True)
    hessian -= np.einsum("eqab,eqk,eqm->eakbm", bent, normal, normal, optimize=True)
    hessian += np.einsum("eq,eqai,eqbi,km->eakbm", 2.0 * slope, b, b, unit, optimize=True)
    lifted = np.einsum("eq,aq,eqbm,k->eakbm", follower, membrane.shapes, curtain, unit[2], optimize=True)
    hessian -= lifted + lifted.transpose(0, 3, 4, 1, 2)
    turned = np.einsum("eq,eqa,eqb->eab", follower * height, b[..., 0], b[..., 1], optimize=True)
    turned -= turned.swapaxes(1, 2)
    hessian[:, :, 0, :, 1] -= turned
    hessian[:, :, 1, :, 0] += turned

    gradient = np.zeros_like(vertices)
    np.add.at(gradient, membrane.elements, forces)
    slots = membrane.pattern.slots.ravel()
    inside = slots >= 0
    values = np.zeros(len(membrane.pattern.constant))
    np.add.at(values, slots[inside], hessian.ravel()[inside])
    return gradient, values
