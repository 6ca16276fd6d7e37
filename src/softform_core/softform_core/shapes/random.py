"""Targets that the simulated robot can take: its own shape under pressures that are not shown."""

import numpy as np

from softform_core.robots import Robot
from softform_core.shapes.target import TargetShape
from softform_core.simulation.simulated_body import equilibrium_points


def random_target(robot: Robot, seed: int) -> TargetShape:
    """Shape of the simulated robot under random pressures, uniform within the working range.

    Args:
        robot: Robot whose shape is drawn at random.
        seed: Of the pressures; the same seed gives the same shape.

    Returns:
        Mesh, m. The pressures stay hidden: the way back to them is what inverse kinematics is for.

    Raises:
        NoEquilibriumError: If the robot's description has no equilibrium under these pressures.
    """
    hidden = np.random.default_rng(seed).uniform(robot.actuation_min, robot.actuation_max)
    body = robot.body.simulator()
    return TargetShape.from_mesh(equilibrium_points(body, robot.actuators_of(hidden)[None])[0], body.faces)
