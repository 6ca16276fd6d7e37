"""Paths as tables, messages as JSON."""

import json
import time
from contextlib import nullcontext

import numpy as np
import pytest
from click.testing import CliRunner

from softform_client.capture_files import write_table
from softform_client.client import ActuatorPath, Code, GoalFailedError, PointPath
from softform_core.cli.main import main
from softform_core.errors import SoftformError
from softform_core.importing.table import read_table
from softform_core.robots import load_robot
from softform_interfaces.action import ReachShape
from softform_interfaces.msg import ActuatorValues, ServoState
from softform_tools.commands import goals
from softform_tools.commands.follow import follow
from softform_tools.commands.goals import as_json, values_line
from softform_tools.commands.stream import stream
from softform_tools.commands.tables import read_path, read_places

ROBOT = load_robot("three_chamber")
UV = np.array([0.5, 0.5])


def read(tmp_path, text):
    path = tmp_path / "path.csv"
    path.write_text(text)
    return read_path(read_table(path), ROBOT, UV)


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
    places = read_places(read_table(file), ROBOT, 4.0)
    assert places.T.tolist() == [pytest.approx([0, 0.0025, 0.005, 0.0075, 0.01]), [0.0] * 5, [0.1] * 5]
    file.write_text("time,x,y,z\n1,0,0,0.1\n")
    assert read_places(read_table(file), ROBOT, 4.0).tolist() == [[0, 0, 0.1]]
    file.write_text("x,y,z\n0,0,0.1\n0,0,0.2\n")
    assert read_places(read_table(file), ROBOT, 4.0).tolist() == [[0, 0, 0.1], [0, 0, 0.2]]


@pytest.mark.parametrize(
    ("text", "robot", "why"),
    [
        ("time,x,y,z\n2,0,0,0.1\n1,0,0,0.2\n", ROBOT, "do not increase"),
        ("time,x,y,z\nnan,0,0,0.1\n1,0,0,0.2\n", ROBOT, "lacks a value in line 2"),
        ("time,x,y,z\n0,0,0,0.1\n1e12,0,0,0.2\n", ROBOT, "lasts 1e.12 s"),
        (f"{','.join(ROBOT.actuators)}\n1,2,3\n", ROBOT, "holds no stream for 'three_chamber'"),
        ("x,y,z\n0,0,0.1\n", load_robot("membrane"), "holds no stream for 'membrane'"),
    ],
)
def test_what_is_no_stream_of_places_says_why(tmp_path, text, robot, why):
    file = tmp_path / "places.csv"
    file.write_text(text)
    with pytest.raises(SoftformError, match=why):
        read_places(read_table(file), robot, 50.0)


def test_a_frame_is_led_by_its_name_or_a_point_by_its_parameters(tmp_path):
    file = tmp_path / "path.csv"
    file.write_text("x,y,z\n0,0,0.1\n")
    path, _ = read_path(read_table(file), ROBOT, UV, "tip")
    assert isinstance(path, PointPath) and path.output == "tip"
    done = CliRunner().invoke(follow, [str(file), "--point", "tip", "--uv", "0", "0"])
    assert done.exit_code == 2 and "Give one of them" in done.output


def test_what_is_written_is_read(tmp_path):
    values = np.array([[0.1, 1e-9, 12345.678901], [3.0, 2.0, 1.0]])
    write_table(tmp_path / "path.csv", ROBOT.actuators, values)
    assert (read_path(read_table(tmp_path / "path.csv"), ROBOT, UV)[0].values == values).all()


@pytest.mark.parametrize(
    "text",
    [
        "time,x,y,z\n1.0,0.0,0.0,0.118\n2.0,0.002,0.0,0.118\n",
        "\ufefftime,x,y,z\r\n1.0,0.0,0.0,0.118\r\n2.0,0.002,0.0,0.118\r\n",
        "time;x;y;z\n1,0;0,0;0,0;0,118\n2,0;0,002;0,0;0,118\n",
        "Time\tX\tY\tZ\n1.0\t0.0\t0.0\t0.118\n2.0\t0.002\t0.0\t0.118\n",
        "# made by a program\n,time,z,y,x\n0,1,0.118,0,0\n1,2,0.118,0,0.002\n",
    ],
    ids=["plain", "Windows", "decimal commas", "tabs and capitals", "a comment and an index"],
)
def test_a_path_is_a_table_as_all_commands_take_it(tmp_path, text):
    path, times = read(tmp_path, text)
    assert path.points.tolist() == [[0, 0, 0.118], [0.002, 0, 0.118]] and times.tolist() == [1.0, 2.0]
    assert len(read_places(read_table(tmp_path / "path.csv"), ROBOT, 50.0)) == 51


