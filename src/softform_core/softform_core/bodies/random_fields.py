"""Random values for realities that are drawn."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from softform_core.robots.description import Material, Place
from softform_core.simulation.materials import shear_modulus


def log_uniform(draw: np.random.Generator, low: float, high: float) -> float:
    """A number whose logarithm is uniform between those of `low` and `high`."""
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def some_of(fields: Mapping[str, Any], chances: Mapping[str, float], draw: np.random.Generator) -> dict[str, Any]:
    """The fields that a reality has, each with its chance; all are drawn before: a chance changes no other field."""
    return {name: value for name, value in fields.items() if draw.random() < chances[name]}


def another_silicone(material: Material, draw: np.random.Generator) -> Material:
    """A material that stiffens, by Gent's law or Yeoh's, 0.8 to 1.25 times as stiff as the described one."""
    modulus = shear_modulus(material) * log_uniform(draw, 0.8, 1.25)
    gent = Material(law="gent", coefficients=[modulus, draw.uniform(8.0, 20.0)])
    yeoh = Material(
        law="yeoh", coefficients=[0.5 * modulus, draw.uniform(0.01, 0.03) * modulus, draw.uniform(0.02, 0.05) * modulus]
    )
    return gent if draw.random() < 0.5 else yeoh


def tilted(gravity: Place, tilt: np.ndarray) -> Place:
    """Gravity (m/s^2) as a robot feels it that is tilted by two small angles (2,) rad."""
    x, y, z = np.asarray(gravity) + np.linalg.norm(gravity) * np.array([*tilt, 0.0])
    return float(x), float(y), float(z)
