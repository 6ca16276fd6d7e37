"""The launch command, the launch files that ship, and a launch as a child of another program."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import yaml
from click.testing import CliRunner

from softform_core.errors import SoftformError
from softform_core.paths import config_dir, home, launch_dir
from softform_core.robots import load_robot
from softform_launch import substitutions
from softform_launch.cli_launch import find_launch_file, launch
from softform_launch.launch_file import list_arguments, load_launch_file
from softform_launch.launched_stack import LaunchedStack

SOFTFORM = launch_dir() / "softform.launch.xml"
ROBOTS = sorted(path.stem for path in (config_dir() / "robots").glob("*.yaml"))
SHIPPED = sorted(launch_dir().glob("*.launch.xml"))
WITH_DRIVER = [path for path in SHIPPED if path.name != "replay.launch.xml"]


@pytest.fixture(scope="module", autouse=True)
def descriptions_are_asked_once():
    """A launch file asks each robot's description by a command; here it is loaded a hundred times."""
    answers, ask = {}, substitutions._output_of

    def output_of(line, context, element):
        if line not in answers:
            answers[line] = ask(line, context, element)
        return answers[line]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(substitutions, "_output_of", output_of)
        yield


def invoke(*words):
    return CliRunner().invoke(launch, words, catch_exceptions=True)


def test_files_are_found_by_name_and_by_path(tmp_path):
    assert find_launch_file("softform") == launch_dir() / "softform.launch.xml"
    assert find_launch_file("softform.launch.xml") == launch_dir() / "softform.launch.xml"
    (tmp_path / "mine.launch.xml").write_text("<launch/>")
    assert find_launch_file(str(tmp_path / "mine.launch.xml")) == tmp_path / "mine.launch.xml"
    with pytest.raises(SoftformError, match="no launch file 'sotform'.*driver, replay, shaping, softform"):
        find_launch_file("sotform")


@pytest.mark.parametrize("words", [(), ("namespace:=lab",), ("softform", "namespace:=lab")])
def test_without_a_file_it_is_the_whole_stack(words):
    lines = invoke(*words, "--dry-run").output.splitlines()
    space = "/lab" if "namespace:=lab" in words else "/softform"
    assert len(lines) > 6 and all(f"__ns:={space} " in f"{line} " for line in lines)


def test_arguments_must_have_the_ros_form():
    result = invoke("softform", "robot=membrane", "--dry-run")
    assert isinstance(result.exception, SoftformError)
    assert "Write robot:=membrane" in str(result.exception)
    assert "write robot:=membrane" in str(invoke("robot=membrane").exception)
    assert "Write name:=value" in str(invoke("softform", "membrane").exception)


def test_show_args_lists_every_argument():
    output = invoke("softform", "--show-args").output
    for argument in list_arguments(launch_dir() / "softform.launch.xml"):
        assert argument.name in output and argument.description in output
        assert argument.description


@pytest.mark.parametrize("file", ["softform", "driver", "replay"])
def test_a_wrong_description_ends_the_launch_before_any_node_starts(tmp_path, monkeypatch, file):
    started = []
    monkeypatch.setattr("softform_launch.launch_guardian.run_guarded", started.append)
    content = yaml.safe_load((config_dir() / "robots" / "membrane.yaml").read_text())
    content["body"] |= {"width": "wide", "colour": "red"}
    robot = tmp_path / "mine.yaml"
    robot.write_text(yaml.safe_dump(content))
    ended = invoke(file, f"robot:={robot}")
    assert isinstance(ended.exception, SoftformError)
    for part in (f"{robot} does not describe a robot", "body.width: Input should be a valid number", "body.colour"):
        assert part in str(ended.exception)
    assert not started


def test_dry_run_prints_the_commands_and_starts_nothing(tmp_path):
    result = invoke("softform", "reality:=ideal", f"run_dir:={tmp_path / 'run'}", "--dry-run")
    assert result.exit_code == 0, result.exception
    lines = result.output.splitlines()
    assert [line.split("__node:=")[1].split()[0] for line in lines] == [
        *(
            "rig",
            "actuation",
            "scanner",
            "shape_predictor",
            "inverse_kinematics",
            "motion_planner",
            "collector",
            "console",
            "bringup_manager",
        )
    ]
    assert 'reality:="ideal"' in lines[0]
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("robot", ROBOTS)
def test_what_looks_at_a_surface_is_started_for_robots_that_have_one(robot):
    processes = {process.name: process for process in load_launch_file(SOFTFORM, {"robot": robot})}
    has_surface = bool(load_robot(robot).surfaces)
    assert {"scanner", "collector"} & set(processes) == ({"scanner", "collector"} if has_surface else set())
    assert "shape_predictor" in processes
    assert ("motion_capture" in processes) == (not has_surface)
    assert f"mocap_rate:={0.0 if has_surface else 20.0}" in processes["rig"].command


