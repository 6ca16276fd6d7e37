"""Forward models of a centre line: the points of a curve along the body; the learned one."""

from abc import abstractmethod
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np

from softform_core.arrays import Array
from softform_core.forward.forward_model import DerivedState, ForwardModel
from softform_core.forward.mlp import AffineLayers, Floats
from softform_core.robots import Robot
from softform_core.surface.curve import curve_basis

LINE_POINTS = 21
"""Points of a line where no others are asked for, evenly along it."""


class CentreLine(ForwardModel):
    """A centre line that is known by its control points; subclasses predict these.

    Args:
        robot: A robot whose centre line is learned for itself.
    """

    def __init__(self, robot: Robot) -> None:
        self._inputs, self._count = tuple(robot.actuation_names), robot.line_learning.control_points
        self._basis = curve_basis(np.linspace(0.0, 1.0, LINE_POINTS), self._count)

    @abstractmethod
    def predict_control(self, actuation: Array) -> tuple[Array, Any]:
        """Return control points (n, C, 3) mm at actuations (n, m), and what their derivatives are taken from."""

    @abstractmethod
    def control_jacobian(self, predicted: Any) -> Array:
        """Return the derivative of the control points, (n, C, 3, m) mm per unit."""

    def at(self, uv: Array) -> Self:
        """Return the same line at v (M,) of parameters (M, 2), 0 at its base and 1 at its end; u does not count."""
        other = copy(self)
        other._basis = curve_basis(uv[:, 1], self._count)
        return other

    def forward(self, actuation: Array) -> DerivedState:
        """Evaluate (n, m)."""
        control, predicted = self.predict_control(actuation)
        return DerivedState(np.stack([self._basis @ one for one in control]), predicted)

    def jacobian(self, state: DerivedState) -> Array:
        """Return the derivative of the points, (n, P, 3, m) mm per unit."""
        control = self.control_jacobian(state.source)
        return np.stack([(self._basis @ one.reshape(len(one), -1)).reshape(-1, *one.shape[1:]) for one in control])


class LearnedLine(CentreLine):
    """The centre line by networks, whose derivatives are their own.

    Args:
        robot: The robot.
        network: Actuation (m,) to flattened control points (C * 3,) mm of the simulated line.
        sim_to_real: These and the actuation, (C * 3 + m,), to those of the real line; None if the simulated is meant.
    """

    def __init__(self, robot: Robot, network: AffineLayers, sim_to_real: AffineLayers | None = None) -> None:
        super().__init__(robot)
        self._network, self._sim_to_real = network, sim_to_real

    def predict_control(self, actuation: Array) -> tuple[Array, "_Hidden"]:
        """Return control points (n, C, 3) mm at (n, m), and the activations of the hidden layers."""
        hidden = self._network.hidden(actuation)
        control, of_transfer = self._network.output(hidden[-1]), None
        if self._sim_to_real is not None:
            of_transfer = self._sim_to_real.hidden(np.concatenate([control, actuation], axis=1))
            control = self._sim_to_real.output(of_transfer[-1])
        return control.reshape(len(actuation), self._count, 3), _Hidden(hidden, of_transfer)

    def control_jacobian(self, predicted: "_Hidden") -> Array:
        """Return the derivative of the control points, (n, C, 3, m) mm per unit."""
        samples, inputs = len(predicted.simulated[0]), self.degrees_of_freedom
        unit = np.broadcast_to(np.eye(inputs), (samples, inputs, inputs))
        moves = self._network.jacobian(predicted.simulated, unit)
        if self._sim_to_real is not None and predicted.real is not None:
            moves = self._sim_to_real.jacobian(predicted.real, np.concatenate([moves, unit], axis=2))
        return np.asarray(np.moveaxis(moves.reshape(samples, inputs, self._count, 3), 1, -1), dtype=np.float64)


class _Hidden(NamedTuple):
    """Activations of the hidden layers of both networks; None of the second without sim-to-real."""

    simulated: tuple[Floats, ...]
    real: tuple[Floats, ...] | None
