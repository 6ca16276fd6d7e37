"""Random values for realities that are drawn."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def log_uniform(draw: np.random.Generator, low: float, high: float) -> float:
    """A number whose logarithm is uniform between those of `low` and `high`."""
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def some_of(fields: Mapping[str, Any], chances: Mapping[str, float], draw: np.random.Generator) -> dict[str, Any]:
    """The fields that a reality has, each with its chance; all are drawn before: a chance changes no other field."""
    return {name: value for name, value in fields.items() if draw.random() < chances[name]}
