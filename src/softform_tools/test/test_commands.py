"""Paths as CSV files, messages as JSON."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from softform_client.client import ActuatorPath, PointPath
from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_interfaces.action import ReachShape
from softform_interfaces.msg import ActuatorValues
from softform_tools.commands.follow import follow
from softform_tools.commands.goals import as_json, values_line
from softform_tools.commands.tables import read_path, read_places, write_table

ROBOT = load_robot("three_chamber")
UV = np.array([0.5, 0.5])


def read(tmp_path, text):
    path = tmp_path / "path.csv"
    path.write_text(text)
    return read_path(path, ROBOT, UV)


def test_points_and_actuators_are_recognised_by_their_columns(tmp_path):
    path, times = read(tmp_path, "x, y, z\n0,0,0.1\n0,0.01,0.1\n")
    assert isinstance(path, PointPath) and path.points.tolist() == [[0, 0, 0.1], [0, 0.01, 0.1]] and times is None
    names = ROBOT.actuators[::-1]
    path, times = read(tmp_path, f"time,{','.join(names)}\n1,3,2,1\n\n2.5,6,5,4\n")
    assert isinstance(path, ActuatorPath) and path.values.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert times.tolist() == [1.0, 2.5]


def test_places_of_a_stream_go_straight_from_time_to_time(tmp_path):
    file = tmp_path / "places.csv"
    file.write_text("time,x,y,z\n1,0,0,0.1\n2,0.01,0,0.1\n")
    places = read_places(file, ROBOT, 4.0)
    assert places.T.tolist() == [pytest.approx([0, 0.0025, 0.005, 0.0075, 0.01]), [0.0] * 5, [0.1] * 5]
    file.write_text("time,x,y,z\n1,0,0,0.1\n")
    assert read_places(file, ROBOT, 4.0).tolist() == [[0, 0, 0.1]]
    file.write_text("x,y,z\n0,0,0.1\n0,0,0.2\n")
    assert read_places(file, ROBOT, 4.0).tolist() == [[0, 0, 0.1], [0, 0, 0.2]]


@pytest.mark.parametrize(
    ("text", "robot", "why"),
    [
        ("time,x,y,z\n2,0,0,0.1\n1,0,0,0.2\n", ROBOT, "do not increase"),
        ("time,x,y,z\nnan,0,0,0.1\n1,0,0,0.2\n", ROBOT, "do not increase"),
        ("time,x,y,z\n0,0,0,0.1\n1e12,0,0,0.2\n", ROBOT, "lasts 1e.12 s"),
        (f"{','.join(ROBOT.actuators)}\n1,2,3\n", ROBOT, "holds no stream for 'three_chamber'"),
        ("x,y,z\n0,0,0.1\n", load_robot("membrane"), "holds no stream for 'membrane'"),
    ],
)
def test_what_is_no_stream_of_places_says_why(tmp_path, text, robot, why):
    file = tmp_path / "places.csv"
    file.write_text(text)
    with pytest.raises(SoftformError, match=why):
        read_places(file, robot, 50.0)


def test_a_frame_is_led_by_its_name_or_a_point_by_its_parameters(tmp_path):
    file = tmp_path / "path.csv"
    file.write_text("x,y,z\n0,0,0.1\n")
    path, _ = read_path(file, ROBOT, UV, "tip")
    assert isinstance(path, PointPath) and path.point == "tip"
    done = CliRunner().invoke(follow, [str(file), "--point", "tip", "--uv", "0", "0"])
    assert done.exit_code == 2 and "Give one of them" in done.output


def test_what_is_written_is_read(tmp_path):
    values = np.array([[0.1, 1e-9, 12345.678901], [3.0, 2.0, 1.0]])
    write_table(tmp_path / "path.csv", ROBOT.actuators, values)
    assert (read_path(tmp_path / "path.csv", ROBOT, UV)[0].values == values).all()


@pytest.mark.parametrize(
    "text",
    ["", "x,y,z\n", "x,y\n1,2\n", "x,y,z\n1,2\n", "x,y,z\n1,2,three\n", "x,x,y,z\n1,1,1,1\n", "1,2,3\n4,5,6\n"],
    ids=["empty", "no rows", "no z", "a short row", "a word", "x twice", "no names"],
)
def test_what_is_no_path_is_rejected(tmp_path, text):
    with pytest.raises(SoftformError, match=r"cannot be read|has the columns"):
        read(tmp_path, text)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SoftformError, match="absent.csv cannot be read: No such file"):
        read_path(tmp_path / "absent.csv", ROBOT, UV)


def test_a_result_becomes_json_without_clouds_and_without_what_json_does_not_know():
    result = ReachShape.Result(promised_mean_error=float("nan"), round_mean_errors=[0.001])
    result.actuators = ActuatorValues(name=["c1", "c2"], value=[1.0, 2.0, 1234.5, 0.25], unit="Pa")
    plain = json.loads(json.dumps(as_json(result), allow_nan=False))
    assert plain["promised_mean_error"] is None and plain["round_mean_errors"] == [0.001]
    assert plain["actuators"]["value"][2] == 1234.5 and "shape" not in plain["measured"]
    assert values_line(result.actuators) == "c1 1234.5, c2 0.25 Pa"