def test_any_table_is_streamed_in_its_unit(tmp_path, monkeypatch):
    sent = []

    class Client:
        def robot(self):
            return ROBOT

        def stream(self, targets, rate):
            sent.extend(targets)
            yield ServoState(state=ServoState.TRACKING)

    monkeypatch.setattr(goals, "connected", lambda *_: nullcontext(Client()))
    (tmp_path / "places.tsv").write_text("x\ty\tz\n0\t0\t118\n2\t0\t118\n")
    done = CliRunner().invoke(stream, [str(tmp_path / "places.tsv"), "--unit", "mm"])
    assert done.exit_code == 0, done.output
    assert np.array(sent)[[0, -1]] == pytest.approx(np.array([[0, 0, 0.118], [0.002, 0, 0.118]]))
    (tmp_path / "dome.ply").touch()
    refused = CliRunner().invoke(stream, [str(tmp_path / "dome.ply")])
    assert "holds no shapes" in str(refused.exception)


def test_places_may_be_in_millimetres_and_actuators_are_in_their_unit(tmp_path):
    (tmp_path / "path.csv").write_text("x,y,z\n0,0,118\n2,0,118\n")
    wanted = pytest.approx(np.array([[0, 0, 0.118], [0.002, 0, 0.118]]))
    assert read_path(read_table(tmp_path / "path.csv"), ROBOT, UV, unit="mm")[0].points == wanted
    assert read_places(read_table(tmp_path / "path.csv"), ROBOT, 50.0, "mm") == wanted
    write_table(tmp_path / "path.csv", ROBOT.actuators, np.array([[1.0, 2.0, 3.0]]))
    assert read_path(read_table(tmp_path / "path.csv"), ROBOT, UV, unit="mm")[0].values.tolist() == [[1.0, 2.0, 3.0]]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no row of numbers"),
        ("x,y,z\n", "no row of numbers"),
        ("x,y\n1,2\n", "has the columns x, y. Give x,y,z or c1,c2,c3"),
        ("x,y,z,µ\n1,2,3,4\n", "has the columns x, y, z, µ"),
        ("x,y,z\n1,2\n", "names 3 columns, line 2 has 2"),
        ("x,y,z\n1,2,3\n1,2,three\n", "'three' in line 3"),
        ("x,y,z\n1,2,3\nnan,2,3\n", "lacks a value in line 3"),
        ("x,x,y,z\n1,1,1,1\n", "'x' twice"),
        ("1,2,3\n4,5,6\n", "no header"),
    ],
)
def test_what_is_no_path_is_rejected(tmp_path, text, why):
    with pytest.raises(SoftformError, match=why):
        read(tmp_path, text)


@pytest.mark.parametrize("command", ["follow", "stream"])
def test_a_file_that_is_not_there_is_named_before_a_stack_is_looked_for(command, tmp_path):
    result = CliRunner().invoke(main, [command, str(tmp_path / "absent.csv")])
    assert result.exit_code != 0 and "absent.csv cannot be read: No such file" in result.output


def test_a_result_becomes_json_without_clouds_and_without_what_json_does_not_know():
    result = ReachShape.Result(promised_mean_error=float("nan"), round_mean_errors=[0.001])
    result.actuators = ActuatorValues(name=["c1", "c2"], value=[1.0, 2.0, 1234.5, 0.25], unit="Pa")
    plain = json.loads(json.dumps(as_json(result), allow_nan=False))
    assert plain["promised_mean_error"] is None and plain["round_mean_errors"] == [0.001]
    assert plain["actuators"]["value"][2] == 1234.5 and "shape" not in plain["measured"]
    assert values_line(result.actuators) == "c1 1234.5, c2 0.25 Pa"


def test_an_error_is_told_by_its_code_and_the_name_of_that(capsys):
    def call():
        raise GoalFailedError("It lies too far away.", Code.UNREACHABLE, ReachShape.Result())

    with pytest.raises(SystemExit) as ended:
        goals.carried_out(call, lambda: None, {Code.UNREACHABLE: "Move it."})
    assert ended.value.code == goals.EXIT_FAILED
    assert capsys.readouterr().err == "[113 UNREACHABLE] It lies too far away. Move it.\n"


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("x [mm],y [mm],z [mm]\n0,0,118\n", r"has the columns x \[mm\]"),
        ("x,y,z\nmm,mm,mm\n0,0,118\n", "is in mm by its header"),
        ("time,x,y,z\nms,m,m,m\n0,0,0,0.118\n1000,0,0,0.118\n", "is in ms by its header"),
    ],
)
def test_a_unit_that_the_header_contradicts_is_rejected(tmp_path, text, stated):
    with pytest.raises(SoftformError, match=stated):
        read(tmp_path, text)


def test_in_a_pipe_a_long_wait_is_said_once(monkeypatch, capsys):
    monkeypatch.setattr(goals, "_SILENCE_SECONDS", 0.05)
    with goals.Progress() as bar:
        for _ in range(3):
            bar.note("capturing, predicted 1.20 mm")
            time.sleep(0.1)
    assert capsys.readouterr().err.splitlines() == ["capturing, predicted 1.20 mm"]
    with goals.Progress() as bar:
        bar.note("solving")
    time.sleep(0.1)
    assert not capsys.readouterr().err
