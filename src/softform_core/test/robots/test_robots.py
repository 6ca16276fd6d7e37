"""Robots: their actuators and degrees of freedom, and what their descriptions reject."""

import re

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from softform_core.cli.robot import robot as command
from softform_core.errors import SoftformError
from softform_core.paths import robot_file
from softform_core.robots import Robot, load_robot
from softform_core.robots import robot as robot_module

SIX_OVER_NINE = [[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0.5, 0, 0, 0.5, 0, 0], [0, 0, 0, 0, 1, 0]]
SIX_OVER_NINE += [[0, 0, 0.5, 0, 0, 0.5], [0, 0, 0, 1, 0, 0], [0, 0.25, 0, 0, 0.25, 0.25], [0, 0, 0, 0, 0, 1]]


def described(name: str) -> dict:
    return yaml.safe_load(robot_file(name).read_text())


def of_material(law: str, *coefficients: float) -> dict:
    """The body of the three-chamber actuator, of another material."""
    body = described("three_chamber")["body"]
    body["section"]["material"] = {"law": law, "coefficients": list(coefficients)}
    return body


def mapped(**changes) -> Robot:
    """The membrane, its nine chambers driven by six pressures."""
    linear = {"kind": "linear", "names": list("abcdef"), "matrix": SIX_OVER_NINE, "minimum": 0.0, "maximum": 5000.0}
    return Robot.model_validate(described("membrane") | {"actuation_map": linear | changes})


def test_each_kind_of_robot_is_read_from_its_description():
    assert load_robot("membrane", "surface").body.kind == "membrane"
    assert load_robot("three_chamber", "tip").body.kind == "rod"
    with pytest.raises(SoftformError, match="has a tip and no surface"):
        load_robot("three_chamber", "surface")
    with pytest.raises(SoftformError, match="has a surface and no tip"):
        load_robot("membrane", "tip")


def test_the_three_chamber_actuator_has_an_actuation_a_chamber():
    robot = load_robot("three_chamber", "tip")
    assert (robot.degrees_of_freedom, robot.tip_dimensions) == (3, 3)
    assert robot.actuation_names == robot.actuators == ["c1", "c2", "c3"]
    pressures = np.array([[100.0, 0.0, 60000.0]])
    np.testing.assert_array_equal(robot.actuators_of(pressures), pressures)
    np.testing.assert_array_equal(robot.actuation_min, robot.actuator_min)


def test_a_finger_is_inflated_on_one_side_at_a_time():
    robot = load_robot("planar_fingers", "tip")
    assert (robot.degrees_of_freedom, robot.tip_dimensions, len(robot.actuators)) == (3, 2, 6)
    assert robot.actuation_names == ["s1", "s2", "s3"]
    actuation = np.array([[30000.0, -20000.0, 0.0], [-60000.0, 60000.0, 10.0]])
    pressures = robot.actuators_of(actuation)
    np.testing.assert_array_equal(pressures[0], [30000.0, 0.0, 0.0, 20000.0, 0.0, 0.0])
    assert (pressures[:, ::2] * pressures[:, 1::2] == 0.0).all()
    for row in pressures:
        robot.check_commands(row)
    np.testing.assert_array_equal(robot.actuation_of(pressures), actuation)


@given(st.lists(st.floats(0.0, 5000.0), min_size=6, max_size=6))
def test_six_degrees_of_freedom_drive_nine_actuators_and_are_found_again(actuation):
    robot, values = mapped(), np.array(actuation)
    commands = robot.actuators_of(values)
    robot.check_commands(commands)
    assert len(commands) == 9
    np.testing.assert_allclose(commands[3], 0.5 * (values[0] + values[3]), atol=1e-9)
    np.testing.assert_allclose(robot.actuation_of(commands), values, atol=1e-6)


