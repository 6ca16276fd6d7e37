"""A displacement prior is learned from realities below the published seeds, and training takes it into account."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from softform_core.cli.main import main
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.paths import models_dir
from softform_core.robots import load_robot
from softform_core.training.displacement_prior import PRIOR_FILE, load_displacement_prior
from softform_core.training.recipe import DEFAULT, PAPER
from softform_core.training.warp_data import WarpData
from softform_rig.draw_reality import HELD_OUT_SEED, draw_reality
from softform_studies.sim_to_real import learn_prior as module
from softform_studies.sim_to_real.learn_prior import displacements, learn_prior

ROBOT = load_robot("membrane")


def weights():
    return extract_mlp(load_forward_kinematics(ROBOT)[0])


def test_displacements_are_what_the_simulation_lacks(monkeypatch):
    monkeypatch.setattr(module, "_SHAPES", 3)
    found = displacements(ROBOT, weights(), draw_reality(ROBOT, 401), 401)
    assert found.shape == (3, 400, 3) and np.isfinite(found).all()
    size = np.sqrt((found**2).sum(axis=-1).mean())
    assert 0.1 < size < 10.0  # mm


def test_the_shipped_prior_is_of_seeds_that_nothing_is_judged_on_and_is_used():
    prior = load_displacement_prior(ROBOT)
    assert prior is not None and max(prior.card["seeds"]) < HELD_OUT_SEED
    at = np.array([ROBOT.actuation_min, ROBOT.actuation_max])
    uv, kernels = ROBOT.patches.samples(400), ROBOT.patches.kernels(100)
    data = WarpData.of(weights(), at, uv, kernels, DEFAULT, ROBOT.patches, prior)
    size = 3 * data.directions.shape[1]
    assert data.scaling.shape == (size, size)
    assert np.trace(data.scaling @ data.scaling) / size == pytest.approx(DEFAULT.prior_scale**2)
    assert WarpData.of(weights(), at, uv, kernels, PAPER, ROBOT.patches, prior).scaling is None


def test_published_seeds_teach_nothing():
    result = CliRunner().invoke(main, ["train", "prior", "--draws", "30", "--seed", "980"])
    assert result.exit_code == 2 and "published figures are judged on" in result.output


def test_the_command_writes_the_prior_and_leaves_out_realities_without_shapes(monkeypatch, tmp_path):
    from softform_core.errors import SoftformError

    def displaced(robot, forward_kinematics, reality, seed):
        if seed == 11:
            raise SoftformError("no equilibrium")
        return np.random.default_rng(seed).normal(size=(4, 400, 3))

    monkeypatch.setattr(module, "displacements", displaced)
    said = []
    prior = learn_prior(ROBOT, range(10, 14), said.append, progress=False)
    assert len(prior.modes) == 12 and said == ["  reality 11 is left out: no equilibrium"]
    path = prior.save(tmp_path)
    with np.load(path) as file:
        assert json.loads(str(file["card"]))["seeds"] == [10, 11, 12, 13]
    assert (models_dir() / "membrane" / PRIOR_FILE).is_file()
