"""Tips of bodies that remember: what is learned where the reality's law is not the learner's, and drawn realities."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from softform_core.robots import load_robot
from softform_rig.draw_reality import draw_reality
from softform_rig.live_body import Memory
from softform_rig.reality import load_reality
from softform_studies.cli_sim_to_real import sim2real
from softform_studies.sim_to_real.tips import TipSettings, measure_tips

ROD = load_robot("tendon_rod", "tip")


def stiff_to_turn(robot, share):
    """The default reality, whose material stays behind its actuators by a share of their range by another law."""
    hysteresis = (share * (robot.actuator_max - robot.actuator_min)).tolist()
    changed = {"hysteresis": hysteresis, "hysteresis_law": "exponential"}
    return load_reality("default", robot).model_copy(update=changed)


def test_the_exponential_law_solves_its_equation_and_differs_from_the_play():
    """dz/du = 1 - sign(du) z / h, integrated in small steps along a way with turns."""
    reality = stiff_to_turn(ROD, 0.05)
    width = np.asarray(reality.hysteresis)
    turns = np.outer([0.0, 0.001, 0.0003, 0.003, 0.0022, -0.004], np.ones(4))
    by_law, by_play = Memory(reality, 4), Memory(reality.model_copy(update={"hysteresis_law": "play"}), 4)
    lacks, largest = np.zeros(4), 0.0
    for before, after in zip(turns, turns[1:], strict=False):
        step = (after - before) / 20000
        for _ in range(20000):
            lacks = lacks + step - np.abs(step) * lacks / width
        felt = by_law.feel(after, 0.0)
        np.testing.assert_allclose(felt, after - lacks, atol=1e-6)
        largest = max(largest, float(np.abs(felt - by_play.feel(after, 0.0)).max()))
    assert largest > 1e-4
    assert np.array_equal(Memory(stiff_to_turn(ROD, 0.0), 4).feel(turns[1], 0.0), turns[1])


@pytest.mark.parametrize(("name", "share", "least_cut"), [("three_chamber", 0.03, 5.0), ("tendon_rod", 0.01, 1.2)])
def test_a_learned_memory_cuts_the_error_of_tips_of_another_law(name, share, least_cut):
    """Of the tendon rod by less: each of its tendons stays behind, and the play is one of each degree of freedom."""
    robot = load_robot(name, "tip")
    found = measure_tips(robot, stiff_to_turn(robot, share), TipSettings(200, 100, 0))
    assert found["before"]["mean_mm"] > found["without_memory"]["mean_mm"] > least_cut * found["after"]["mean_mm"]
    assert len(found["play"]) == 3 and min(found["play"]) > 0.5 * share


def test_where_nothing_is_remembered_no_memory_is_learned():
    found = measure_tips(ROD, load_reality("ideal", ROD), TipSettings(60, 20, 0))
    assert found["play"] == [] and found["after"] == found["without_memory"]


def test_draws_of_a_tip_are_measured_by_the_command():
    assert draw_reality(ROD, 3).hysteresis_law == "exponential"
    command = ["--robot", "tendon_rod", "--draws", "1", "--frames", "60", "--held-out", "20", "--jobs", "1"]
    done = CliRunner().invoke(sim2real, [*command, "--json", "-"])
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout[done.stdout.index("{") :])
    assert figures["draws"] == 1 and figures["robot"] == "tendon_rod" and figures["tips"] == 60
    assert figures["mean_reduction"]["median"] > 0.5
    rejected = CliRunner().invoke(sim2real, ["--robot", "tendon_rod", "--points", "500"])
    assert rejected.exit_code == 2 and "--points does not fit" in rejected.output
