"""Realities of rods: what differs, what a live rod remembers, and whether sim-to-real brings the tip home."""

import numpy as np
import pytest
import yaml

from softform_core.errors import SoftformError
from softform_core.forward.tip_model import load_tip_model
from softform_core.networks.store import TIP_KINEMATICS, load_tip_sim_to_real
from softform_core.paths import models_dir, reality_file
from softform_core.robots import load_robot
from softform_core.simulation.simulated_body import equilibrium_points
from softform_core.stores.past import REMEMBERED
from softform_core.training.tip_samples import read_tip_samples
from softform_rig.live_body import LiveBody
from softform_rig.reality import known_realities, load_reality
from softform_studies.cli_picture import picture
from softform_studies.ik.ik_prediction import SHIPPED
from softform_studies.waypoints.bench_waypoints import tracking_in_reality
from softform_studies.waypoints.capture_tips import capture_tips, main

THREE_CHAMBER, FINGERS = load_robot("three_chamber", "tip"), load_robot("planar_fingers", "tip")


def simulate_tips(robot, actuations):
    return equilibrium_points(robot.body.simulator(), robot.actuators_of(actuations))[:, 0, : robot.tip_dimensions]


@pytest.mark.parametrize("robot", [THREE_CHAMBER, FINGERS], ids=lambda robot: robot.name)
def test_the_default_reality_lies_some_per_cent_of_the_workspace_from_the_simulator(robot):
    actuations, tips = capture_tips(robot, load_reality("default", robot), 30)[:2]
    simulated = simulate_tips(robot, actuations)
    gap = np.linalg.norm(tips - simulated, axis=1).mean() / np.ptp(simulated[:, :2], axis=0).min()
    assert 0.03 < gap < 0.12
    again = capture_tips(robot, load_reality("default", robot), 5).tips
    np.testing.assert_array_equal(capture_tips(robot, load_reality("default", robot), 5).tips, again)


def test_without_differences_reality_is_the_simulator(tmp_path):
    path = tmp_path / "same.yaml"
    path.write_text("{name: same, title: As simulated, body: {kind: rod}, motion_capture: {noise: 0.0}}")
    actuations, tips = capture_tips(FINGERS, load_reality(path, FINGERS), 20)[:2]
    np.testing.assert_allclose(tips, simulate_tips(FINGERS, actuations), atol=1e-8)


def test_the_material_remembers_where_it_came_from():
    reality = load_reality("default", THREE_CHAMBER)
    live, half = LiveBody(THREE_CHAMBER, reality), np.full(3, 30000.0)
    up = live.shape(half)[0]
    live.shape(np.full(3, 50000.0))
    down = live.shape(half)[0]
    assert down[2] - up[2] > 2e-5
    elastic = LiveBody(THREE_CHAMBER, reality.model_copy(update={"hysteresis": 0.0}))
    first = elastic.shape(half)
    elastic.shape(np.full(3, 50000.0))
    np.testing.assert_allclose(elastic.shape(half), first, atol=1e-8)


def test_a_rod_under_absurd_pressure_keeps_its_last_tip_and_says_so():
    live = LiveBody(THREE_CHAMBER, load_reality("default", THREE_CHAMBER))
    rest = live.shape(np.zeros(3))
    good = live.shape(np.array([20000.0, 0.0, 0.0]))
    np.testing.assert_array_equal(live.shape(np.array([900000.0, 0.0, 0.0])), good)
    assert "far outside" in live.failure
    np.testing.assert_allclose(live.shape(np.array([20000.0, 0.0, 0.0])), good, atol=1e-9)
    assert live.failure is None
    np.testing.assert_allclose(rest, live.shape(np.zeros(3)), atol=2e-4)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"body": {"kind": "rod", "wall": {"modulus": -1.0}}}, "body.wall.modulus"),
        ({"body": {"kind": "rod", "fabrication": {"length": 0.5}}}, "body.fabrication.length"),
        ({"membrane": {}}, "membrane"),
        ({"pressure_sensors": {"gain": [1.0, 1.0]}}, "pressure_sensors.gain has 2 numbers, this robot needs 3"),
    ],
)
def test_a_description_that_is_wrong_is_rejected_by_name_of_the_field(tmp_path, change, complaint):
    path = tmp_path / "odd.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(reality_file("default", "rod").read_text()) | change))
    with pytest.raises(SoftformError, match=complaint):
        load_reality(path, THREE_CHAMBER)


def test_captured_tips_are_written_for_training(tmp_path, capsys):
    path = tmp_path / "tips.zarr"
    main(["--robot", "planar_fingers", "--samples", "12", "--output", str(path)], standalone_mode=False)
    assert "12 tips" in capsys.readouterr().out
    samples, origin = read_tip_samples(path, FINGERS)
    assert samples.actuation.shape == (12, 3)
    assert samples.tips.shape == (12, 2)
    np.testing.assert_array_equal(samples.past[0], np.tile(FINGERS.rest_actuation, (REMEMBERED, 1)))
    np.testing.assert_array_equal(samples.past[5][-4:], samples.actuation[1:5])
    assert "default" in origin["source"]


@pytest.mark.long
@pytest.mark.parametrize("robot", [THREE_CHAMBER, FINGERS], ids=lambda robot: robot.name)
def test_with_sim_to_real_the_real_tip_follows_the_eight_within_one_per_cent(robot):
    reality, folder = load_reality("default", robot), models_dir() / robot.name / SHIPPED
    model = load_tip_model(robot, sim_to_real=folder)
    card = load_tip_sim_to_real(robot, folder, TIP_KINEMATICS.load(folder.parent, robot)[1])[1]
    assert card.data.samples == {"three_chamber": 343, "planar_fingers": 620}[robot.name]
    with_transfer = tracking_in_reality(robot, reality, model)
    without = tracking_in_reality(robot, reality, model.without_sim_to_real)
    assert with_transfer["tracking_max_percent"] <= 1.0
    assert without["tracking_mean_percent"] > 3.0 > 3.0 * with_transfer["tracking_mean_percent"]


@pytest.mark.long
def test_the_picture_of_the_eight_is_drawn(tmp_path):
    path = tmp_path / "waypoints.png"
    picture(["three_chamber", "--output", str(path)], standalone_mode=False)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 20_000


@pytest.mark.parametrize("robot", [THREE_CHAMBER, FINGERS], ids=lambda robot: robot.name)
def test_every_shipped_reality_of_rods_fits_both_robots(robot):
    names = known_realities("rod")
    assert "default" in names
    for name in names:
        assert load_reality(name, robot).name == name
