"""A finite element simulation as a forward model: equilibria, and their sensitivities by the implicit function theorem.

Slow beside a learned surface (seconds a solve instead of milliseconds), but exact: inverse kinematics on it needs no
training, and tells what the surrogate costs.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softform_core.bodies.membrane.equilibrium import Equilibrium, equilibrium_sensitivity, solve_equilibrium
from softform_core.bodies.membrane.model import Membrane
from softform_core.forward.forward_model import ForwardModel
from softform_core.units import MM_PER_M

Array = NDArray[np.float64]


class SimulatedState(NamedTuple):
    """Equilibria at a batch of actuations.

    Attributes:
        points: (n, V, 3) mm, the vertices of the mesh.
        equilibria: n of them.
    """

    points: Array
    equilibria: list[Equilibrium]


class SimulatedModel(ForwardModel):
    """The vertices of a membrane's mesh at equilibrium.

    Each equilibrium is sought from the one before, as a solve moves in small steps.

    Args:
        membrane: From `build_membrane`.
    """

    def __init__(self, membrane: Membrane) -> None:
        self._membrane = membrane
        self._last: Array | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the chambers' pressures, Pa."""
        return tuple(f"chamber_{number + 1}" for number in range(self._membrane.chambers))

    def forward(self, actuation: Array) -> SimulatedState:
        """Solve for the equilibria at (n, k) Pa.

        Raises:
            SoftformError: If there is none (`NoEquilibriumError`).
        """
        equilibria = []
        for pressures in actuation:
            equilibria.append(solve_equilibrium(self._membrane, pressures, self._last))
            self._last = equilibria[-1].vertices
        return SimulatedState(MM_PER_M * np.array([one.vertices for one in equilibria]), equilibria)

    def jacobian(self, state: SimulatedState) -> Array:
        """Derivative of the vertices, (n, V, 3, k) mm/Pa.

        Raises:
            SoftformError: If an equilibrium is a slack flat sheet.
        """
        return MM_PER_M * np.array([equilibrium_sensitivity(self._membrane, one) for one in state.equilibria])
