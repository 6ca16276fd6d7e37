"""The sim-to-real model that ships with the membrane, by true shapes of its rig, near rest as well."""

import numpy as np

from softform_core.forward.sim_to_real_store import load_sim_to_real
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.paths import models_of
from softform_core.robots import load_robot
from softform_rig.live_body import LiveBody
from softform_rig.reality import load_reality
from softform_studies.sim_to_real.judge import Judge
from softform_studies.sim_to_real.make_frames import TrueSurfaces

ROBOT = load_robot("membrane")


def test_near_rest_it_is_nearer_to_the_truth_than_the_simulation() -> None:
    """Frames without one at rest leave the model 1.1 mm off there, where the simulation is 0.95 mm off."""
    reality = load_reality("default", ROBOT)
    nearly_flat = np.random.default_rng(11).uniform(0.0, 600.0, (5, 9))
    actuation = np.concatenate([ROBOT.rest_actuation[None], nearly_flat])
    body = LiveBody(ROBOT, reality)
    shapes = np.array([LiveBody(ROBOT, reality).commanded_shape(each) for each in actuation])
    model = load_sim_to_real(ROBOT, models_of("membrane") / "rig_default").sim_to_real
    truth = TrueSurfaces(actuation, shapes, body.faces, np.zeros((len(actuation), 0, 9)))
    judge = Judge(ROBOT, extract_mlp(load_forward_kinematics(ROBOT)[0]), truth)
    assert judge.errors(judge.predicted(model)).mean_mm < 0.7 * judge.before.mean_mm
