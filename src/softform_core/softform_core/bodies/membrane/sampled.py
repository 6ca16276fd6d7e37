"""The membrane in data sets: its vertices."""

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.membrane.equilibrium import MembraneProblem
from softform_core.bodies.membrane.model import Membrane
from softform_core.simulation.newton import NO_EQUILIBRIUM_ADVICE, find_equilibria
from softform_core.simulation.sampled_body import Solved


class SampledMembrane:
    """`SampledBody` of a membrane."""

    block = 1

    def __init__(self, membrane: Membrane) -> None:
        self._problem = MembraneProblem(membrane)
        self.constants: dict[str, NDArray] = {"rest_vertices": membrane.rest_vertices, "faces": membrane.faces}

    def output_shapes(self, degrees_of_freedom: int) -> dict[str, tuple[int, ...]]:
        """`vertices` (V, 3) m."""
        return {"vertices": self.constants["rest_vertices"].shape}

    def solve(self, actuators: Array, by_actuation: Array) -> Solved:
        """Vertices under pressures (b, k) Pa."""
        found = find_equilibria(self._problem, actuators)
        vertices = np.stack([self._problem.vertices(unknowns) for unknowns in found.unknowns])
        failures = [f"{reason} {NO_EQUILIBRIUM_ADVICE}" if reason else "" for reason in found.failures]
        return Solved({"vertices": vertices}, found.iterations, failures)