@pytest.mark.parametrize("file", SHIPPED, ids=lambda path: path.stem)
@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("mocap", ["true", "false"])
@pytest.mark.parametrize("rig", ["true", "false"])
def test_shipped_files_start_what_the_manager_waits_for(file, rig, mocap, robot):
    known = {argument.name for argument in list_arguments(file)}
    given = {"rig": rig, "robot": robot}
    if mocap == "true" or load_robot(robot).surfaces:
        given["motion_capture"] = mocap
    processes = load_launch_file(file, {name: value for name, value in given.items() if name in known})
    names = [process.name for process in processes]
    (manager,) = [process for process in processes if process.name == "bringup_manager"]
    (nodes,) = [word for word in manager.command if word.startswith("nodes:=")]
    waits_for = [name for name in yaml.safe_load(nodes.removeprefix("nodes:=")) if name]
    assert waits_for == [name for name in names if name != "bringup_manager"]
    assert manager.is_required
    assert ("rig" in names) == (rig == "true" and file in WITH_DRIVER)


@pytest.mark.parametrize("file", WITH_DRIVER, ids=lambda path: path.stem)
def test_port_is_the_rigs_or_the_given_one(file):
    def ports(rig):
        arguments = {"rig": rig} | ({"run_dir": "/r"} if rig == "true" else {"port": "/dev/ttyACM3"})
        (driver,) = [p for p in load_launch_file(file, arguments) if p.name == "actuation"]
        return [word for word in driver.command if word.startswith("port:=")]

    assert ports("true") == ['port:="/r/openpneu"']
    assert ports("false") == ['port:="/dev/ttyACM3"']


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            "softform port:=/dev/ttyUSB0",
            r"port:=/dev/ttyUSB0 is given and would not be used \(Hardware only \(rig:=false",
        ),
        ("driver port:=/dev/ttyUSB0 rig:=true", "port:=/dev/ttyUSB0 is given and would not be used"),
        ("driver faults:=stall@1", r"faults:=stall@1 is given and would not be used \(Virtual rig only \(rig:=true\)"),
        ("softform bag:=/x", r"bag:=/x is given and would not be used \(Recordings only \(record:=true\)"),
        ("softform rig:=false seed:=3", "seed:=3 is given and would not be used"),
        ("softform rig:=false driver:=false port:=/dev/x", "port:=/dev/x is given and would not be used"),
        ("softform mocap_system:=vicon", "mocap_system:=vicon is given and would not be used"),
        ("softform solvers:=false captures:=2", "captures:=2 is given and would not be used"),
        ("softform robot:=three_chamber scan_folder:=/x", "scan_folder:=/x is given and would not be used"),
        ("softform robot:=three_chamber motion_capture:=false", "motion_capture:=false is given and would not be used"),
        ("softform robot:=planar_fingers motion_capture:=true camera_tracker:=true", "motion_capture:=true is given"),
        ("softform raelity:=ideal", r"no argument 'raelity' \(the nearest is reality\)"),
        ("softform run_dir:=", "'run_dir' is given and empty"),
        ("softform seed:=1 seed:=2", "seed is given as '1' and as '2'. Give it once"),
        ("softfrom seed:=1", r"no launch file 'softfrom' \(the nearest is softform\)"),
        ("softform robot:=three_chamber motion_capture:=true", None),
        ("softform record:=true bag:=/x", None),
        ("softform bag:= faults:= wire_log:=", None),
    ],
)
def test_what_is_given_and_would_not_be_used_is_said(words, complaint):
    result = invoke(*words.split(), "--dry-run")
    if complaint is None:
        assert result.exit_code == 0, result.exception
    else:
        assert isinstance(result.exception, SoftformError) and re.search(complaint, str(result.exception))


@pytest.mark.parametrize("file", WITH_DRIVER, ids=lambda path: path.stem)
def test_only_on_a_rig_are_latches_kept_in_the_runs_folder(file, monkeypatch):
    def state(rig):
        arguments = {"rig": rig} | ({"run_dir": "/r"} if rig == "true" else {})
        (driver,) = [p for p in load_launch_file(file, arguments) if p.name == "actuation"]
        return driver.environment.get("SOFTFORM_STATE")

    monkeypatch.delenv("SOFTFORM_STATE", raising=False)
    assert (state("true"), state("false")) == ("/r/state", None)
    monkeypatch.setenv("SOFTFORM_STATE", "/s")
    assert state("true") == "/s"


def test_every_parameter_file_is_used_and_holds_parameters():
    used = " ".join(file.read_text() for file in SHIPPED)
    for file in sorted((config_dir() / "nodes").glob("*.yaml")):
        assert f"/{file.name}" in used
        assert isinstance(yaml.safe_load(file.read_text())["/**"]["ros__parameters"], dict)


@pytest.fixture
def sleeper_file(tmp_path, monkeypatch):
    """A launch file that starts `sleep`, which an install prefix of its own holds."""
    prefix = tmp_path / "install"
    (prefix / "share/ament_index/resource_index/packages").mkdir(parents=True)
    (prefix / "share/ament_index/resource_index/packages/demo_pkg").touch()
    (prefix / "lib/demo_pkg").mkdir(parents=True)
    (prefix / "lib/demo_pkg/sleeper").symlink_to("/bin/sleep")
    monkeypatch.setenv("AMENT_PREFIX_PATH", os.pathsep.join([str(prefix), os.environ.get("AMENT_PREFIX_PATH", "")]))
    file = tmp_path / "sleeper.launch.xml"
    file.write_text(
        """<launch><arg name="time" default="94"/>
        <node pkg="demo_pkg" exec="sleeper" args="$(var time)" on_exit="shutdown"/></launch>"""
    )
    return file


