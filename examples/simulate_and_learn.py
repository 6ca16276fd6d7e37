# SPDX-License-Identifier: Apache-2.0
"""Simulate a robot and learn its forward kinematics, without ROS.

`python simulate_and_learn.py [ROBOT [SHAPES [EPOCHS]]]` leaves the model in the folder `first_try`. With the few shapes
of a first try it takes half a minute; 1000 shapes and the recipe's own epochs give the model that ships.
"""

import sys
from dataclasses import replace
from pathlib import Path

from softform_core.robots import load_robot
from softform_core.simulation.generate import generate
from softform_core.simulation.sampling import inflations
from softform_core.training.learn_forward_kinematics import learn_forward_kinematics, recipe_for
from softform_core.training.shapes import load_training_shapes


def main(name: str = "membrane", shapes: int = 40, epochs: int = 300, folder: Path = Path("first_try")) -> float:
    """Return the mean error of the model's control points on shapes that it has not seen, mm."""
    robot = load_robot(name)
    store = folder / "simulation.zarr"
    simulated = generate(robot, inflations(robot, shapes), store, jobs=1, progress=False)
    print(f"{len(simulated.converged()[0])} of {shapes} shapes are simulated.")
    recipe = replace(recipe_for(robot), epochs=epochs)
    learned = load_training_shapes(robot, store)
    card = learn_forward_kinematics(robot, learned, recipe, 0, folder / "checkpoints", folder, progress=False)
    print(f"The model in {folder} is {card.errors_mm.test_mean:.2f} mm off in the mean, on shapes it has not seen.")
    return card.errors_mm.test_mean


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:4]))
