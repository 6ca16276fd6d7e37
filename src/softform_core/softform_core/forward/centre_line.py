"""Forward models of a centre line: the points of a curve along the body; the learned one."""

from abc import abstractmethod
from copy import copy
from typing import Any, Self

import numpy as np

from softform_core.arrays import Array
from softform_core.forward.forward_model import DerivedState, ForwardModel
from softform_core.forward.mlp import AffineLayers
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
    """The centre line by a network, whose derivative is its own.

    Args:
        robot: The robot.
        network: Actuation (m,) to flattened control points (C * 3,) mm.
    """

    def __init__(self, robot: Robot, network: AffineLayers) -> None:
        super().__init__(robot)
        self._network = network

    def predict_control(self, actuation: Array) -> tuple[Array, tuple[Array, ...]]:
        """Return control points (n, C, 3) mm at (n, m), and the activations of the hidden layers."""
        hidden = self._network.hidden(actuation)
        return self._network.output(hidden[-1]).reshape(len(actuation), self._count, 3), hidden

    def control_jacobian(self, predicted: tuple[Array, ...]) -> Array:
        """Return the derivative of the control points, (n, C, 3, m) mm per unit."""
        samples, inputs = len(predicted[0]), self.degrees_of_freedom
        moves = self._network.jacobian(predicted, np.broadcast_to(np.eye(inputs), (samples, inputs, inputs)))
        return np.moveaxis(moves.reshape(samples, inputs, self._count, 3), 1, -1)
