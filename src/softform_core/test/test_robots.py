"""Robots without a surface: their chambers and actuations, and what their descriptions refuse."""

import numpy as np
import pytest
import yaml

from softform_core.errors import SoftformError
from softform_core.paths import robot_file
from softform_core.robots import Robot, TipRobot, load_any_robot, load_robot, load_tip_robot


def test_each_kind_of_robot_is_read_from_its_description():
    assert isinstance(load_any_robot("membrane"), Robot)
    assert isinstance(load_any_robot("three_chamber"), TipRobot)
    with pytest.raises(SoftformError, match="has a tip and no surface"):
        load_robot("three_chamber")
    with pytest.raises(SoftformError, match="has a surface and no tip"):
        load_tip_robot("membrane")


def test_the_three_chamber_actuator_has_an_actuation_a_chamber():
    robot = load_tip_robot("three_chamber")
    assert (robot.degrees_of_freedom, robot.tip_dimensions) == (3, 3)
    assert robot.actuators == robot.chambers == ["c1", "c2", "c3"]
    pressures = np.array([[100.0, 0.0, 60000.0]])
    np.testing.assert_array_equal(robot.chamber_pressures(pressures), pressures)
    np.testing.assert_array_equal(robot.actuation_min, robot.pressure_min)


def test_a_finger_is_inflated_on_one_side_at_a_time():
    robot = load_tip_robot("planar_fingers")
    assert (robot.degrees_of_freedom, robot.tip_dimensions, len(robot.chambers)) == (3, 2, 6)
    assert robot.actuators == ["s1", "s2", "s3"]
    actuation = np.array([[30000.0, -20000.0, 0.0], [-60000.0, 60000.0, 10.0]])
    pressures = robot.chamber_pressures(actuation)
    np.testing.assert_array_equal(pressures[0], [30000.0, 0.0, 0.0, 20000.0, 0.0, 0.0])
    assert (pressures[:, ::2] * pressures[:, 1::2] == 0.0).all()
    for row in pressures:
        robot.check_pressures(row)
    np.testing.assert_array_equal(robot.actuation_of(pressures), actuation)


def test_an_actuation_outside_the_range_or_of_another_size_is_refused():
    robot = load_tip_robot("planar_fingers")
    robot.check_actuation(np.array([-60000.0, 0.0, 60000.0]))
    with pytest.raises(SoftformError, match="Actuation -60100 Pa of s1 is outside -60000 … 60000 Pa"):
        robot.check_actuation(np.array([-60100.0, 0.0, 0.0]))
    with pytest.raises(SoftformError, match="of s2 is not a finite number"):
        robot.check_actuation(np.array([0.0, np.nan, 0.0]))
    with pytest.raises(SoftformError, match=r"takes 3 values here, got shape \(6,\)"):
        robot.chamber_pressures(np.zeros(6))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"antagonistic": True, "board": {"channels": [0, 1]}}, "even number"),
        ({"board": {"channels": [0, 1]}}, "must name 3 different channels"),
        ({"board": {"channels": [0, 1, 1]}}, "must name 3 different channels"),
        ({"surface": {"rows": 30, "columns": 30, "degree": 3}}, "surface"),
    ],
)
def test_a_description_that_contradicts_itself_is_refused(tmp_path, change, complaint):
    described = yaml.safe_load(robot_file("three_chamber").read_text()) | change
    path = tmp_path / "odd.yaml"
    path.write_text(yaml.safe_dump(described))
    with pytest.raises(SoftformError, match=complaint):
        load_any_robot(path)


def test_the_fingerprint_follows_what_decides_the_tip_and_nothing_else(tmp_path):
    described = yaml.safe_load(robot_file("planar_fingers").read_text())
    plain = load_any_robot("planar_fingers").fingerprint()
    path = tmp_path / "other.yaml"
    path.write_text(yaml.safe_dump(described | {"title": "other", "board": {"channels": [6, 7, 8, 9, 0, 1]}}))
    assert load_any_robot(path).fingerprint() == plain
    described["rod"]["section"]["length"] = 0.11
    path.write_text(yaml.safe_dump(described))
    assert load_any_robot(path).fingerprint() != plain
