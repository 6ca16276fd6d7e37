# SPDX-License-Identifier: Apache-2.0
"""Find the actuation that brings the membrane onto a target mesh, without ROS, and ask the simulation whether it does.

`python solve.py [MODEL [MESH UNIT]]`: MODEL is the folder of a learned model, such as the one that
`simulate_and_learn.py` leaves, or `-` for the one in `models/membrane`; without a MESH the target is a random shape.
"""

import sys
from pathlib import Path

from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.inverse.ik_options import IkOptions
from softform_core.inverse.inverse import solve_inverse_kinematics
from softform_core.robots import load_robot
from softform_core.shapes.random import random_target
from softform_core.shapes.read import read_shape
from softform_core.simulation.simulated_body import equilibrium_points
from softform_core.training.shapes import distances_from_mesh


def main(model: str = "-", mesh: str = "", unit: str = "mm") -> float:
    """Return the mean distance of the simulated shape from the target, mm."""
    robot = load_robot("membrane")
    target = read_shape(Path(mesh), unit=unit) if mesh else random_target(robot, seed=3)
    pipeline = load_pipeline(robot, model=None if model == "-" else Path(model))
    found = solve_inverse_kinematics(pipeline, target, IkOptions(robot.actuation_min, robot.actuation_max))
    print(f"{found.mean_error_mm:.2f} mm by the model, after {1e3 * found.seconds:.0f} ms: {found.termination.value}.")
    values = robot.actuators_of(found.actuation)
    print(f"Pressures: {values.round()} Pa")
    shape = equilibrium_points(robot.body.simulator(), values[None])[0]
    error = 1e3 * float(distances_from_mesh(shape, target.points, target.faces).mean())
    print(f"{error:.2f} mm by the simulation")
    return error


if __name__ == "__main__":
    main(*sys.argv[1:4])
