"""Membranes in data sets, many at once on a device; what is given up there the single solver does."""

import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.membrane.equilibrium import MembraneProblem
from softform_core.bodies.membrane.warp_membranes import WarpMembranes
from softform_core.simulation.sampled_body import SampledSurface, Solved

_BLOCK = 64
"""Samples that are solved and written together: 0.1 GB on the device, 3 MB a chunk of the store."""


class BatchedMembranes(SampledSurface):
    """`SampledBody` of a membrane; arguments and errors as `WarpMembranes`."""

    def __init__(self, problem: MembraneProblem, device: str) -> None:
        super().__init__(problem)
        self.block, self._batched = _BLOCK, WarpMembranes(problem, device)

    def solve(self, actuators: Array, by_actuation: Array) -> Solved:
        """Vertices under pressures (b, k)."""
        vertices, converged, iterations = self._batched.solve(actuators)
        failures = [""] * len(actuators)
        for sample in np.flatnonzero(~converged).tolist():
            one = super().solve(actuators[sample : sample + 1], by_actuation[sample : sample + 1])
            vertices[sample], iterations[sample] = one.outputs["vertices"][0], one.iterations[0]
            failures[sample] = one.failures[0]
        return Solved({"vertices": vertices}, iterations, failures, ~converged)
