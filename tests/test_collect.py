"""Collecting with real processes on the virtual rig: killed, interrupted, stopped, unplugged, resumed, rejected."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.srv import SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter
from rosbags.highlevel import AnyReader

from softform_client.robot_link import RobotLink
from softform_collect import client
from softform_collect.cli_collect import collect
from softform_core.frames.marker_store import open_marker_frames
from softform_core.frames.store import open_recording
from softform_core.robots import load_robot
from softform_interfaces.action import CollectDataset
from softform_ros.action_caller import ActionCaller
from softform_ros.background_node import BackgroundNode
from softform_ros.frames import Frames
from softform_ros.service_calls import asked_parameters, call_driver, call_service

ROBOT = load_robot("membrane")
STACK = {"motion_capture": "true", "solvers": "false"}


@pytest.fixture
def operator() -> Iterator[Node]:
    with BackgroundNode("operator", "softform") as node:
        yield node


def ask(operator: Node, server: str, kind: Any, service: str, request: Any) -> Any:
    answer = call_service(operator, server, kind, service, request, 20.0)
    assert answer is not None, service
    return answer


def trigger(operator: Node, service: str) -> None:
    answer = call_driver(operator, service, 20.0)
    assert answer is not None and answer.success, answer


def collector(output: Path, *arguments: str, terminal: int | None = None) -> subprocess.Popen:
    """The command as a process, which can be killed; `terminal` is where its user types."""
    return subprocess.Popen(
        [sys.executable, "-m", "softform_collect.cli_collect", "--json", "--output", str(output), *arguments],
        env={**os.environ, "SOFTFORM_RUNS": str(output.parent / "runs")},
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def collected(output: Path, *arguments: str, meanwhile: Callable[[], None] = lambda: None) -> Result:
    """The command in this process, which knows all its modules already; `meanwhile` runs beside it."""
    with ThreadPoolExecutor(1) as beside:
        doing = beside.submit(meanwhile)
        result = CliRunner().invoke(collect, ["--json", "--attach", "--output", str(output), *arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        try:
            doing.result(20.0)
        except (AssertionError, TimeoutError) as error:
            pytest.fail(f"The command ended before its time ({error!r}): {result.output}")
    return result


def wait_for(condition, seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.05)


def captured(path: Path) -> int:
    return len(open_recording(path).captured) if path.exists() else 0


def wait_for_a_frame(path: Path, process: subprocess.Popen | None = None) -> None:
    before = captured(path)

    def has_one() -> bool:
        assert process is None or process.poll() is None, process.stderr.read()
        return captured(path) > before

    wait_for(has_one, 150.0, "a frame")


def vented(link: RobotLink) -> bool:
    values = link.driver.values
    return values is not None and float(np.abs(values).max()) < 0.05 * ROBOT.actuation_max[0]


@pytest.fixture(scope="module")
def launching(stack, tmp_path_factory) -> Iterator[tuple[subprocess.Popen, Path]]:
    """A command that launches a stack of its own, beside the others, which go first."""
    path = tmp_path_factory.mktemp("launched") / "frames.zarr"
    process = collector(path, "--frames", "1")
    os.setpriority(os.PRIO_PROCESS, process.pid, os.getpriority(os.PRIO_PROCESS, 0) + 3)
    # A start takes all cores: what is driven meanwhile may be taken for a device that does not answer.
    wait_for(lambda: path.exists() or process.poll() is not None, 120.0, "its stack to be up")
    yield process, path
    process.kill()
    process.communicate()


MOCAP = ("--via", "mocap", "--frames", "30")


@pytest.fixture(scope="module")
def markers(tmp_path_factory) -> Path:
    """One data set that every end of collecting leaves to the next test, which goes on with it."""
    return tmp_path_factory.mktemp("markers") / "markers.zarr"


@pytest.fixture
def kept(markers) -> Iterator[None]:
    """What was captured before a test is there after it, in every digit."""
    store = open_recording(markers, ROBOT) if captured(markers) else None
    before = {} if store is None else {number: store.positions(number) for number in store.captured.tolist()}
    yield
    after = open_recording(markers, ROBOT)
    assert before.keys() <= set(after.captured.tolist())
    assert all(np.array_equal(after.positions(number), then, equal_nan=True) for number, then in before.items())


def test_a_killed_command_vents_the_robot(stack, launching, operator, markers, kept):
    with RobotLink(ROBOT, operator, Frames(operator)) as watcher:
        process = collector(markers, "--attach", *MOCAP)
        wait_for_a_frame(markers, process)
        with ActionCaller(CollectDataset, "collect_dataset", "collector", "another") as other:
            rejected = other.call(CollectDataset.Goal(via="scanner", frames=1))
        assert rejected.error_code == CollectDataset.Result.INVALID_GOAL
        assert "are being collected into" in rejected.error_msg
        process.kill()
        process.communicate()
        wait_for(lambda: "the client that attended to collecting is gone" in stack.log, 20.0, "missed")
        wait_for(lambda: vented(watcher), 20.0, "vented")


def test_ctrl_c_pauses_vented_enter_goes_on_and_ctrl_c_twice_ends(stack, operator, markers, kept):
    keyboard, terminal = os.openpty()
    process = collector(markers, "--attach", *MOCAP, terminal=terminal)
    said = ""

    def interrupt() -> None:
        nonlocal said
        process.send_signal(signal.SIGINT)
        while "paused; the robot vents" not in said:
            line = process.stderr.readline()
            assert line, said
            said += line

    try:
        with RobotLink(ROBOT, operator, Frames(operator)) as watcher:
            wait_for_a_frame(markers, process)
            interrupt()
            wait_for(lambda: vented(watcher), 20.0, "vented")
            said = ""
            before = captured(markers)
            os.write(keyboard, b"\n")
            wait_for(lambda: captured(markers) > before, 90.0, "a frame after the pause")
            interrupt()
            process.send_signal(signal.SIGINT)
            _, rest = process.communicate(timeout=60)
            assert process.returncode != 0 and "Traceback" not in rest and "to go" in rest and "stopped" in rest, rest
            wait_for(lambda: vented(watcher), 20.0, "vented")
    finally:
        process.kill()
        os.close(keyboard)
        os.close(terminal)


def test_a_stop_ends_collecting(stack, operator, markers, kept):
    def stop() -> None:
        wait_for_a_frame(markers)
        trigger(operator, "stop")

    result = collected(markers, *MOCAP, meanwhile=stop)
    assert result.exit_code != 0 and "run the same command again" in result.output and "stop" in result.output
    trigger(operator, "reset")


def test_a_pulled_cable_ends_collecting_and_the_same_command_goes_on(stack, operator, markers, kept):
    def rig(transition: int) -> None:
        request = ChangeState.Request(transition=Transition(id=transition))
        assert ask(operator, "rig", ChangeState, "rig/change_state", request).success

    def pull() -> None:
        wait_for_a_frame(markers)
        rig(Transition.TRANSITION_DEACTIVATE)  # the port hangs up

    # Another try of this test goes on from what the first one has collected.
    sessions = len(open_recording(markers).sessions) if markers.exists() else 0
    references = len(open_marker_frames(markers).references) if markers.exists() else 0
    result = collected(markers, *MOCAP, meanwhile=pull)
    said = result.output
    assert result.exit_code != 0 and "run the same command again" in said, said
    assert re.search("board|cable|offline|port", said), said
    rig(Transition.TRANSITION_ACTIVATE)  # as a real board does, it starts vented
    wait_for(lambda: call_driver(operator, "reset", 20.0).success, 30.0, "reset")
    count = captured(markers) + 1
    result = collected(markers, "--via", "mocap", "--frames", str(count), "--reference-every", "5")
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout.splitlines()[-1])
    assert figures["captured"] == count and figures["rejected"] == 0
    assert figures["references"] == references + 2 and figures["drift_max_mm"] < 1.0
    store = open_recording(markers, ROBOT)
    assert len(store.sessions) == sessions + 2 and store.attributes["source"] == "virtual rig, reality default"
    assert np.nanmax(np.abs(store.measured - store.actuation)) < 250.0
    assert len(store.names) >= 30
    assert np.nanmax(np.ptp(store.captured_positions()[..., 2], axis=0)) > 0.005  # the markers move with the robot


@pytest.mark.long
def test_a_silent_scanner_is_named_after_the_time_that_is_set_for_the_next_goal(stack, operator, tmp_path):
    value = Parameter("capture_timeout", value=2.0).to_parameter_msg()
    request = SetParameters.Request(parameters=[value])
    assert ask(operator, "collector", SetParameters, "collector/set_parameters", request).results[0].successful
    scanner = stack.process("scanner_node")
    scanner.suspend()
    try:
        result = collected(tmp_path / "frames.zarr", "--frames", "2")
    finally:
        scanner.resume()
    assert result.exit_code != 0 and "No captured_cloud" in result.output and "frame 0" in result.output
    assert list(open_recording(tmp_path / "frames.zarr").pending) == [0, 1]
    assert asked_parameters(operator, "collector", ["capture_timeout"], 10.0) == {"capture_timeout": 60.0}


def rejected(*arguments: str) -> str:
    result = CliRunner().invoke(collect, arguments)
    assert result.exit_code != 0 and (result.exception is None or isinstance(result.exception, SystemExit))
    return result.output


def test_a_launched_stack_is_recorded(launching):
    process, path = launching
    output, progress = process.communicate(timeout=150)
    assert process.returncode == 0, progress
    assert json.loads(output)["captured"] == 1
    (session,) = (store := open_recording(path, ROBOT)).sessions
    assert np.abs(store.measured - store.actuation).max() < 250.0
    assert 0.4 < store.coverage[0] <= 1.0 and store.coverage[0] == store.covered[0].mean()
    with AnyReader([path.parent / str(session["bag"])]) as bag:
        counts = {connection.topic: connection.msgcount for connection in bag.connections}
    assert counts["/softform/captured_cloud"] > 0 and counts["/softform/actuator_command"] > 0
    # Nothing is left to do, or it must not be done: no stack is launched for it.
    assert "1 of 1 frames" in CliRunner().invoke(collect, ["--frames", "1", "--output", str(path)]).output
    assert "seed" in rejected("--frames", "2", "--output", str(path), "--seed", "5")
    assert "reality worn" in rejected("--frames", "2", "--output", str(path), "--reality", "worn")
    assert "via 'scanner'" in rejected("--frames", "2", "--output", str(path), "--via", "mocap")
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
def test_a_bad_request_is_rejected(tmp_path, monkeypatch, arguments, said):
    monkeypatch.setattr(client, "ATTACH_TIMEOUT", 1.0)
    assert re.search(said, rejected("--output", str(tmp_path / "frames.zarr"), *arguments))
