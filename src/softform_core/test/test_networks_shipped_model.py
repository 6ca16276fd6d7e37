"""The model that ships, against freshly solved shapes that it has never seen."""

import numpy as np
from equilibria import solve_equilibrium

from softform_core.bodies.membrane.simulator import build_membrane
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.paths import models_dir
from softform_core.robots import load_robot
from softform_core.simulation.sampling import sample_actuations
from softform_core.surface.fit import SurfaceFitter
from softform_core.surface.mean_value import parametrise
from softform_core.units import MM_PER_M

MEAN_BAR_MM = 0.15
MAX_BAR_MM = 1.2
FRESH_SHAPES = 6


def test_shipped_model_keeps_its_bars_by_its_own_card():
    robot = load_robot("membrane")
    _, card = load_forward_kinematics(robot)
    assert card.errors_mm.test_mean <= MEAN_BAR_MM
    assert card.errors_mm.test_max <= MAX_BAR_MM
    assert card.weights_bytes < 2_500_000
    assert (models_dir() / robot.name / "README.md").read_text() == card.to_markdown()


def test_shipped_model_predicts_freshly_solved_shapes():
    robot = load_robot("membrane")
    network, _ = load_forward_kinematics(robot)
    membrane = build_membrane(robot.body)
    fitter = SurfaceFitter(parametrise(membrane.rest_vertices, membrane.faces).uv)
    # Another seed than that of the training data: the samples behind the corners are new.
    fresh = sample_actuations(robot.actuation_min, robot.actuation_max, 512 + FRESH_SHAPES, seed=4711)[-FRESH_SHAPES:]
    solved = MM_PER_M * np.stack([solve_equilibrium(membrane, actuation).vertices for actuation in fresh])
    predicted = extract_mlp(network).forward(fresh).reshape(FRESH_SHAPES, 30, 30, 3)
    errors = np.linalg.norm(predicted - fitter.fit(solved), axis=-1)
    assert errors.mean() < MEAN_BAR_MM
    assert errors.max() < MAX_BAR_MM
