"""Collecting frames with real processes on the virtual rig: killed, resumed, vented, refused."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from rosbags.highlevel import AnyReader
from std_srvs.srv import Trigger

from softform_bringup.robot_link import RobotLink
from softform_core.frames.store import FrameStatus, open_frames
from softform_core.robots import load_robot

ROBOT = load_robot("membrane")


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


def wait_for(condition, seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.05)


def captured(path: Path) -> int:
    return len(open_frames(path).captured) if path.exists() else 0


def test_a_killed_collector_leaves_the_robot_vented_and_goes_on(stack, tmp_path):
    path = tmp_path / "frames.zarr"
    with RobotLink(ROBOT, "softform") as watcher:
        process = collector(path, "--attach", "--frames", "30")
        wait_for(lambda: captured(path) >= 2, 90.0, "two frames")
        process.kill()
        process.communicate()
        begun = open_frames(path, ROBOT)
        kept = {int(n): begun.frame(int(n)) for n in begun.captured}
        assert len(begun.pending) == 30 - len(kept)

        def vented() -> bool:
            pressures = watcher.driver.pressures
            return pressures is not None and float(np.abs(pressures).max()) < 0.05 * ROBOT.pressure_max[0]

        wait_for(vented, 20.0, "vented")
        wait_for(lambda: "vented, because no command came" in stack.log, 5.0, "the driver says so")

    figures = finished(collector(path, "--attach", "--frames", str(len(kept) + 1)))
    assert figures["captured"] == len(kept) + 1 and figures["rejected"] == 0
    store = open_frames(path, ROBOT)
    assert len(store.sessions) == 2
    for number, frame in kept.items():
        assert np.array_equal(store.frame(number).points, frame.points)
        assert store.frame(number).captured_at == frame.captured_at
    frames = [store.frame(int(number)) for number in store.captured]
    for frame in frames:
        assert np.abs(frame.measured - frame.actuation).max() < 250.0
        assert 0.4 < frame.coverage <= 1.0 and frame.coverage == frame.covered.mean()
    assert len({frame.captured_at for frame in frames}) == len(frames)


def trigger(service: str) -> None:
    context = rclpy.Context()
    rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node("operator", namespace="softform", context=context, use_global_arguments=False)
    try:
        client = node.create_client(Trigger, service)
        assert client.wait_for_service(10.0)
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)
        future = client.call_async(Trigger.Request())
        executor.spin_until_future_complete(future, timeout_sec=10.0)
        assert future.result().success, future.result().message
    finally:
        node.destroy_node()
        rclpy.shutdown(context=context)


def test_a_stop_ends_collecting_and_keeps_what_there_is(stack, tmp_path):
    path = tmp_path / "frames.zarr"
    process = collector(path, "--attach", "--frames", "30")
    wait_for(lambda: captured(path) >= 1, 90.0, "a frame")
    trigger("stop")
    _, said = process.communicate(timeout=30)
    assert process.returncode != 0
    assert "run the same command again" in said and re.search("stop", said), said
    kept = captured(path)
    assert kept >= 1
    trigger("reset")
    assert finished(collector(path, "--attach", "--frames", str(kept + 1)))["captured"] == kept + 1


def test_a_silent_scanner_is_named(stack, tmp_path):
    scanner = stack.process("scanner_node")
    scanner.suspend()
    try:
        process = collector(tmp_path / "frames.zarr", "--attach", "--frames", "2")
        _, said = process.communicate(timeout=60)
    finally:
        scanner.resume()
    assert process.returncode != 0
    assert "No captured_cloud" in said and "frame 0" in said and "Traceback" not in said, said
    assert list(open_frames(tmp_path / "frames.zarr").pending) == [0, 1]


def test_a_launched_stack_is_recorded_and_a_larger_number_adds(tmp_path):
    path = tmp_path / "frames.zarr"
    assert finished(collector(path, "--frames", "1"))["captured"] == 1
    assert finished(collector(path, "--frames", "2"))["captured"] == 2
    store = open_frames(path, ROBOT)
    assert (store.status == FrameStatus.CAPTURED).all() and len(store.sessions) == 2
    for session in store.sessions:
        with AnyReader([path.parent / str(session["bag"])]) as bag:
            counts = {c.topic: c.msgcount for c in bag.connections}
        assert counts["/softform/captured_cloud"] > 0 and counts["/softform/pressure_command"] > 0
    # Nothing is left to do: no stack is launched for it.
    assert finished(collector(path, "--frames", "2"))["captured"] == 2
    assert len(open_frames(path).sessions) == 2
    _, said = (process := collector(path, "--frames", "2", "--seed", "5")).communicate(timeout=60)
    assert process.returncode != 0 and "seed" in said
    _, said = (process := collector(path, "--frames", "2", "--reality", "worn")).communicate(timeout=60)
    assert process.returncode != 0 and "reality worn" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--attach", "--namespace", "nowhere"], "No pneumatic driver"),
        (["--robot", "nobody"], "nobody.*membrane"),
        (["--reality", "nowhere"], "nowhere.*default"),
        (["--frames", "0"], "one at least"),
        (["--via", "telepathy"], "scanner"),
    ],
)
def test_a_bad_request_is_refused(tmp_path, arguments, said):
    process = collector(tmp_path / "frames.zarr", *arguments)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert re.search(said, errors) and "Traceback" not in errors, errors
