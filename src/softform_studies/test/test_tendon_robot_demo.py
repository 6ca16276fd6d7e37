"""The closed loop of a tip on a robot that remembers, by each way of approaching, and the demo's report."""

import json

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_rig.reality import load_reality
from softform_studies.tendon_robot import demo
from softform_studies.tendon_robot.approaches import APPROACHES, Robots, closed_loop, corrected, planned_tips
from softform_studies.tendon_robot.execution import path_body

ROBOT = load_robot("tendon_robot")


def test_a_correction_moves_the_tip_of_the_simulator_by_what_is_missing_as_far_as_two_tendons_can():
    simulator = ROBOT.body.simulator()
    begin, wanted = np.array([[6e-3, 5e-3, 0.0, 0.0]]), np.array([[6.4e-3, 4.8e-3, 0.0, 0.0]])
    (here, _), (there, _) = planned_tips(simulator, ROBOT, begin), planned_tips(simulator, ROBOT, wanted)
    found = corrected(simulator, ROBOT, begin, begin > 0.0, there - here)
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    assert not found[:, 2:].any()
    far = corrected(simulator, ROBOT, begin, begin > 0.0, np.array([[0.0, 0.0, -0.2]]))
    assert (np.abs(far - begin) < 3.1e-3).all()


@pytest.mark.long
@pytest.mark.parametrize("how", APPROACHES)
def test_the_loop_closes_by_each_approach(how):
    reality = load_reality("printed", ROBOT)
    plans = np.array([[8e-3, 5e-3, 0.0, 0.0], [0.0, 4e-3, 9e-3, 0.0]])
    robots = Robots(path_body(ROBOT, reality), ROBOT, reality, len(plans))
    robots.go(plans[::-1])
    targets = planned_tips(ROBOT.body.simulator(), ROBOT, plans)[0]
    errors, last = closed_loop(robots, plans, targets, how, 2, lambda tips: tips)
    assert errors.shape == (3, 2) and (errors[-1] < 0.5 * errors[0]).all()
    np.testing.assert_array_equal(last > 0.0, plans > 0.0)


@pytest.mark.long
def test_the_demo_ends_in_a_report_and_figures(monkeypatch, tmp_path):
    monkeypatch.setenv("SOFTFORM_RUNS", str(tmp_path))
    for name, value in (("TARGETS", 3), ("ROUNDS", 1), ("_BEST_ROUNDS", 2)):
        monkeypatch.setattr(demo, name, value)
    lines: list[str] = []
    (shown,) = demo.show("tendon_robot", "default", 0, lines.append)
    figures = json.loads(json.dumps(shown.figures()))
    assert shown.report.is_file() and figures["targets"] == 3 and set(figures["mean_error_mm"]) == set(APPROACHES)
    assert all(np.isfinite(one).all() for one in figures["mean_error_mm"].values())
    assert any("printed" in line for line in lines)


def test_a_reality_without_a_path_is_rejected():
    with pytest.raises(SoftformError, match="does not depend on its path"):
        next(demo.show("tendon_robot", "ideal", 0, print))
