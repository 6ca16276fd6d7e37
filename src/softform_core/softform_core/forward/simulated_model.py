"""A simulated body as a forward model: equilibria, and their sensitivities by the implicit function theorem.

Slow beside a learned surface (seconds a solve instead of milliseconds), but exact: inverse kinematics on it needs no
training, and tells what the surrogate costs.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.forward.forward_model import ForwardModel
from softform_core.simulation.newton import NO_EQUILIBRIUM_ADVICE, NoEquilibriumError, find_equilibria
from softform_core.simulation.sensitivity import equilibrium_sensitivities
from softform_core.simulation.simulated_body import SimulatedBody
from softform_core.units import MM_PER_M

Array = NDArray[np.float64]


class SimulatedState(NamedTuple):
    """Equilibria at a batch of actuations.

    Attributes:
        points: (n, P, 3) mm.
        unknowns: (n, m) of the body.
        actuation: (n, k).
    """

    points: Array
    unknowns: Array
    actuation: Array


class SimulatedModel(ForwardModel):
    """The points of a body at equilibrium.

    Each equilibrium is sought from the one before, as a solve moves in small steps.

    Args:
        body: From `Body.simulator`.
    """

    def __init__(self, body: SimulatedBody) -> None:
        self._body = body
        self._last: Array | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the chambers' pressures, Pa."""
        return tuple(f"chamber_{number + 1}" for number in range(len(self._body.unloaded)))

    def forward(self, actuation: Array) -> SimulatedState:
        """Solve for the equilibria at (n, k) Pa.

        Raises:
            SoftformError: If there is none (`NoEquilibriumError`).
        """
        unknowns = []
        for values in actuation:
            found = find_equilibria(self._body, values[None], self._last)
            if found.failures[0]:
                raise NoEquilibriumError(found.failures[0], NO_EQUILIBRIUM_ADVICE)
            self._last = found.unknowns
            unknowns.append(found.unknowns[0])
        return SimulatedState(MM_PER_M * self._body.points(np.array(unknowns)), np.array(unknowns), actuation)

    def jacobian(self, state: SimulatedState) -> Array:
        """Derivative of the points, (n, P, 3, k) mm/Pa.

        Raises:
            SoftformError: If an equilibrium has no stiffness, as a slack flat sheet has none.
        """
        moves = equilibrium_sensitivities(self._body, state.unknowns, state.actuation)
        if not np.isfinite(moves).all():
            raise SoftformError(
                "An equilibrium has no stiffness, hence no finite sensitivity.",
                "Take an equilibrium under some load; a slack flat sheet has no stiffness out of its plane.",
            )
        return MM_PER_M * self._body.moved_points(state.unknowns, moves)
