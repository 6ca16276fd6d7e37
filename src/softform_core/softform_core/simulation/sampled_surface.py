"""A body with a surface in data sets: its vertices."""

from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.simulation.newton import NO_EQUILIBRIUM_ADVICE, find_equilibria
from softform_core.simulation.sampled_body import Solved
from softform_core.simulation.simulated_body import SimulatedBody, rest_points


class SampledSurface:
    """`SampledBody` of a body that gives the vertices of its surface, and solves one sample at a time."""

    block = 1

    def __init__(self, body: SimulatedBody) -> None:
        self._body = body
        self.constants: dict[str, NDArray] = {"rest_vertices": rest_points(body), "faces": body.faces}

    def output_shapes(self, degrees_of_freedom: int) -> dict[str, tuple[int, ...]]:
        """`vertices` (V, 3) m."""
        return {"vertices": self.constants["rest_vertices"].shape}

    def solve(self, actuators: Array, by_actuation: Array) -> Solved:
        """Vertices under pressures (b, k) Pa."""
        found = find_equilibria(self._body, actuators)
        failures = [f"{reason} {NO_EQUILIBRIUM_ADVICE}" if reason else "" for reason in found.failures]
        return Solved({"vertices": self._body.points(found.unknowns)}, found.iterations, failures)
