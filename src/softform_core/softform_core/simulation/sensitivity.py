"""How the equilibrium moves with the pressures, by the implicit function theorem.

At equilibrium the gradient of Pi vanishes for every p; its derivative by p_i gives H dx/dp_i = dV_i/dx, with the
Hessian H of Pi and the volume V_i of chamber i.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import SuperLU

from softform_core.errors import SoftformError
from softform_core.simulation.energy import chamber_volumes
from softform_core.simulation.equilibrium import Equilibrium, factorised, gradient_and_hessian
from softform_core.simulation.membrane import Membrane

_REFINEMENTS = 3
_SMALLEST_PIVOT = 1e-10  # of the largest; 1e-16 on a slack flat sheet, above 1e-4 elsewhere


def volumes_and_gradients(
    membrane: Membrane, vertices: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Volume between each chamber's membrane and the plane of the rims, (k,) m^3, and its gradient, (k, V, 3) m^2."""
    volumes = np.zeros(membrane.chambers)
    gradients = np.zeros((membrane.chambers, *membrane.rest_vertices.shape))
    chamber_volumes(
        vertices, membrane.elements, membrane.shapes, membrane.gradients, membrane.areas,
        membrane.chamber_of_element, volumes, gradients,
    )  # fmt: skip
    return volumes, gradients


def equilibrium_sensitivity(membrane: Membrane, equilibrium: Equilibrium) -> NDArray[np.float64]:
    """Derivative of the vertices by the chamber pressures, (V, 3, k) m/Pa.

    The last factor of Newton's method belongs to the iterate before the last; a few refinements with the Hessian at
    the equilibrium itself close that gap. An equilibrium that took no iteration has no factor; it is made here.

    Raises:
        SoftformError: If the equilibrium is a slack flat sheet, whose out-of-plane stiffness is nil.
    """
    order = membrane.pattern.order
    _, hessian = gradient_and_hessian(membrane, equilibrium.vertices, equilibrium.pressures)
    factor = _factor_at(hessian) if equilibrium.factor is None else equilibrium.factor
    if factor is None:
        raise SoftformError(
            "The unloaded flat membrane has no stiffness out of its plane, hence no finite sensitivity.",
            "Take an equilibrium under some pressure, or a sheet that is mounted taut (prestretch).",
        )
    _, volume_gradients = volumes_and_gradients(membrane, equilibrium.vertices)
    load = volume_gradients.reshape(membrane.chambers, -1)[:, order].T.copy()
    solution = factor.solve(load)
    for _ in range(_REFINEMENTS):
        solution += factor.solve(load - hessian @ solution)
    sensitivity = np.zeros((membrane.rest_vertices.size, membrane.chambers))
    sensitivity[order] = solution
    return sensitivity.reshape(-1, 3, membrane.chambers)


def _factor_at(hessian: csc_matrix) -> SuperLU | None:
    """Factor of the Hessian; None where it is not positive definite beyond rounding, as on the unloaded flat sheet."""
    try:
        factor = factorised(hessian)
    except RuntimeError:  # exactly singular
        return None
    pivots = factor.U.diagonal()
    return factor if pivots.min() > _SMALLEST_PIVOT * pivots.max() else None