def test_no_actuator_of_a_map_exceeds_its_slew_rate():
    robot = mapped()
    fastest = np.abs(np.array(SIX_OVER_NINE)) @ robot.actuation_slew
    assert (fastest <= robot.slew_rate + 1e-9).all()
    assert fastest.max() == pytest.approx(robot.slew_rate[0])


def test_an_actuator_that_no_degree_of_freedom_moves_does_not_slow_the_others():
    still = mapped(matrix=[*SIX_OVER_NINE[:3], [0.0] * 6, *SIX_OVER_NINE[4:]])
    with np.errstate(all="raise"):
        slew = still.actuation_slew
    np.testing.assert_array_equal(slew[[0, 3]], still.slew_rate[[0, 3]])


def test_a_tendon_may_be_slack_below_its_range_and_not_pulled_beyond_it():
    content = described("tendon_rod")
    content["actuators"]["safe"] = -0.02
    assert Robot.model_validate(content).safe[0] == -0.02
    content["actuators"]["safe"] = [0.0, 0.0, 0.015, 0.0]
    with pytest.raises(ValueError, match="safe 0.015 m of t3 is outside -0.014 … 0.014 m"):
        Robot.model_validate(content)


def test_ranges_are_one_number_or_one_for_each():
    content = described("three_chamber")
    content["actuators"] |= {"minimum": [-100.0, 0.0, 0.0], "maximum": [50e3, 55e3, 60e3]}
    robot = Robot.model_validate(content)
    np.testing.assert_array_equal(robot.actuation_min, [-100.0, 0.0, 0.0])
    np.testing.assert_array_equal(robot.actuation_max, [50e3, 55e3, 60e3])


