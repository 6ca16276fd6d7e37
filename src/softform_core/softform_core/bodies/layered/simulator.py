"""The simulators of layers as described: one sample at a time, and for data sets."""

from softform_core.bodies.layered.description import LayeredBody
from softform_core.bodies.layered.equilibrium import LayeredProblem
from softform_core.bodies.layered.model import build_layers
from softform_core.simulation.sampled_body import SampledSurface

SMOOTH = 2
"""Parts of a cell of the skin: flat cells of 10 mm are 0.15 mm from the sheet that they stand for."""


def simulator(body: LayeredBody) -> LayeredProblem:
    """The meshed sheets under a smooth skin."""
    return LayeredProblem(build_layers(body), SMOOTH)


def sampled(body: LayeredBody) -> SampledSurface:
    """The meshed sheets for data sets, of the vertices alone."""
    return SampledSurface(LayeredProblem(build_layers(body)))
