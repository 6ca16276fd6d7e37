"""The examples with cables and grips: described, simulated into a store, and served as models without a network."""

from pathlib import Path

import numpy as np
import pytest

from softform_core.forward.simulated_models import SimulatedSurface
from softform_core.robots import Robot, load_robot
from softform_core.simulation.generate import generate
from softform_core.simulation.sampling import inflations

EXAMPLES = Path(__file__).parents[4] / "docs/examples"
NAMES = {
    "cable_arm": [f"t{cable}" for cable in range(1, 10)],
    "gripped_block": [
        f"{side}_{channel}" for side in ("left", "right") for channel in ("x", "y", "z", "rx", "ry", "rz")
    ],
}


def coarse(name: str) -> Robot:
    robot = load_robot(EXAMPLES / f"{name}.yaml")
    return robot.model_copy(update={"body": robot.body.model_copy(update={"mesh_size": 0.025})})


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_simulated_and_every_shape_converges(name, tmp_path):
    robot = coarse(name)
    assert robot.actuators == NAMES[name]
    assert robot.body.goes_around
    store = generate(robot, inflations(robot, 3), tmp_path / "shapes.zarr", jobs=1, progress=False)
    shapes = store.converged()[1]
    assert len(shapes) == 3 and np.abs(shapes - store.rest_vertices).max() > 0.005


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_a_model_with_derivatives(name):
    robot = coarse(name)
    span = robot.actuation_max - robot.actuation_min
    model = SimulatedSurface(robot, np.array([[0.2, 0.5], [0.7, 0.9]]))
    middle = robot.actuation_min + 0.6 * span
    slopes = model.jacobian(model.forward(middle[None]))
    step = 1e-3 * span * np.where(np.arange(len(span)) % 4 == 1, 1.0, 0.0)
    ahead, behind = (np.array(model.forward((middle + sign * step)[None]).points) for sign in (1.0, -1.0))
    expected = 2.0 * slopes @ step
    assert np.abs(ahead - behind - expected).max() < 0.01 * np.abs(expected).max()
