"""A stream of targets to the whole stack, and what becomes of the pressure when a part of it dies or stops midway."""

import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from softform_core.forward.live_pipeline import LivePipeline
from softform_core.robots import load_robot
from softform_core.surface.patch_set import SHEET
from softform_core.units import MM_PER_M
from softform_interfaces.msg import ActuatorCommand, ActuatorState, DriverState, ServoState
from softform_ros.background_node import BackgroundNode
from softform_ros.qos import ACTUATOR_COMMAND, ACTUATOR_STATE_READER, LATCHED_STATE, SERVO_STATE
from softform_ros.service_calls import call_driver

CONTROLLER = Path(__file__).parents[1] / "src" / "softform_ik" / "test" / "streaming_process.py"
WANTED = np.array([2000.0, 500.0, 2500.0, 800.0, 3000.0, 1500.0, 400.0, 2000.0, 1000.0])
PATIENCE = 30.0
FOR_EVER = 10**6


@pytest.fixture(scope="module")
def points_file(tmp_path_factory):
    """4000 predicted points of the wanted values."""
    models = LivePipeline(load_robot("membrane"))
    file = tmp_path_factory.mktemp("stream") / "points.npy"
    np.save(file, models.current.at(SHEET.samples(4000)).points(WANTED) / MM_PER_M)
    return file


class Observer:
    """What the stack says, and its services."""

    def __init__(self):
        self._background = BackgroundNode("observer", "softform")
        self.node = self._background.__enter__()
        self.commands, self.values, self.driver, self.servo = [], [], [], []
        for kind, topic, kept, qos in (
            (ActuatorCommand, "actuator_command", self.commands, ACTUATOR_COMMAND),
            (ActuatorState, "actuator_state", self.values, ACTUATOR_STATE_READER),
            (DriverState, "driver_state", self.driver, LATCHED_STATE),
            (ServoState, "servo_state", self.servo, SERVO_STATE),
        ):
            self.node.create_subscription(kind, topic, kept.append, qos)

    def wait_for(self, condition, what):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain: {what}; the driver said {self.driver[-1:]}"
            time.sleep(0.02)

    def call(self, service):
        return call_driver(self.node, service, PATIENCE)

    @property
    def driver_state(self):
        return self.driver[-1].state if self.driver else None

    @property
    def measured(self):
        return np.array(self.values[-1].value)

    def close(self):
        self._background.close()


@pytest.fixture
def observer(stack):
    one = Observer()
    one.wait_for(lambda: one.driver and one.values, "the driver")
    yield one
    one.close()


@contextmanager
def streaming(points_file, *count):
    """A controller's process; killed, not ended, when the block is left. With a count it is a program of the client."""
    process = subprocess.Popen([sys.executable, str(CONTROLLER), "/softform", str(points_file), *map(str, count)])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def follow(observer, points_file):
    """Wait until the robot has come near what a controller streams."""
    observer.wait_for(lambda: observer.servo and observer.servo[-1].state == ServoState.TRACKING, "the servo to track")
    observer.wait_for(lambda: np.abs(observer.measured - WANTED).max() < 500.0, "the robot to follow")


def test_the_robot_follows_and_holds_when_the_controller_is_killed(observer, points_file):
    with streaming(points_file):
        follow(observer, points_file)
    observer.wait_for(lambda: observer.servo[-1].state == ServoState.HOLDING, "the servo to hold")
    time.sleep(2.0)  # twice the driver's command time-out
    assert observer.driver_state == DriverState.RUNNING
    assert observer.measured == pytest.approx(WANTED, abs=500.0)


def vented(observer):
    observer.wait_for(lambda: observer.driver_state == DriverState.SAFE, "the driver to vent")
    observer.wait_for(lambda: np.abs(observer.measured).max() < 400.0, "the pressure to go")


def test_the_robot_is_vented_when_a_program_is_killed_while_it_streams(observer, points_file):
    with streaming(points_file, FOR_EVER):
        follow(observer, points_file)
    observer.wait_for(lambda: observer.servo[-1].state == ServoState.OFF, "the servo to let go")
    vented(observer)
    assert any("it has vanished" in one.reason for one in observer.servo)


def test_a_program_that_was_frozen_while_it_streamed_moves_nothing_more(observer, points_file):
    with streaming(points_file, FOR_EVER) as process:
        follow(observer, points_file)
        process.send_signal(signal.SIGSTOP)
        vented(observer)
        process.send_signal(signal.SIGCONT)
        assert process.wait(PATIENCE) != 0, "it ends with an error"
    observer.commands.clear()
    time.sleep(1.0)
    assert not observer.commands and observer.driver_state == DriverState.SAFE


@pytest.mark.long
def test_the_robot_holds_when_a_program_has_streamed_all(observer, points_file):
    with streaming(points_file, 200) as process:
        follow(observer, points_file)
        assert process.wait(PATIENCE) == 0
    time.sleep(3.5)  # longer than the silence of who vanishes
    assert observer.driver_state == DriverState.RUNNING and observer.measured == pytest.approx(WANTED, abs=500.0)


def test_stop_vents_midway_and_reset_alone_brings_nothing_back(observer, points_file):
    with streaming(points_file):
        follow(observer, points_file)
        assert observer.call("stop").success
        observer.wait_for(lambda: observer.driver_state == DriverState.FAULT, "the fault")
        observer.wait_for(lambda: observer.servo[-1].state == ServoState.OFF, "the servo to let go")
    time.sleep(0.5)
    assert observer.call("reset").success
    observer.wait_for(lambda: observer.driver_state == DriverState.SAFE, "the reset")
    observer.commands.clear()
    time.sleep(2.0)
    assert not observer.commands and observer.driver_state == DriverState.SAFE
    with streaming(points_file):
        follow(observer, points_file)
        assert observer.driver_state == DriverState.RUNNING


@pytest.mark.ends_stack
def test_when_the_servos_process_is_killed_the_driver_vents(stack, observer, points_file):
    with streaming(points_file):
        follow(observer, points_file)
        stack.process("inverse_kinematics_node").kill()
        observer.wait_for(lambda: observer.driver_state == DriverState.SAFE, "the driver to vent")
        assert "no command of 'inverse_kinematics' came" in observer.driver[-1].reason
        observer.wait_for(lambda: np.abs(observer.measured).max() < 400.0, "the pressure to go")
