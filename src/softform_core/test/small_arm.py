"""A small arm with cables, for tests."""

from functools import cache

import numpy as np

from softform_core.bodies.cable_arm.description import CableArmBody
from softform_core.bodies.cable_arm.equilibrium import ArmProblem

AROUND = [0.0, 2.0943951, 4.1887902]
SMALL = {
    "kind": "cable_arm",
    "radius": 0.03,
    "sections": [
        {"length": 0.12, "layers": 5, "cables": AROUND},
        {"length": 0.12, "layers": 5, "cables": [0.4, 2.5, 4.6]},
    ],
    "rings": 1,
    "cable_circle": 0.02,
    "cable_stiffness": 2000.0,
    "density": 300.0,
    "material": {"law": "neo_hookean", "coefficients": [30e3]},
    "poisson_ratio": 0.3,
    "gravity": (0.0, 0.0, 9.81),
}
PULLS = np.array([[0.006, 0.001, 0.0, 0.008, 0.001, -0.004]])


def small(**fields: object) -> CableArmBody:
    return CableArmBody.model_validate(SMALL | fields)


@cache
def problem() -> ArmProblem:
    return small().simulator()
