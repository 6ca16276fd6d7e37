"""The commands for a running stack: what they say and exit with, and what becomes of the robot when they end midway."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner

from softform_client.client import Code
from softform_core.cli.main import main
from softform_core.robots import load_robot
from softform_core.shapes.random import random_target
from softform_core.shapes.read import read_shape
from softform_core.shapes.shape import Shape
from softform_core.shapes.write import write_ply
from softform_interfaces.msg import ActuatorState, DriverState
from softform_ros.background_node import BackgroundNode
from softform_ros.qos import ACTUATOR_STATE_READER, LATCHED_STATE

UP = np.array([0.0, 0.0, 0.5])

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("stack")]


def softform(*words, code=0):
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == code, f"{words}: {result.exit_code} {result.output} {result.exception!r}"
    return result


@pytest.fixture(scope="module")
def shape():
    return random_target(load_robot("membrane"), seed=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, shape):
    place = tmp_path_factory.mktemp("shapes")
    write_ply(place / "target.ply", shape, "mm")
    write_ply(place / "above.ply", shape.transformed(np.eye(3), UP), "mm")
    write_ply(place / "reversed.ply", Shape.from_mesh(shape.points, shape.faces[:, ::-1]), "mm")
    stick = Shape(0.2 * shape.points + [0.0, 0.0, 0.15], faces=shape.faces)
    write_ply(place / "stick.ply", stick, "mm")
    (place / "series").mkdir()
    for number, height in enumerate(np.linspace(0.9, 1.0, 10)):
        write_ply(place / "series" / f"{number}.ply", Shape(shape.points * [1.0, 1.0, height]))
    return place


class Robot:
    """What the driver says."""

    def __init__(self, node):
        self.states, self.measured = [], []
        node.create_subscription(DriverState, "driver_state", self.states.append, LATCHED_STATE)
        node.create_subscription(ActuatorState, "actuator_state", self.measured.append, ACTUATOR_STATE_READER)

    def wait_for(self, condition, what):
        deadline = time.monotonic() + 30.0
        while not (self.states and self.measured and condition()):
            assert time.monotonic() < deadline, f"waited in vain for {what}: {self.states[-1:]}"
            time.sleep(0.05)

    @property
    def state(self):
        return self.states[-1].state

    @property
    def pressures(self):
        return np.array(self.measured[-1].value)


@pytest.fixture(scope="module")
def robot(stack):
    with BackgroundNode("observer", "/softform") as node:
        yield Robot(node)


@pytest.mark.long
def test_a_shape_is_planned_for_reached_and_captured(folder, robot, tmp_path):
    target = folder / "target.ply"
    plan = json.loads(softform("reach", target, "--unit", "mm", "--mode", "plan-only", "--json", "-").stdout)
    assert plan["error_code"] == 0 and plan["solve"]["mean_error"] < 1e-3 and not plan["measured"]["valid"]
    assert "shape" not in plan["solve"] and len(plan["actuators"]["value"]) == 9
    seed = ",".join(map(str, plan["actuators"]["value"]))
    assert "mean error" in softform("reach", target, "--unit", "mm", "--seed", seed).output
    robot.wait_for(lambda: np.allclose(robot.pressures, plan["actuators"]["value"], atol=500.0), "the shape")
    for name in ("now.ply", "now.pcd"):
        seen = softform("capture", "--output", tmp_path / name, "--json", tmp_path / "seen.json")
        measured = json.loads((tmp_path / "seen.json").read_text())["measured"]
        assert f"points in {tmp_path / name}" in seen.output and measured["mean_error"] < 5e-3
        assert len(read_shape(tmp_path / name).points) > 1000
    refused = softform("capture", "--output", tmp_path / "now.csv", code=1).output
    assert "[530 CAPTURE_TIMEOUT] No frame of markers" in refused


def test_what_is_out_of_reach_tells_the_option_that_helps(folder):
    above = ["reach", folder / "above.ply", "--unit", "mm", "--mode", "plan-only"]
    refused = softform(*above, code=1).output
    assert f"[{Code.UNREACHABLE} UNREACHABLE]" in refused and "--pose place" in refused
    assert "mm away in the direction" in refused
    placed = json.loads(softform(*above, "--pose", "place", "--json", "-").stdout)
    assert placed["solve"]["mean_error"] < 2e-3
    refused = softform("reach", folder / "reversed.ply", "--unit", "mm", code=1).output
    assert f"[{Code.INVALID_TARGET} INVALID_TARGET]" in refused and "upside down" in refused


@pytest.mark.long
def test_a_planned_motion_is_a_path_to_follow(folder, tmp_path):
    obstacle = ["--obstacle", folder / "stick.ply", "--unit", "mm"]
    softform("plan", folder / "target.ply", *obstacle, "--output", tmp_path / "motion.csv")
    followed = json.loads(softform("follow", tmp_path / "motion.csv", "--json", "-").stdout)
    assert followed["error_code"] == 0 and len(followed["times"]) >= 2 and followed["errors"][0] is None
    middle = tmp_path / "middle.csv"
    middle.write_text("x,y,z\n0,0,0.030\n0,0,0.035\n")
    assert "2 waypoints planned" in softform("follow", middle, "--plan-only").output


def test_a_folder_of_shapes_is_streamed(folder, robot):
    state = json.loads(softform("stream", folder / "series", "--rate", 20, "--json", "-").stdout)
    assert state["targets"] >= 10 and state["mean_error"] < 2e-3
    robot.wait_for(lambda: robot.state == DriverState.RUNNING, "the robot to hold")


def begun(*words):
    return subprocess.Popen(
        [sys.executable, "-m", "softform_core.cli.main", *map(str, words)], stderr=subprocess.PIPE, text=True
    )


def test_interrupted_the_robot_stays_and_killed_it_is_stopped_all_the_same(folder, robot, tmp_path):
    softform("follow", _rest(tmp_path))
    process = begun("follow", _path(tmp_path))
    robot.wait_for(lambda: robot.pressures.min() > 300.0, "the path to be under way")
    process.send_signal(signal.SIGINT)
    assert process.wait(30.0) == 130 and "[311 CANCELLED]" in process.stderr.read()
    robot.wait_for(lambda: robot.state == DriverState.RUNNING and robot.pressures.max() < 3500.0, "the robot to stay")
    process = begun("follow", _path(tmp_path))
    before = robot.pressures.max()
    robot.wait_for(lambda: robot.pressures.min() > before + 300.0, "the path to be under way")
    process.kill()
    process.communicate()
    softform("stop")
    robot.wait_for(lambda: robot.state == DriverState.FAULT, "the driver to latch")
    refused = softform("reach", folder / "target.ply", "--unit", "mm", code=1).output
    assert f"[{Code.DRIVER_FAULT} DRIVER_FAULT]" in refused and "reset" in refused
    softform("reset")
    assert "Nothing was held" in softform("release").output
    robot.wait_for(lambda: robot.state == DriverState.SAFE and robot.pressures.max() < 400.0, "the air to leave")
    time.sleep(1.0)
    assert robot.state == DriverState.SAFE and robot.pressures.max() < 400.0


def _rest(folder):
    path = folder / "rest.csv"
    path.write_text(f"{','.join(load_robot('membrane').actuators)}\n{','.join(['0'] * 9)}\n")
    return path


def _path(folder):
    """A slow rise to 4 kPa."""
    path = folder / "rise.csv"
    path.write_text(f"time,{','.join(load_robot('membrane').actuators)}\n40,{','.join(['4000'] * 9)}\n")
    return path


def test_what_cannot_be_sent_says_so(folder, tmp_path):
    for words, reason in (
        (["reach", tmp_path / "absent.ply"], "does not exist"),
        (["stream", tmp_path], "holds no shapes"),
        (["capture", "--output", tmp_path / "now.stl"], "no type that is written"),
        (["follow", folder / "target.ply"], "is no text"),
    ):
        assert reason in softform(*words, code=2).output
