"""Two arms that shape an object, in real processes: whatever breaks on the way to them, they hold, and it is told."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from held_arms import STILL, Heard, heard, ready

from softform_client.client import GoalFailedError
from softform_client.object_client import ObjectClient, ShapeCode
from softform_core.paths import config_dir
from softform_core.robots import load_robot
from softform_interfaces.msg import DriverState
from softform_ros.action_caller import NotConnectedError

STACK = {"launch": "shaping"}
START = np.array(load_robot(config_dir() / "arms" / "two_arms.yaml").devices[0].settings["start"])
BEND = np.array([0.0, 0.0, 0.012, -0.3, 0.0, 0.0, 0.0, 0.0, -0.012, 0.3, 0.0, 0.0])
MOVED = 0.01  # rad
EXAMPLE = Path(__file__).parents[1] / "examples" / "shape_object.py"

__all__ = ["heard"]

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]


class Shaping(threading.Thread):
    """A goal in a thread of its own."""

    turn = 1.0

    def __init__(self, heard: Heard, **options) -> None:
        super().__init__(daemon=True)
        Shaping.turn *= -1.0  # the other way each time: there is always a way to go
        self._heard, self._options = heard, options
        self.result, self.failure, self.feedback = None, None, []

    def run(self) -> None:
        try:
            with ObjectClient("/softform", timeout=30.0) as client:
                self.result = client.shape(self.turn * BEND, on_feedback=self.feedback.append, **self._options)
        except (GoalFailedError, NotConnectedError) as failure:
            self.failure = failure

    @contextmanager
    def midway(self) -> Iterator[None]:
        """Begin; in the block the arms are on their way, after it the goal has ended."""
        begun = self._heard.measured.copy()
        self.start()
        self._heard.wait_until(lambda: self.moves(begun) or not self.is_alive(), "the arms to move", 60.0)
        assert self.is_alive(), self.failure
        yield
        self.join(90.0)
        assert not self.is_alive()

    def moves(self, begun) -> bool:
        before = np.where(np.isfinite(begun), begun, START)
        is_running = self._heard.driver.state == DriverState.RUNNING
        return is_running and np.abs(self._heard.measured - before).max() > MOVED


def test_a_node_that_is_late_by_a_moment_goes_on(stack, heard):
    shaping = Shaping(heard, iterations=2)
    with shaping.midway():
        shaper = stack.process("object_shaper_node")
        shaper.suspend()
        time.sleep(0.3)
        shaper.resume()
    assert shaping.failure is None and shaping.result.ended == "iterations", shaping.failure
    heard.wait_for_rest()


def test_a_node_that_is_frozen_midway_moves_nothing_when_it_thaws(stack, heard):
    shaping = Shaping(heard)
    with shaping.midway():
        shaper = stack.process("object_shaper_node")
        shaper.suspend()
        try:
            heard.wait_for_rest()
            here = heard.truth[-1][1]
        finally:
            shaper.resume()
    assert shaping.failure.code == ShapeCode.DRIVER_FAULT, shaping.failure
    assert shaping.failure.result.iterations == 1
    heard.wait_for_rest()
    assert np.abs(heard.truth[-1][1] - here).max() < STILL


def test_a_client_that_is_killed_ends_its_goal(stack, heard):
    begun = Shaping(heard)
    words = "from shape_object import *\nObjectClient('/softform', 30.0).connect().shape("
    words += f"{(begun.turn * BEND).tolist()}, controller='printed', iterations=100)"
    before = heard.measured.copy()
    client = subprocess.Popen([sys.executable, "-c", words], cwd=EXAMPLE.parent, stderr=subprocess.DEVNULL)
    try:
        heard.wait_until(lambda: begun.moves(before), "the arms to move", 60.0)
    finally:
        client.kill()
        client.wait()
    heard.wait_for_rest(40.0)
    assert "the client of the goal is gone" in stack.log


@pytest.mark.parametrize(("fault", "words"), [("stop_button+2", "stop button"), ("stall+2", ""), ("disconnect+2", "")])
def test_arms_that_stop_or_are_lost_are_a_fault_and_end_the_goal(heard, fault, words):
    shaping = Shaping(heard)
    with shaping.midway():
        heard.inject(fault)
        heard.wait_until(lambda: heard.driver.state == DriverState.FAULT, "the driver to notice")
        assert words in heard.driver.reason
    # Of a silent controller the node may hear before the driver calls it a fault.
    assert shaping.failure.code in (ShapeCode.DRIVER_FAULT, ShapeCode.DRIVER_NOT_READY), shaping.failure
    assert words in str(shaping.failure)
    time.sleep(2.5)
    heard.wait_for_rest()
    ready(heard)


def test_a_camera_that_freezes_is_told_and_the_arms_hold(stack, heard):
    shaping = Shaping(heard)
    with shaping.midway():
        camera = stack.process("object_rig_node")
        camera.suspend()
        try:
            shaping.join(60.0)
        finally:
            camera.resume()
    assert shaping.failure.code == ShapeCode.CAPTURE_TIMEOUT, shaping.failure
    heard.wait_for_rest()


def test_an_object_that_is_stressed_as_a_joint_gives_way_stops_the_driver(heard):
    with ObjectClient("/softform", timeout=30.0) as client:
        present = client.shape(BEND, iterations=1).stress
    ready(heard)
    shaping = Shaping(heard, stress_limit=max(1.2 * present, 4e5))  # more than the way itself asks
    with shaping.midway():
        heard.inject("slipping_brake=1")
    heard.inject("clear")
    assert shaping.failure.code == ShapeCode.OVERSTRESSED, shaping.failure
    assert heard.driver.state == DriverState.FAULT
    heard.wait_for_rest()
    ready(heard)


@pytest.mark.ends_stack
def test_a_node_that_is_killed_midway_leaves_held_arms(stack, heard):
    shaping = Shaping(heard)
    with shaping.midway():
        stack.process("object_shaper_node").send_signal(signal.SIGKILL)
    heard.wait_for_rest()
    assert isinstance(shaping.failure, NotConnectedError)
