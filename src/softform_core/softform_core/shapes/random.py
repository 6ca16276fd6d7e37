"""Targets that the simulated robot can take: its own shape under a hidden actuation."""

import numpy as np

from softform_core.robots import Robot
from softform_core.shapes.shape import Shape
from softform_core.simulation.simulated_body import equilibrium_points

__all__ = ["random_target"]


def random_target(robot: Robot, seed: int) -> Shape:
    """Mesh, m, of the simulated robot under a random actuation (by `seed`), uniform within the working range.

    Raises:
        NoEquilibriumError: If the robot's description has no equilibrium under it.
    """
    hidden = np.random.default_rng(seed).uniform(robot.actuation_min, robot.actuation_max)
    body = robot.body.simulator()
    return Shape.from_mesh(equilibrium_points(body, robot.actuators_of(hidden)[None])[0], body.faces)
