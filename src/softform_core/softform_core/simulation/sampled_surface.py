"""A body with a surface in data sets: its vertices."""

from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.simulation.newton import NO_EQUILIBRIUM_ADVICE, find_equilibria
from softform_core.simulation.sampled_body import Solved
from softform_core.simulation.simulated_body import SimulatedBody, rest_points

_LARGEST_BLOCK = 8
"""Most samples that are solved and written together: what an interrupted run loses at most."""


class SampledSurface:
    """`SampledBody` of a body whose points are the vertices of its surface."""

    def __init__(self, body: SimulatedBody) -> None:
        self._body, self.block = body, min(body.batch, _LARGEST_BLOCK)
        self.constants: dict[str, NDArray] = {"rest_vertices": rest_points(body), "faces": body.faces}

    def output_shapes(self, degrees_of_freedom: int) -> dict[str, tuple[int, ...]]:
        """`vertices` (V, 3) m."""
        return {"vertices": self.constants["rest_vertices"].shape}

    def solve(self, actuators: Array, by_actuation: Array) -> Solved:
        """Vertices under commands (b, k)."""
        found = find_equilibria(self._body, actuators)
        failures = [f"{reason} {NO_EQUILIBRIUM_ADVICE}" if reason else "" for reason in found.failures]
        return Solved({"vertices": self._body.points(found.unknowns)}, found.iterations, failures)
