"""Incompressible hyperelastic laws W(I1), and the one table of them.

A membrane element has the in-plane right Cauchy-Green tensor C (2, 2); incompressibility makes its thickness stretch
1 / sqrt(det C), hence I1 = tr C + 1 / det C. All laws are per rest volume, Pa, with j = I1 - 3:

- `neo_hookean` [mu]: W = mu / 2 j
- `yeoh` [c1, c2, c3]: W = c1 j + c2 j^2 + c3 j^3, mu = 2 c1
- `gent` [mu, j_max]: W = -mu / 2 j_max ln(1 - j / j_max); j_max is a number, the largest j
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from softform_core.robots.description import Material


@dataclass(frozen=True)
class Law:
    """One law.

    Attributes:
        shear_modulus: mu at small strain, Pa, of the coefficients, Pa.
        energy: W of the coefficients and j: numbers, then numba compiles it, or arrays.
        slopes: dW/dI1 and d2W/dI1^2 of the same.
    """

    shear_modulus: Callable[[NDArray[np.float64]], float]
    energy: Any
    slopes: Any


def _neo_hookean(coefficients, j):  # type: ignore[no-untyped-def]
    return 0.5 * coefficients[0] * j


def _neo_hookean_slopes(coefficients, j):  # type: ignore[no-untyped-def]
    return 0.5 * coefficients[0], 0.0 * j


def _yeoh(coefficients, j):  # type: ignore[no-untyped-def]
    c1, c2, c3 = coefficients[0], coefficients[1], coefficients[2]
    return j * (c1 + j * (c2 + j * c3))


def _yeoh_slopes(coefficients, j):  # type: ignore[no-untyped-def]
    c1, c2, c3 = coefficients[0], coefficients[1], coefficients[2]
    return c1 + j * (2.0 * c2 + 3.0 * c3 * j), 2.0 * c2 + 6.0 * c3 * j


def _gent(coefficients, j):  # type: ignore[no-untyped-def]
    mu, j_max = coefficients[0], coefficients[1]
    return -0.5 * mu * j_max * np.log(np.maximum(1.0 - j / j_max, 0.0))  # infinite past the stretch limit


def _gent_slopes(coefficients, j):  # type: ignore[no-untyped-def]
    mu, j_max = coefficients[0], coefficients[1]
    left = np.maximum(j_max - j, 1e-9 * j_max)
    return 0.5 * mu * j_max / left, 0.5 * mu * j_max / left**2


LAWS = {
    "neo_hookean": Law(lambda c: c[0], _neo_hookean, _neo_hookean_slopes),
    "yeoh": Law(lambda c: 2.0 * c[0], _yeoh, _yeoh_slopes),
    "gent": Law(lambda c: c[0], _gent, _gent_slopes),
}
"""Every law by its name in a robot's description."""


def law_and_coefficients(material: Material) -> tuple[int, NDArray[np.float64]]:
    """Number of the law for the kernels and its coefficients."""
    return list(LAWS).index(material.law), np.asarray(material.coefficients, dtype=np.float64)


def shear_modulus(material: Material) -> float:
    """Shear modulus mu at small strain, Pa; Young's modulus is 3 mu (incompressible)."""
    return float(LAWS[material.law].shear_modulus(law_and_coefficients(material)[1]))


def scaled(material: Material, factor: float) -> Material:
    """A material of `factor` times the modulus; of Gent's law the second coefficient is no modulus."""
    coefficients = [factor * value for value in material.coefficients]
    if material.law == "gent":
        coefficients[1:] = material.coefficients[1:]
    return Material(law=material.law, coefficients=coefficients)


def energy_densities(law: int, coefficients: NDArray[np.float64], first_invariants: NDArray[np.float64]) -> Any:
    """W (…, E, q) Pa of coefficients (E, c), or (1, c) of all, at I1 (…, E, q); infinite past a law's stretch limit."""
    with np.errstate(divide="ignore"):
        return _BY_NUMBER[law].energy(coefficients.T[..., None], first_invariants - 3.0)


def energy_slopes(law: int, coefficients: NDArray[np.float64], first_invariants: NDArray[np.float64]) -> Any:
    """dW/dI1 and d2W/dI1^2, Pa, as `energy_densities`; (…, E, 1) where it is constant."""
    return _BY_NUMBER[law].slopes(coefficients.T[..., None], first_invariants - 3.0)


_BY_NUMBER = tuple(LAWS.values())


@numba.njit(inline="always")
def _no_law(law, coefficients, j):  # type: ignore[no-untyped-def]
    return np.nan, np.nan, np.nan


def _or_else(number: int, this: Law, other: Any) -> Any:
    energy, slopes = (numba.njit(inline="always")(one) for one in (this.energy, this.slopes))

    @numba.njit(inline="always")
    def chosen(law, coefficients, j):  # type: ignore[no-untyped-def]
        if law == number:
            slope, curvature = slopes(coefficients, j)
            return energy(coefficients, j), slope, curvature
        return other(law, coefficients, j)

    return chosen


_of_law = _no_law
for _number, _law in reversed(list(enumerate(_BY_NUMBER))):
    _of_law = _or_else(_number, _law, _of_law)


@numba.njit(cache=True)
def strain_energy(law, coefficients, first_invariant):  # type: ignore[no-untyped-def]
    """W, dW/dI1 and d2W/dI1^2 at I1, Pa, of the law of this number; infinite past a law's stretch limit."""
    return _of_law(law, coefficients, first_invariant - 3.0)
