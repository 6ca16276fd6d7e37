"""Incompressible hyperelastic laws W(I1) under plane stress.

A membrane element has the in-plane right Cauchy-Green tensor C (2, 2); incompressibility makes its thickness stretch
1 / sqrt(det C), hence I1 = tr C + 1 / det C. All laws are per rest volume, Pa:

- `neo_hookean` [mu]: W = mu / 2 (I1 - 3)
- `yeoh` [c1, c2, c3]: W = c1 (I1 - 3) + c2 (I1 - 3)^2 + c3 (I1 - 3)^3, mu = 2 c1
- `gent` [mu, j_max]: W = -mu / 2 j_max ln(1 - (I1 - 3) / j_max); j_max is a number, the largest I1 - 3
"""

import numba
import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.robots.description import Material

NEO_HOOKEAN, YEOH, GENT = 0, 1, 2
_LAWS = {"neo_hookean": (NEO_HOOKEAN, 1), "yeoh": (YEOH, 3), "gent": (GENT, 2)}


def law_and_coefficients(material: Material) -> tuple[int, NDArray[np.float64]]:
    """Number of the law for the kernels and its coefficients.

    Raises:
        SoftformError: If the law does not take so many coefficients, or they describe no elastic solid.
    """
    law, count = _LAWS[material.law]
    coefficients = np.asarray(material.coefficients, dtype=np.float64)
    if coefficients.shape != (count,) or not np.isfinite(coefficients).all():
        raise SoftformError(
            f"Material law '{material.law}' takes {count} finite coefficients, got {material.coefficients}.",
            "See docs/robots/membrane.md for the laws.",
        )
    if coefficients[0] <= 0.0 or (law == GENT and coefficients[1] <= 0.0):
        raise SoftformError(
            f"Material {material.law} {material.coefficients} has no positive shear modulus or stretch limit.",
            "The first coefficient (and j_max of gent) must be positive.",
        )
    return law, coefficients


def shear_modulus(material: Material) -> float:
    """Shear modulus mu at small strain, Pa; Young's modulus is 3 mu (incompressible)."""
    law, coefficients = law_and_coefficients(material)
    return float(2.0 * coefficients[0] if law == YEOH else coefficients[0])


@numba.njit(cache=True)
def strain_energy(law, coefficients, first_invariant):  # type: ignore[no-untyped-def]
    """W, dW/dI1 and d2W/dI1^2 at I1, Pa; infinite energy past the stretch limit of Gent's law."""
    j = first_invariant - 3.0
    if law == NEO_HOOKEAN:
        return 0.5 * coefficients[0] * j, 0.5 * coefficients[0], 0.0
    if law == YEOH:
        c1, c2, c3 = coefficients[0], coefficients[1], coefficients[2]
        return j * (c1 + j * (c2 + j * c3)), c1 + j * (2.0 * c2 + 3.0 * j * c3), 2.0 * c2 + 6.0 * j * c3
    mu, j_max = coefficients[0], coefficients[1]
    if j >= j_max:
        return np.inf, 0.0, 0.0
    return (
        -0.5 * mu * j_max * np.log(1.0 - j / j_max),
        0.5 * mu * j_max / (j_max - j),
        0.5 * mu * j_max / (j_max - j) ** 2,
    )