def test_an_actuation_of_another_size_is_rejected():
    robot = load_robot("planar_fingers", "tip")
    with pytest.raises(SoftformError, match=r"takes 3 values here, got shape \(6,\)"):
        robot.actuators_of(np.zeros(6))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"actuation_map": {"kind": "antagonistic"}}, "even number"),
        ({"devices": [{"name": "b", "channels": [0, True, 4]}]}, "channels: yes, no, on, off, true and false are no"),
        ({"devices": [{"name": "b", "channels": [0, 1]}]}, "must name 3 different channels"),
        ({"devices": [{"name": "b", "channels": [0, 1, 1]}]}, "must name different channels"),
        ({"devices": [{"name": "b", "channels": [0], "actuators": ["c1"]}]}, "must serve each of c1, c2, c3 once"),
        ({"surfaces": [{"patch": "sheet", "rows": 30, "columns": 30, "degree": 3}]}, "no patch 'sheet'"),
        ({"frames": {"elbow": {"segments": 2, "forward_kinematics": [3], "jacobian": [3]}}}, "no frame 'elbow'"),
        ({"frames": {"tip": {"patch": "tube", "v": 1.0}}}, "'tip' lies on 'tube', which is no surface .known: none"),
        ({"frames": {}}, "surface or a frame"),
        ({"actuators": {"minimum": 0.0, "maximum": [1.0, 2.0], "slew_rate": 1.0}}, "maximum must have 3 entries"),
        ({"actuators": {"minimum": 2.0, "maximum": 1.0, "slew_rate": 1.0}}, "must lie below"),
        (
            {"actuators": {"minimum": 0.0, "maximum": 5e3, "slew_rate": 1.0, "safe": 9e3}},
            "safe 9000 Pa of c1 is outside 0",
        ),
        ({"actuators": {"minimum": 0.0, "maximum": 5e3, "slew_rate": 1.0, "safe": [0, 0, -5]}}, "safe -5 Pa of c3"),
        ({"devices": [{"name": "b", "channels": [0], "actuators": [c]} for c in ("c1", "c2", "c3")]}, "b, b, b"),
        ({"surfaces": [{"patch": "tube", "rows": 8, "columns": 4, "degree": 5}]}, "at least 6 rows .* got 8 and 4"),
        ({"body": of_material("yeoh", 1e5)}, r"takes 3 coefficients, got \[100000.0\]"),
        ({"body": of_material("gent", 1e5, -2.0)}, "coefficient 2 of law 'gent' must be positive, got -2"),
        ({"base_markers": {"a": [0, 0, 0], "b": [0.1, 0, 0], "c": [0.1, 0.004, 0]}}, "'b' and 'c' are 4.0 mm apart"),
        ({"tolerances": {"settle": 300.0, "arrive": 250.0}}, "settle 300 must not exceed arrive 250"),
        ({"tolerances": {"settle": 7000.0}}, "tolerances.settle 7000 Pa must not exceed 6000 Pa, 10% of the narrowest"),
        ({"tolerances": {"arrive": 15001.0}}, "tolerances.arrive 15001 Pa must not exceed 15000 Pa"),
        ({"tolerances": {"follow": 1e9}}, r"tolerances.follow 1e.09 Pa must not exceed 30000 Pa, 50%"),
        ({"tolerances": {"beyond_range": 30001.0}}, "tolerances.beyond_range 30001 Pa must not exceed 30000 Pa"),
        ({"tolerances": {"vent_threshold": 15001.0}}, "tolerances.vent_threshold 15001 Pa must not exceed 15000 Pa"),
        ({"tolerances": {"follow": -1.0}}, "tolerances.follow: Input should be greater"),
        ({"tolerances": {"settle": 0.0}}, "settle: Input should be greater than 0"),
        ({"tolerances": {"folow": 1.0}}, "tolerances.folow"),
        ({"body": {"kind": "octopus"}}, "no body of kind 'octopus'"),
        ({"body": {}}, "needs its kind"),
        ({"name": "../elsewhere"}, "name"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_description_that_contradicts_itself_is_rejected(tmp_path, change, complaint):
    path = tmp_path / "odd.yaml"
    path.write_text(yaml.safe_dump(described("three_chamber") | change))
    with pytest.raises(SoftformError, match=complaint):
        load_robot(path)


def test_the_command_builds_the_body(tmp_path):
    content = described("three_chamber")
    content["body"]["section"]["chambers"][0]["centre"] = [0.03, 0.0]
    path = tmp_path / "outside.yaml"
    path.write_text(yaml.safe_dump(content))
    assert "outside its section's outline" in str(CliRunner().invoke(command, [str(path)]).exception)


def with_frames(frames: dict) -> Robot:
    """The membrane, measured in two halves, with named points."""
    halves = [{"patch": half, "rows": 9, "columns": 9, "degree": 3} for half in ("left", "right")]
    return Robot.model_validate(described("membrane") | {"surfaces": halves, "frames": frames})


def test_a_surface_has_named_points_and_lines_and_keeps_its_fingerprint():
    points = {"peak": {"patch": "right", "u": 0.25, "v": 0.5}, "rim": {"patch": "right", "v": 1.0}}
    robot = with_frames(points)
    assert robot.point_parameters("peak").tolist() == [[2.25, 0.5]]
    rim = robot.point_parameters("rim")
    assert len(rim) > 10 and rim.mean(axis=0) == pytest.approx([2.5, 1.0]) and np.ptp(rim, axis=0)[1] == 0.0
    assert robot.fingerprint() == with_frames({}).fingerprint()
    assert Robot.model_validate(robot.model_dump(by_alias=True)).frames == robot.frames
    with pytest.raises(SoftformError, match=r"no point 'tip' .known: peak, rim"):
        robot.point_parameters("tip")
    with pytest.raises(SoftformError, match="no tip that is learned"):
        _ = with_frames({"tip": points["peak"]}).tip


@pytest.mark.parametrize(
    ("frames", "complaint"),
    [
        ({"peak": {"patch": "sheet", "u": 0.5, "v": 0.5}}, "'peak' lies on 'sheet', which is no surface .*left, right"),
        ({"peak": {"patch": "left", "u": 1.5, "v": 0.5}}, r"frames.peak.point.u\n.*less than or equal to 1"),
        ({"peak": {"patch": "left", "v": float("nan")}}, r"frames.peak.point.v\n"),
        ({"peak": {"u": 0.5, "v": 0.5}}, r"frames.peak.point.patch\n.*Field required"),
        ({"tip": {"segments": 3, "forward_kinematics": [4], "jacobian": [4]}}, "'tip' needs the patch"),
        ({"mocap": {"patch": "left"}}, "'mocap' is the name of another frame"),
        ({"my tip": {"patch": "left"}}, "my tip"),
    ],
)
def test_a_wrong_point_of_a_surface_is_rejected(frames, complaint):
    with pytest.raises(ValueError, match=complaint):
        with_frames(frames)


def test_a_name_that_is_given_twice_is_rejected(tmp_path):
    path = tmp_path / "twice.yaml"
    path.write_text(robot_file("manipulator").read_text().replace("frames:\n", "frames:\n  tip: {patch: tube}\n"))
    with pytest.raises(SoftformError, match="'tip' is given twice"):
        load_robot(path)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"matrix": SIX_OVER_NINE[:8]}, "8 rows, the robot has 9"),
        ({"maximum": 6000.0}, "which works between 0 and 5000"),
        ({"names": list("abcde")}, "must have 5 numbers"),
        ({"matrix": [[1, 1, 0, 0, 0, 0]] * 9}, "full column rank"),
        ({"offsets": [1.0]}, "offsets has 1 numbers"),
    ],
)
def test_a_map_that_does_not_fit_the_actuators_is_rejected(changes, complaint):
    with pytest.raises(ValueError, match=complaint):
        mapped(**changes)


