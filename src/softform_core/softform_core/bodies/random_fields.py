"""Random values for realities that are drawn."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from softform_core.robots.description import Material, Place
from softform_core.simulation.materials import shear_modulus


def log_uniform(draw: np.random.Generator, low: float, high: float) -> float:
    """A number whose logarithm is uniform between those of `low` and `high`."""
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def some_of(fields: Mapping[str, Any], chances: Mapping[str, float], draw: np.random.Generator) -> dict[str, Any]:
    """The fields that a reality has, each with its chance; all are drawn before: a chance changes no other field."""
    return {name: value for name, value in fields.items() if draw.random() < chances[name]}


class Stiffening(NamedTuple):
    """Ranges of what is drawn of laws that stiffen: Gent's limit of I1 - 3, Yeoh's c2 and c3 over the shear modulus."""

    limit: tuple[float, float]
    second: tuple[float, float]
    third: tuple[float, float]


SHEETS = Stiffening((6.0, 14.0), (0.0, 0.01), (0.005, 0.02))
SOLIDS = Stiffening((8.0, 20.0), (0.01, 0.03), (0.02, 0.05))


def another_silicone(
    material: Material, stiffness: tuple[float, float], stiffening: Stiffening, draw: np.random.Generator
) -> Material:
    """A material by Gent's law or Yeoh's, whose shear modulus is within `stiffness` of the described one."""
    modulus = shear_modulus(material) * log_uniform(draw, *stiffness)
    gent = [modulus, draw.uniform(*stiffening.limit)]
    yeoh = [0.5 * modulus, draw.uniform(*stiffening.second) * modulus, draw.uniform(*stiffening.third) * modulus]
    if draw.random() < 0.5:
        return Material(law="gent", coefficients=gent)
    return Material(law="yeoh", coefficients=yeoh)


def tilted(gravity: Place, tilt: np.ndarray) -> Place:
    """Gravity (m/s^2) as a robot feels it that is tilted by two small angles (2,) rad."""
    x, y, z = np.asarray(gravity) + np.linalg.norm(gravity) * np.array([*tilt, 0.0])
    return float(x), float(y), float(z)
