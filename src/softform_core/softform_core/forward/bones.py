"""The bones of a body on a centre line that was learned: what a skin rides on where there is no surface."""

from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.centre_line import CentreLine
from softform_core.forward.forward_model import DerivedState, ForwardModel
from softform_core.forward.simulated_models import SimulatedBones, bone_places
from softform_core.robots import Robot

_END, _ASIDE = 1, 2
"""Places of a bone beside its origin, see `BodyOfBones.bones`."""

_SAME = 1e-9
"""Distance, over the body's size, within which a bone's place is a node of the line."""


class BonesOnLine(ForwardModel):
    """Bones that lie on a centre line that was learned, and so as a sim-to-real model corrects it.

    A line tells no roll: where the third place of a bone lies from its origin is that of the simulator.

    Args:
        robot: A robot whose body is one of bones, and has a centre line.
        line: The line.

    Raises:
        SoftformError: If its bones do not begin and end at nodes of its line.
    """

    def __init__(self, robot: Robot, line: CentreLine) -> None:
        self._line, self._simulated, self._inputs = line, SimulatedBones(robot), line.inputs
        body: Any = robot.body.simulator()
        places, nodes = body.bones(body.rest[None])[0], body.line(body.rest[None])[0]
        away = np.linalg.norm(places[:, : _END + 1, None] - nodes, axis=-1)
        if away.min(axis=-1).max() > _SAME * robot.body.size:
            raise SoftformError(
                f"The bones of '{robot.name}' are no parts of its centre line.", "Leave centre_line out, or take fem."
            )
        ends = np.asarray(body.along)[away.argmin(axis=-1)]
        self._along = np.column_stack([ends, ends[:, 0]]).ravel()
        self._choose(np.arange(len(self._along)))

    def _choose(self, chosen: NDArray[np.int64]) -> None:
        self._chosen = chosen
        self._on = self._line.at(np.column_stack([np.zeros(len(chosen)), self._along[chosen]]))

    def at(self, uv: Array) -> Self:
        """Return the places of `Robot.rider_parameters` (M, 2)."""
        other = copy(self)
        other._choose(bone_places(uv))
        return other

    def forward(self, actuation: Array) -> DerivedState:
        """Evaluate (n, m).

        Raises:
            NoEquilibriumError: If one of them has no equilibrium.
        """
        simulated, line = self._simulated.forward(actuation), self._on.forward(actuation)
        return DerivedState(line.points + self._aside(simulated.points), (simulated, line))

    def jacobian(self, state: DerivedState) -> Array:
        """Return the derivative of the places, (n, M, 3, m) mm per unit."""
        simulated, line = state.source
        return self._on.jacobian(line) + self._aside(self._simulated.jacobian(simulated))

    def _aside(self, places: Array) -> Array:
        """Return values (n, M, ...) of chosen places less those of their origins, of third ones; of others 0."""
        origin = self._chosen - np.where(self._chosen % 3 == _ASIDE, _ASIDE, 0)
        return np.asarray(places[:, self._chosen] - places[:, origin])