def test_each_actuator_may_have_a_quantity_of_its_own():
    content = described("three_chamber")
    content["actuators"] |= {"quantity": ["pressure", "pressure", "rotation"], "maximum": [60e3, 60e3, 1.5]}
    content["tolerances"] = {"vent_threshold": 1500.0}
    robot = Robot.model_validate(content)
    assert robot.actuation_units == ["Pa", "Pa", "rad"] and robot.unit == "Pa, Pa, rad"
    assert robot.actuator_tolerances.follow == pytest.approx([12e3, 12e3, 0.3])
    assert robot.actuator_tolerances.vent_threshold == pytest.approx([1500.0, 1500.0, np.nan], nan_ok=True)
    with pytest.raises(SoftformError, match="Rotation 2 rad of c3 is outside 0 … 1.5 rad"):
        robot.check_commands(np.array([0.0, 0.0, 2.0]))
    content["actuators"]["safe"] = [0.0, 0.0, -0.1]
    with pytest.raises(ValueError, match="safe -0.1 rad of c3 is outside 0 … 1.5 rad"):
        Robot.model_validate(content)
    content["actuators"] |= {"safe": 0.0, "quantity": ["pressure", "rotation"]}
    with pytest.raises(ValueError, match="quantity must have 3 entries"):
        Robot.model_validate(content)


def test_a_degree_of_freedom_moves_actuators_of_one_unit():
    content = described("three_chamber")
    content["actuators"] |= {"quantity": ["pressure", "pressure", "rotation"], "maximum": [60e3, 60e3, 1.5]}
    content["tolerances"] = {}
    free = {"kind": "linear", "names": ["p", "r"], "minimum": 0.0, "maximum": [60e3, 1.5]}
    content["actuation_map"] = free | {"matrix": [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]}
    assert Robot.model_validate(content).actuation_units == ["Pa", "rad"]
    content["actuation_map"] = free | {"matrix": [[1.0, 0.0], [1.0, 0.0], [1e-6, 1.0]]}
    with pytest.raises(ValueError, match="'p' moves actuators in Pa and rad"):
        Robot.model_validate(content)


