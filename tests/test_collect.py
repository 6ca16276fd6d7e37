"""Collecting with real processes on the virtual rig: killed, interrupted, stopped, unplugged, resumed, refused."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.srv import SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter
from rosbags.highlevel import AnyReader
from std_srvs.srv import Trigger

from softform_bringup import collect as collecting
from softform_bringup.cli_collect import collect
from softform_bringup.robot_link import RobotLink
from softform_core.frames.sources import open_recording
from softform_core.robots import load_robot
from softform_interfaces.action import CollectDataset
from softform_ros.action_caller import ActionCaller, GoalRejectedError
from softform_ros.background_node import BackgroundNode

ROBOT = load_robot("membrane")
STACK = {"motion_capture": "true"}


@pytest.fixture
def operator() -> Iterator[Node]:
    with BackgroundNode("operator", "softform") as node:
        yield node


def ask(operator: Node, kind: Any, service: str, request: Any) -> Any:
    client = operator.create_client(kind, service)
    assert client.wait_for_service(20.0), service
    return client.call(request, timeout_sec=20.0)


def trigger(operator: Node, service: str) -> None:
    answer = ask(operator, Trigger, service, Trigger.Request())
    assert answer.success, answer.message


def collector(output: Path, *arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "softform_bringup.cli_collect", "--json", "--output", str(output), *arguments],
        env={**os.environ, "SOFTFORM_RUNS": str(output.parent / "runs")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen) -> dict:
    output, progress = process.communicate(timeout=150)
    assert process.returncode == 0, progress
    return json.loads(output)


def failed(process: subprocess.Popen) -> str:
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0 and "Traceback" not in said, said
    return said


def wait_for(condition, seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.05)


def captured(path: Path) -> int:
    return len(open_recording(path).captured) if path.exists() else 0


def vented(link: RobotLink) -> bool:
    pressures = link.driver.pressures
    return pressures is not None and float(np.abs(pressures).max()) < 0.05 * ROBOT.pressure_max[0]


def test_what_ends_collecting_vents_the_robot_and_the_same_command_goes_on(stack, operator, tmp_path):
    """`kill -9`, Ctrl-C, a stop, a pulled cable, one after the other; each time markers are gone on with."""
    path = tmp_path / "markers.zarr"
    kept = None

    def rig(transition: int) -> None:
        request = ChangeState.Request(transition=Transition(id=transition))
        assert ask(operator, ChangeState, "rig/change_state", request).success

    def kill(process: subprocess.Popen) -> None:
        with (
            ActionCaller(CollectDataset, "collect_dataset", "collector", "another") as other,
            pytest.raises(GoalRejectedError, match="are being collected into"),
        ):
            other.call(CollectDataset.Goal(via="scanner", frames=1))
        process.kill()
        process.communicate()
        wait_for(lambda: "the client that attended to collecting is gone" in stack.log, 20.0, "missed")
        wait_for(lambda: vented(watcher), 20.0, "vented")

    def interrupt(process: subprocess.Popen) -> None:
        process.send_signal(signal.SIGINT)
        assert "stopped; the robot vents" in failed(process)
        wait_for(lambda: vented(watcher), 20.0, "vented")

    def stop(process: subprocess.Popen) -> None:
        trigger(operator, "stop")
        said = failed(process)
        assert "run the same command again" in said and "stop" in said, said
        trigger(operator, "reset")

    def pull_the_cable(process: subprocess.Popen) -> None:
        rig(Transition.TRANSITION_DEACTIVATE)  # the port hangs up
        said = failed(process)
        assert "run the same command again" in said and re.search("board|cable|offline|port", said), said
        rig(Transition.TRANSITION_ACTIVATE)  # as a real board does, it starts vented
        wait_for(lambda: ask(operator, Trigger, "reset", Trigger.Request()).success, 30.0, "reset")

    with RobotLink(ROBOT, operator) as watcher:
        for end in (kill, interrupt, stop, pull_the_cable):
            before = captured(path)
            process = collector(path, "--attach", "--via", "mocap", "--frames", "30")
            wait_for(lambda before=before: captured(path) > before, 90.0, "a frame")
            end(process)
            recording = open_recording(path, ROBOT).recording()
            if kept is not None:
                assert np.array_equal(recording.positions[kept.numbers], kept.positions, equal_nan=True)
            kept = recording
    figures = finished(collector(path, "--attach", "--via", "mocap", "--frames", str(len(kept.numbers) + 1)))
    assert figures["captured"] == len(kept.numbers) + 1 and figures["rejected"] == 0
    store = open_recording(path, ROBOT)
    recording = store.recording()
    assert len(store.sessions) == 5 and store.attributes["source"] == "virtual rig, reality default"
    assert np.abs(recording.measured - recording.actuation).max() < 250.0
    assert recording.names == kept.names and len(recording.names) >= 30
    assert np.nanmax(np.ptp(recording.positions[..., 2], axis=0)) > 0.005  # the markers move with the robot


def test_a_silent_scanner_is_named(stack, operator, tmp_path):
    def set_timeout(seconds: float) -> None:
        value = Parameter("capture_timeout", value=seconds).to_parameter_msg()
        answer = ask(operator, SetParameters, "collector/set_parameters", SetParameters.Request(parameters=[value]))
        assert answer.results[0].successful

    set_timeout(2.0)
    scanner = stack.process("scanner_node")
    scanner.suspend()
    try:
        said = failed(collector(tmp_path / "frames.zarr", "--attach", "--frames", "2"))
    finally:
        scanner.resume()
        set_timeout(20.0)
    assert "No captured_cloud" in said and "frame 0" in said, said
    assert list(open_recording(tmp_path / "frames.zarr").pending) == [0, 1]


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(collect, arguments)
    assert result.exit_code != 0 and (result.exception is None or isinstance(result.exception, SystemExit))
    return result.output


def test_a_launched_stack_is_recorded(tmp_path):
    path = tmp_path / "frames.zarr"
    assert finished(collector(path, "--frames", "1"))["captured"] == 1
    frame, (session,) = (store := open_recording(path, ROBOT)).frame(0), store.sessions
    assert np.abs(frame.measured - frame.actuation).max() < 250.0
    assert 0.4 < frame.coverage <= 1.0 and frame.coverage == frame.covered.mean()
    with AnyReader([path.parent / str(session["bag"])]) as bag:
        counts = {connection.topic: connection.msgcount for connection in bag.connections}
    assert counts["/softform/captured_cloud"] > 0 and counts["/softform/pressure_command"] > 0
    # Nothing is left to do, or it must not be done: no stack is launched for it.
    assert "1 of 1 frames" in CliRunner().invoke(collect, ["--frames", "1", "--output", str(path)]).output
    assert "seed" in refused("--frames", "2", "--output", str(path), "--seed", "5")
    assert "reality worn" in refused("--frames", "2", "--output", str(path), "--reality", "worn")
    assert "via 'scanner'" in refused("--frames", "2", "--output", str(path), "--via", "mocap")
    assert len(open_recording(path).sessions) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--attach", "--namespace", "nowhere"], "No collector node in /nowhere"),
        (["--robot", "nobody"], "nobody.*\n?.*membrane"),
        (["--reality", "nowhere"], "nowhere.*\n?.*default"),
        (["--frames", "0"], "one at least"),
        (["--via", "telepathy"], "scanner"),
    ],
)
def test_a_bad_request_is_refused(tmp_path, monkeypatch, arguments, said):
    monkeypatch.setattr(collecting, "ATTACH_TIMEOUT", 1.0)
    assert re.search(said, refused("--output", str(tmp_path / "frames.zarr"), *arguments))
