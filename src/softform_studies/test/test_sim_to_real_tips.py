"""Tips of bodies that remember: what is learned where the reality's law is not the learner's, and drawn realities."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from softform_core.forward.conformance import CHECKS
from softform_core.forward.robot_models import ModelRequest, open_models
from softform_core.robots import load_robot
from softform_core.training.tip_samples import read_tip_samples, write_tip_samples
from softform_core.training.tips import learn_tip_sim_to_real
from softform_rig.live_body import LiveBody
from softform_rig.material_memory import BoucWen
from softform_rig.reality import load_reality
from softform_studies.cli_sim_to_real import sim2real
from softform_studies.sim_to_real.tips import TipSettings, measure_tips
from softform_studies.waypoints.capture_tips import capture_tips

ROD = load_robot("tendon_rod", "tip")


def stiff_to_turn(robot, share):
    """The default reality, whose material stays behind by a share of its actuators' ranges, by Bouc and Wen's law."""
    lags = share * (robot.actuator_max - robot.actuator_min)
    law = BoucWen(lag=float(lags[0]), beta=0.8, scale=(lags / lags[0]).tolist())
    return load_reality("default", robot).model_copy(update={"hysteresis": law})


@pytest.mark.long
@pytest.mark.parametrize(("name", "share", "least_cut"), [("three_chamber", 0.03, 5.0), ("tendon_rod", 0.01, 1.5)])
def test_a_learned_memory_cuts_the_error_of_tips_of_another_law(name, share, least_cut):
    """Of the tendon rod by less: each of its four tendons stays behind, which no three degrees of freedom tell."""
    robot = load_robot(name, "tip")
    found = measure_tips(robot, stiff_to_turn(robot, share), TipSettings(200, 100, 0))
    assert found["before"]["mean_mm"] > found["without_memory"]["mean_mm"] > least_cut * found["after"]["mean_mm"]
    assert list(found["play"]) == robot.actuators and min(found["play"].values()) > 0.5 * share


@pytest.mark.long
def test_where_nothing_is_remembered_no_memory_is_learned():
    found = measure_tips(ROD, load_reality("ideal", ROD), TipSettings(60, 20, 0))
    assert found["play"] == {} and found["after"] == found["without_memory"]


@pytest.mark.long
def test_draws_of_a_tip_are_measured_by_the_command():
    command = ["--robot", "tendon_rod", "--draws", "1", "--frames", "60", "--held-out", "20", "--jobs", "1"]
    done = CliRunner().invoke(sim2real, [*command, "--json", "-"])
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout[done.stdout.index("{") :])
    assert figures["draws"] == 1 and figures["robot"] == "tendon_rod" and figures["tips"] == 60
    assert figures["mean_reduction"]["median"] > 0.5
    assert {"mean_reduction", "max_reduction", "mean_mm", "max_mm"} == figures["without_memory"].keys()
    rejected = CliRunner().invoke(sim2real, ["--robot", "tendon_rod", "--points", "500"])
    assert rejected.exit_code == 2 and "--points does not fit" in rejected.output


@pytest.mark.long
def test_the_real_centre_line_is_learned_beside_the_tip_and_served(tmp_path):
    reality = load_reality("default", ROD)
    captured = capture_tips(ROD, reality, 200)
    assert captured.lines is not None and captured.lines.nodes.shape == (200, 17, 3)
    write_tip_samples(tmp_path / "tips.zarr", ROD, captured, {"source": "a test", "created": "now"})
    for ours, theirs in zip(captured.lines, read_tip_samples(tmp_path / "tips.zarr", ROD)[0].lines, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    card = learn_tip_sim_to_real(ROD, tmp_path / "tips.zarr", tmp_path, 0)
    assert card.centre_line is not None and card.centre_line.test_mean_percent < 0.3 * card.before_mean_percent
    assert "centre line, with sim-to-real" in (tmp_path / "sim_to_real.md").read_text()
    models = open_models("learned", ModelRequest(ROD, 9, sim_to_real=str(tmp_path)))
    here, places = ROD.actuation_min + 0.6 * (ROD.actuation_max - ROD.actuation_min), np.array([[2.0, 0.5], [2.0, 1.0]])
    live = LiveBody(ROD, reality)
    live.commanded_shape(here)
    true = [[np.interp(v, live.simulated.along, axis) for axis in 1e3 * live.centre_line().T] for v in (0.5, 1.0)]
    real, simulated = (one.at(places).forward(here[None]).points[0] for one in (models.current, models.simulated))
    missed, before = (np.linalg.norm(one - np.array(true), axis=1) for one in (real, simulated))
    assert (missed < 0.5 * before).all()
    for check in CHECKS:
        check(models.current.at(places), ROD.actuation_min, ROD.actuation_max)
