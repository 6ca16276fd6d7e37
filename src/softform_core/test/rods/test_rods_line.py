"""The centre line of rods: its nodes, as learned and as simulated, as a target, and beside a surface."""

import numpy as np
import pytest
import yaml

from softform_core.bodies.rod.equilibrium import RodProblem
from softform_core.bodies.rod.model import build_rod
from softform_core.errors import SoftformError
from softform_core.forward.conformance import CHECKS
from softform_core.forward.robot_models import ModelRequest, open_models
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.forward.tip_model import load_line
from softform_core.inverse.ik_options import IkOptions
from softform_core.inverse.inverse import solve_inverse_kinematics
from softform_core.networks.model_files import ModelError
from softform_core.paths import models_of, robot_file
from softform_core.robots import CENTRE_LINE, load_robot
from softform_core.robots.outputs import LineLearning, TubeLine
from softform_core.shapes.features import FeaturePoints
from softform_core.simulation.generate import generate
from softform_core.simulation.newton import find_equilibria
from softform_core.simulation.sampling import grid
from softform_core.simulation.simulated_body import LinedBody, equilibrium_points
from softform_core.training.tips import learn_tip_kinematics, train_kinematics
from softform_core.units import MM_PER_M

LINE = {"centre_line": LineLearning(control_points=8, forward_kinematics=[20, 20])}
ROD = load_robot("three_chamber").model_copy(update=LINE)
HERE = np.array([2.2e4, 0.4e4, 1.1e4])


def problem(name):
    return load_robot(name).body.simulator()


@pytest.mark.parametrize("name", ["three_chamber", "planar_fingers", "tendon_rod"])
def test_the_line_leads_from_the_base_through_every_element_and_link_to_the_tip(name):
    robot, body = load_robot(name), problem(name)
    assert isinstance(body, LinedBody)
    values = robot.actuators_of(robot.actuation_min + 0.7 * (robot.actuation_max - robot.actuation_min))[None]
    unknowns = find_equilibria(body, values).unknowns
    (line,), (straight,) = body.line(unknowns), body.line(body.rest[None])
    np.testing.assert_array_equal(line[0], np.zeros(3))
    np.testing.assert_allclose(line[-1], body.points(unknowns)[0, 0], atol=1e-12)
    assert len(line) == 1 + body.rod.elements + int((body.rod.link_length > 0.0).sum())
    ways = np.linalg.norm(np.diff(straight, axis=0), axis=1)
    np.testing.assert_allclose(np.append(0.0, np.cumsum(ways)) / ways.sum(), body.along, atol=1e-12)


def test_the_derivative_of_the_line_is_that_of_differences():
    body = RodProblem(build_rod(load_robot("planar_fingers").body))
    unknowns = 0.05 * np.random.default_rng(0).standard_normal((1, len(body.rest)))
    moves = np.random.default_rng(1).standard_normal((1, len(body.rest), 2))
    moved = body.moved_line(unknowns, moves)
    for column in range(2):
        step = 1e-6 * moves[..., column]
        difference = (body.line(unknowns + step) - body.line(unknowns - step)) / 2e-6
        np.testing.assert_allclose(moved[..., column], difference, atol=1e-7)
    np.testing.assert_allclose(moved[:, -1:], body.moved_points(unknowns, moves), atol=1e-12)


def led(model, robot, along, place):
    """Actuation by which a point of the line is brought to a place (3,) mm."""
    wanted = FeaturePoints.of([[0.3, along]], place[None] / MM_PER_M, None, [CENTRE_LINE]).on(robot)
    options = IkOptions(robot.actuation_min, robot.actuation_max, initial_actuation=robot.actuation_of(HERE * 0.0))
    return solve_inverse_kinematics(model, None, options, features=wanted)


def test_a_target_on_the_simulated_line_is_reached():
    models = open_models("fem", ModelRequest(ROD, 100))
    line = models.current.at(np.array([[2.0, 0.6]]))
    place = line.forward(HERE[None]).points[0, 0]
    found = led(models.current, ROD, 0.6, place)
    assert found.mean_error_mm < 0.02
    body = ROD.body.simulator()
    node = int(np.argmin(np.abs(body.along - 0.6)))
    unknowns = find_equilibria(body, ROD.actuators_of(found.actuation)[None]).unknowns
    between = [np.interp(0.6, body.along, axis) for axis in MM_PER_M * body.line(unknowns)[0].T]
    assert np.linalg.norm(between - place) < 0.3, f"near node {node}"