def test_the_fingerprint_follows_what_decides_the_tip_and_nothing_else(tmp_path):
    content = described("planar_fingers")
    plain = load_robot("planar_fingers").fingerprint()
    path = tmp_path / "other.yaml"
    path.write_text(
        yaml.safe_dump(content | {"title": "other", "devices": [{"name": "b", "channels": [6, 7, 8, 9, 0, 1]}]})
    )
    assert load_robot(path).fingerprint() == plain
    content["body"]["section"]["length"] = 0.11
    path.write_text(yaml.safe_dump(content))
    assert load_robot(path).fingerprint() != plain


def smallest(robot: Robot) -> dict[str, float]:
    return {name: float(values.min()) for name, values in robot.actuator_tolerances._asdict().items()}


def test_tolerances_that_are_not_given_are_parts_of_the_narrowest_range():
    usual = {"settle": 100.0, "arrive": 250.0, "follow": 1000.0, "beyond_range": 1000.0, "vent_threshold": 200.0}
    assert smallest(load_robot("membrane")) == usual
    content = described("three_chamber")
    content["actuators"] |= {"minimum": [0.0, -1000.0, -5000.0], "maximum": [60e3, 4000.0, 60e3]}
    del content["tolerances"]
    assert smallest(Robot.model_validate(content)) == usual
    content["tolerances"] = {"follow": 2501.0}
    with pytest.raises(ValueError, match="tolerances.follow 2501 Pa must not exceed 2500 Pa"):
        Robot.model_validate(content)


def test_a_device_may_serve_no_actuator_beside_those_that_serve_all():
    robot = load_robot("membrane")
    beside = robot.devices[0].model_copy(update={"name": "beside", "actuators": [], "channels": []})
    robot = robot.model_copy(update={"devices": [*robot.devices, beside]})
    assert [robot.served_by(device).tolist() for device in robot.devices] == [list(range(9)), []]
    assert robot.actuator_max[robot.served_by(beside)].tolist() == []


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("actuators", {"maximum": 5001.0}),
        ("actuators", {"slew_rate": 3999.0}),
        ("actuators", {"safe": 1.0}),
        ("tolerances", {"follow": 999.0}),
        ("devices", [{"name": "openpneu", "channels": [1, 0, 2, 3, 4, 5, 6, 7, 8]}]),
        ("devices", [{"name": "other", "channels": list(range(9))}]),
        ("devices", [{"name": "openpneu", "channels": list(range(9)), "settings": {"a": 1}}]),
        ("name", "other"),
        ("actuation_map", {"kind": "linear", "names": list("abcdefghi"), "minimum": 0.0, "maximum": 5e3,
                           "matrix": np.eye(9).tolist()}),
    ],
)  # fmt: skip
def test_commands_are_for_one_description(field, change):
    content = described("membrane")
    before = Robot.model_validate(content).command_fingerprint()
    content[field] = content.get(field, {}) | change if isinstance(change, dict) else change
    assert Robot.model_validate(content).command_fingerprint() != before


def test_equal_descriptions_take_the_same_commands_wherever_they_lie(tmp_path, monkeypatch):
    content, shipped = described("membrane"), load_robot("membrane").command_fingerprint()
    path = tmp_path / "elsewhere.yaml"
    path.write_text(yaml.safe_dump(dict(reversed(content.items()))))
    assert load_robot(path).given_as == str(path) and load_robot(path).command_fingerprint() == shipped
    assert re.fullmatch("[0-9a-f]{16}", shipped)
    assert len({load_robot(robot).command_fingerprint() for robot in ("membrane", "compressible", "manipulator")}) == 3
    monkeypatch.setattr(robot_module, "INTERFACE_VERSION", 0)
    assert load_robot("membrane").command_fingerprint() != shipped


def test_a_changed_copy_of_a_robot_does_not_take_its_commands():
    robot = load_robot("membrane")
    before = robot.command_fingerprint()
    assert robot.model_copy(update={"name": "other"}).command_fingerprint() != before