def wait_for_sleeper(root, seconds=20.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for process in psutil.Process(root).children(recursive=True):
            if process.name() in ("sleep", "sleeper", "coreutils"):
                return process
        time.sleep(0.05)
    raise AssertionError("the sleeper never came")


def test_launched_stack_runs_and_stops(sleeper_file):
    with LaunchedStack(sleeper_file, output=subprocess.DEVNULL) as stack:
        sleeper = wait_for_sleeper(stack.process.pid)
        assert stack.exit_code is None
    assert stack.exit_code == 0
    assert not sleeper.is_running()


def signal_sets(process):
    """Return the signals that a process has blocked and those that wait for it, as bits."""
    status = Path(f"/proc/{process}/status").read_text()
    return [int(re.search(rf"^{name}:\t(\w+)$", status, re.M)[1], 16) for name in ("SigBlk", "ShdPnd")]


@pytest.mark.parametrize("start", ["./softform launch", "LaunchedStack"])
def test_sigint_while_it_imports_is_not_lost(tmp_path, start):
    """Python raises KeyboardInterrupt wherever it is, at times in a callback of its imports, which drops it."""
    file = tmp_path / "capture.launch.xml"
    file.write_text('<launch><node pkg="softform_capture" exec="motion_capture_node"/></launch>')
    if start == "LaunchedStack":
        process = LaunchedStack(file, output=subprocess.PIPE).__enter__().process
    else:
        process = subprocess.Popen([home() / "softform", "launch", file], stdout=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 20.0
        while b"python" not in Path(f"/proc/{process.pid}/cmdline").read_bytes().partition(b"\0")[0]:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        is_held, waits = (bits >> signal.SIGINT - 1 & 1 for bits in signal_sets(process.pid))
        process.send_signal(signal.SIGCONT)
        output, _ = process.communicate(timeout=20)
    finally:
        process.kill()
    assert (is_held, waits) == (1, 1)
    assert process.returncode == 0
    assert b"started" not in output or b"SIGINT received" in output


def test_launched_stack_tells_of_its_end(sleeper_file, tmp_path):
    with (tmp_path / "log").open("wb") as log, LaunchedStack(sleeper_file, {"time": "nonsense"}, output=log) as stack:
        assert stack.process.wait(30) == 1
    assert "sleeper, which is required, ended with exit code 1" in (tmp_path / "log").read_text()


def test_launched_stack_ends_with_its_program(sleeper_file):
    """Killed with SIGKILL, the program cannot clean up; the launch does."""
    code = f"""
import time
from softform_launch.launched_stack import LaunchedStack
with LaunchedStack({str(sleeper_file)!r}):
    time.sleep(60)
"""
    program = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
    sleeper = wait_for_sleeper(program.pid)
    launches = psutil.Process(program.pid).children(recursive=True)
    program.send_signal(signal.SIGKILL)
    program.wait()
    _, alive = psutil.wait_procs([*launches, sleeper], timeout=20.0)
    assert alive == []


def test_errors_reach_the_terminal_without_a_traceback(tmp_path):
    file = tmp_path / "bad.launch.xml"
    file.write_text("<launch><oops/></launch>")
    command = [sys.executable, "-m", "softform_launch.cli_launch", str(file)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode != 0
    assert result.stderr.startswith(f"softform: {file}:1: <oops> is not understood")
    assert Path(file).exists()


@pytest.mark.parametrize(
    ("words", "display", "terminal", "opens"),
    [
        ((), {"DISPLAY": ":0"}, True, True),
        ((), {"WAYLAND_DISPLAY": "wayland-0"}, True, True),
        ((), {}, True, False),
        ((), {"DISPLAY": ":0"}, False, False),
        ((), {"DISPLAY": ":0", "CI": "true"}, True, False),
        (("--no-page",), {"DISPLAY": ":0"}, True, False),
        (("--page",), {}, False, True),
        (("console:=false",), {"DISPLAY": ":0"}, True, False),
        (("open_page:=false",), {"DISPLAY": ":0"}, True, False),
        (("driver",), {"DISPLAY": ":0"}, True, None),
    ],
)
def test_the_page_is_opened_for_who_sits_before_a_screen(monkeypatch, words, display, terminal, opens):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "CI"):
        monkeypatch.delenv(name, raising=False)
    for name, value in display.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("softform_launch.cli_launch.in_terminal", lambda: terminal)
    result = invoke(*words, "--dry-run")
    assert result.exit_code == 0, result.exception
    told = re.findall(r"open_page:=(\w+)", result.output)
    assert told == ([] if opens is None or "console:=false" in words else [str(opens).lower()])
