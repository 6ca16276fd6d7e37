"""The experiments of paper 002 on a small arm of two sections, led by its finite-element model."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from softform_core.paths import config_dir
from softform_core.robots import load_robot
from softform_rig.reality import load_reality
from softform_studies.helix.arms import LedArm, RealArm
from softform_studies.helix.bench import told
from softform_studies.helix.experiments import circle, dragged_by_two_hands, pop, tracked, two_hands
from softform_studies.helix.poses import node_errors, posed, silhouette, silhouette_iou
from softform_studies.helix.report import draw_report

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def robot(tmp_path_factory: pytest.TempPathFactory):
    """The Helix with few layers and one ring: ticks of a few milliseconds."""
    content = yaml.safe_load((config_dir() / "robots" / "helix.yaml").read_text())
    content["body"]["rings"] = 1
    for section in content["body"]["sections"]:
        section["layers"] = max(2, section["layers"] // 4)
    content["surfaces"][0] |= {"rows": 6, "columns": 6}
    path = tmp_path_factory.mktemp("arm") / "coarse_helix.yaml"
    path.write_text(yaml.safe_dump(content))
    return load_robot(str(path))


@pytest.fixture(scope="module")
def arm(robot):
    return LedArm(robot)


def real_arm(robot, name: str = "default") -> RealArm:
    return RealArm(robot, load_reality(name, robot), 0)


def test_parts_of_an_error_are_told_apart(robot, arm):
    arm.begin()
    length = robot.body.size
    run = tracked(arm, circle(length, turns=0.02, radius=0.1, depth=0.94), 5, real_arm(robot))
    parts = told(run, length)
    assert parts["ik"] < 1e-4 < parts["sim_to_real"]
    assert parts["whole"] <= parts["ik"] + parts["lag"] + parts["sim_to_real"]
    np.testing.assert_allclose(
        run.real - run.aims[run.seen], (run.real - run.reached) + (run.reached - run.aims[run.seen])
    )


@pytest.mark.long
def test_an_arm_that_is_as_modelled_has_the_models_nodes_and_silhouette(robot, arm, tmp_path: Path):
    poses = posed(arm, lambda: real_arm(robot, "ideal"))
    assert len(poses) == 5 and [len(one.pose.targets) for one in poses] == [1, 1, 2, 2, 3]
    for one in poses:
        assert one.node_mm.max() < 5.0 and one.iou > 0.93  # its motors have rounding and lag alone
    unlike = posed(arm, lambda: real_arm(robot))
    assert max(one.node_mm.mean() for one in unlike) > 5.0 and min(one.iou for one in unlike) < 0.93
    draw_report(tmp_path / "report.png", {}, unlike, robot.body.size)
    assert (tmp_path / "report.png").stat().st_size > 10_000


def test_silhouettes_are_of_one_place_on_the_picture(robot, arm):
    rest = arm.at_rest()
    seen = silhouette(rest, arm.faces, robot.body.size)
    rows, columns = np.nonzero(seen)
    upright = np.ptp(rows) / np.ptp(columns)
    assert upright == pytest.approx(robot.body.size / (2.0 * robot.body.radius), rel=0.15)  # a hexagon
    assert silhouette_iou(seen, seen) == 1.0
    aside = silhouette(rest + [2.0 * robot.body.radius, 0.0, 0.0], arm.faces, robot.body.size)
    assert silhouette_iou(seen, aside) < 0.05
    real = real_arm(robot)  # of another mesh
    assert node_errors(rest, arm, real.at_rest(), real).max() < 2.0


def test_two_hands_lead_two_points_and_a_needle_meets_a_balloon(robot, arm):
    arm.begin()
    targets = two_hands(robot.body.size, 1, 0)
    held = dragged_by_two_hands(arm, targets, 10, real_arm(robot))
    assert 0.0 < held.model_mm < 100.0 and 0.0 < held.node_mm < 100.0
    arm.begin()
    there = pop(arm, real_arm(robot, "ideal"), np.array([0.1, 0.0, 0.8]), 3)
    assert there.seconds <= 2.5 and there.missed_mm < 10.0
    arm.begin()
    beyond = pop(arm, real_arm(robot, "ideal"), np.array([0.0, 0.0, 1.4]), 3)
    assert np.isnan(beyond.seconds) and beyond.missed_mm > 300.0
