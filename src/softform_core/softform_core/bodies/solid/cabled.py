"""The solid with cables as its motors feel it."""

import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.loads.cable import Cable
from softform_core.bodies.solid.equilibrium import SolidProblem
from softform_core.bodies.solid.model import Solid
from softform_core.simulation.simulated_body import TendonLoads


class CabledSolid(SolidProblem):
    """A solid, some of whose inputs are the pulls of cables."""

    def tendon_loads(self, unknowns: Array, actuators: Array) -> TendonLoads:
        """As `PulledBody`; inputs that are no cables' have no tension, stretch or stiffness."""
        nodes, values = self.nodes(unknowns[0]), actuators[0]
        tension, stretch, stiffness = np.zeros((3, len(values)))
        place = self.solid.cavities
        for load in self.solid.loads:
            if isinstance(load, Cable) and load.stiffness is not None:
                tension[place] = load.tension(nodes, values[place : place + 1])
                stretch[place], stiffness[place] = load.stretch(nodes, values[place]), load.stiffness
            place += load.inputs
        return TendonLoads(tension, stretch, stiffness, values)


def problem_of(solid: Solid) -> SolidProblem:
    """The equilibrium problem of a solid, with what motors feel if it has cables that motors pull."""
    is_pulled = any(isinstance(load, Cable) and load.stiffness is not None for load in solid.loads)
    return CabledSolid(solid) if is_pulled else SolidProblem(solid)