def test_tip_and_line_are_targets_at_once_and_both_models_pass_the_checks():
    model = open_models("fem", ModelRequest(ROD, 100)).current
    both = FeaturePoints.of(
        np.array([[0.0, 0.5], [0.0, 0.0], [0.0, 1.0]]), np.zeros((3, 3)), None, [CENTRE_LINE, "tip", CENTRE_LINE]
    ).on(ROD)
    middle, tip, end = model.at(both.uv).forward(HERE[None]).points[0]
    np.testing.assert_allclose(tip, MM_PER_M * equilibrium_points(ROD.body.simulator(), HERE[None])[0, 0], atol=1e-6)
    assert np.linalg.norm(end - tip) < 0.05 < 30.0 < np.linalg.norm(middle - tip)
    for check in CHECKS:
        check(model.at(both.uv), ROD.actuation_min, ROD.actuation_max)


def test_a_line_is_learned_from_the_data_set_that_holds_it_and_served(tmp_path, monkeypatch):
    store = generate(ROD, grid(ROD, 6), tmp_path / "rod.zarr", jobs=1, progress=False)
    assert store.outputs == ("tip", "jacobian", "centre_line") and store.converged("centre_line")[1].shape == (
        216,
        22,
        3,
    )
    for steps in ("forward_kinematics_steps", "jacobian_steps"):
        monkeypatch.setitem(train_kinematics.__kwdefaults__, steps, 150)
    card = learn_tip_kinematics(ROD, store.path, tmp_path, 0)
    assert card.centre_line.outputs == 24 and card.centre_line.test_mean_percent < 1.0
    assert "centre line" in (tmp_path / "README.md").read_text()
    models = open_models("learned", ModelRequest(ROD, 100, tmp_path, "none"))
    places = np.array([[2.0, along] for along in (0.0, 0.4, 1.0)])
    learned, simulated = (
        one.current.at(places).forward(HERE[None]).points[0]
        for one in (models, open_models("fem", ModelRequest(ROD, 9)))
    )
    assert np.linalg.norm(learned - simulated, axis=1).max() < 1.0
    for check in CHECKS:
        check(models.current.at(places), ROD.actuation_min, ROD.actuation_max)
    place = models.current.at(places[1:2]).forward(HERE[None]).points[0, 0]
    assert led(models.current, ROD, 0.4, place).mean_error_mm < 0.02


def test_without_a_line_in_the_description_none_is_stored_nor_learned(tmp_path):
    plain = load_robot("three_chamber")
    store = generate(plain, grid(plain, 2), tmp_path / "plain.zarr", jobs=1, progress=False)
    assert store.outputs == ("tip", "jacobian")
    with pytest.raises(SoftformError, match="holds no centre line"):
        learn_tip_kinematics(ROD, store.path, tmp_path, 0)
    with pytest.raises(ModelError, match="holds no centre line"):
        load_line(ROD, models_of("three_chamber"))
    with pytest.raises(SoftformError, match="known: tip"):
        FeaturePoints.of([[0.0, 0.5]], np.zeros((1, 3)), None, [CENTRE_LINE]).on(plain)
    with pytest.raises(SoftformError, match="no centre line"):
        plain.line_parameters(0.5)
    tip = open_models("fem", ModelRequest(plain, 9)).current
    assert tip.at(np.zeros((3, 2))).forward(HERE[None]).points.shape == (1, 3, 3)
    with pytest.raises(SoftformError, match="a tip and no centre line"):
        tip.at(np.array([[2.0, 0.5]]))


def test_the_line_of_an_arm_is_the_middle_of_its_tube():
    arm = load_robot("manipulator").model_copy(update={"centre_line": TubeLine(patch="tube")})
    pipeline = load_pipeline(arm, 100)
    actuation = np.array([4e4, 0.0, 0.0, 0.0, 2e4, 0.0])
    wanted = FeaturePoints.of([[0.0, 0.5]], np.zeros((1, 3)), None, [CENTRE_LINE]).on(arm)
    (middle,) = wanted.anchors.points(pipeline.at(wanted.uv).points(actuation))
    ring = pipeline.at(np.stack([np.linspace(0.0, 1.0, 200, endpoint=False), np.full(200, 0.5)], axis=1))
    np.testing.assert_allclose(middle, ring.points(actuation).mean(axis=0), atol=0.05)


@pytest.mark.parametrize(
    ("name", "line", "complaint"),
    [
        ("membrane", {"patch": "sheet"}, "no tube"),
        ("membrane", {"control_points": 8, "forward_kinematics": [20]}, "name the patch"),
        ("manipulator", {"patch": "tuba"}, "known: tube"),
        ("three_chamber", {"patch": "tube"}, "no tube"),
        ("three_chamber", {"control_points": 3, "forward_kinematics": [20]}, "control_points"),
    ],
)
def test_a_line_that_the_robot_cannot_have_is_rejected(tmp_path, name, line, complaint):
    described = yaml.safe_load(robot_file(name).read_text()) | {"centre_line": line}
    (tmp_path / "robot.yaml").write_text(yaml.safe_dump(described))
    with pytest.raises(SoftformError, match=complaint):
        load_robot(tmp_path / "robot.yaml")
