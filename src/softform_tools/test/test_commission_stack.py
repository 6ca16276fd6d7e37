"""`softform commission` against a driver whose description has two channels exchanged, and killed or frozen midway."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from softform_core.cli.main import main
from softform_core.paths import home
from softform_interfaces.msg import ActuatorCommand, ActuatorState, DriverState
from softform_interfaces.srv import InjectFault
from softform_launch.launched_stack import LaunchedStack
from softform_ros.background_node import BackgroundNode
from softform_ros.qos import ACTUATOR_COMMAND_LOG, ACTUATOR_STATE_READER, LATCHED_STATE
from softform_ros.service_calls import call_driver, call_service
from softform_ros.stack_state import wait_until_active

COMMAND_TIMEOUT, LATE = 1.0, 0.5  # s; messages and a busy machine

pytestmark = pytest.mark.timeout(240)


class Robot:
    """What the driver says, and when."""

    def __init__(self, node, folder):
        self.node, self.folder = node, folder
        self.state, self.values, self.sent = DriverState(), np.zeros(9), []
        node.create_subscription(DriverState, "driver_state", self._on_state, LATCHED_STATE)
        node.create_subscription(ActuatorCommand, "actuator_command", self._on_command, ACTUATOR_COMMAND_LOG)
        node.create_subscription(ActuatorState, "actuator_state", self._on_values, ACTUATOR_STATE_READER)

    def _on_state(self, state):
        self.state = state

    def _on_command(self, message):
        self.sent.append((time.monotonic(), np.array(message.value)))

    def _on_values(self, message):
        self.values = np.array(message.value)

    @property
    def is_at_rest(self):
        return self.state.state == DriverState.SAFE and all(self.state.at_rest) and not self.state.holder

    def wait(self, condition, seconds=30.0):
        begun = time.monotonic()
        while not condition():
            assert time.monotonic() < begun + seconds, f"{self.state} {self.values}"
            time.sleep(0.01)
        return time.monotonic() - begun


@pytest.fixture(scope="module")
def robot(tmp_path_factory, state_folder):
    """A rig of the membrane, and a driver of one whose channels of c3 and c4 are exchanged."""
    folder = tmp_path_factory.mktemp("commission")
    description = yaml.safe_load((home() / "config" / "robots" / "membrane.yaml").read_text())
    description["devices"][0]["channels"] = [0, 1, 3, 2, 4, 5, 6, 7, 8]
    (folder / "swapped.yaml").write_text(yaml.safe_dump(description))
    arguments = {"run_dir": str(folder), "driver": "false", "solvers": "false"}
    words = ["--ros-args", "-r", "__ns:=/softform", "-p", f"robot:={folder / 'swapped.yaml'}"]
    words += ["-p", f"port:={folder / 'openpneu'}"]
    with (
        (folder / "launch.log").open("wb") as log,
        LaunchedStack("softform", arguments, output=log) as launch,
        subprocess.Popen([sys.executable, "-m", "softform_actuation.actuation_node", *words], stdout=log) as driver,
    ):
        try:
            wait_until_active("softform", 90.0, lambda: launch.exit_code is not None)
            with BackgroundNode("observer", "/softform") as node:
                yield Robot(node, folder)
        finally:
            driver.terminate()
            launch.stop()


def commissioned(*words, code, said=None):
    result = CliRunner().invoke(main, ["commission", *words], input=said)
    assert result.exit_code == code, f"{result.exit_code} {result.output} {result.exception!r}"
    return result.output


def record(robot):
    (path,) = Path(os.environ["SOFTFORM_STATE"]).glob("*openpneu.commissioned.json")
    return json.loads(path.read_text())


@pytest.mark.long
def test_a_scanner_finds_the_exchanged_channels(robot):
    robot.sent.clear()
    output = commissioned("--by", "scanner", "c2", "c3", "c4", code=1)
    assert "c4 moved when c3 was asked, and c3 when c4 was: tubes or channels 2 and 3 are swapped." in output
    assert record(robot)["seen"] == {"c2": ["c2"], "c3": ["c4"], "c4": ["c3"]} and not record(robot)["confirmed"]
    values = np.array([value for _, value in robot.sent])
    assert values.max() <= 1000.0 and ((values > 0.0).sum(axis=1) <= 1).all()
    gaps = np.diff([sent for sent, _ in robot.sent])
    held = (values[1:] == values[:-1]).all(axis=1)
    assert np.quantile(gaps[held], 0.99) < 0.2
    robot.wait(lambda: robot.is_at_rest)


@pytest.mark.long
def test_a_whole_run_measures_offsets_rest_and_all_together_and_the_driver_knew_of_nothing(robot):
    robot.wait(lambda: any("Not commissioned: nobody has confirmed" in one for one in robot.state.warnings))
    output = commissioned("--by", "scanner", code=1)
    assert "openpneu" in output and "c3 3" in output, "the port and its channels are told"
    told = record(robot)
    assert told["seen"] == {f"c{n}": [f"c{({3: 4, 4: 3}).get(n, n)}"] for n in range(1, 10)} and not told["confirmed"]
    assert told["wrong"] == ["c4 moved when c3 was asked, and c3 when c4 was: tubes or channels 2 and 3 are swapped."]
    assert told["offsets"].startswith("Stored and applied, Pa: c1 ") and told["leaks"] == {}
    assert 0.0 < told["rest_mm"] < 2.0 and 0.0 < told["shape_mm"] < 10.0


def test_a_leak_is_found_in_the_step_of_its_chamber(robot):
    def inject(fault):
        asked = InjectFault.Request(fault=fault)
        assert call_service(robot.node, "rig", InjectFault, "rig/inject_fault", asked, 20.0).success

    inject("leak=4:2")
    try:
        output = commissioned("--by", "person", "--share", "0.5", "c5", code=1, said="\nc5\n")
    finally:
        inject("clear")
    assert "c5 leaks, though its pump holds it, with a time constant of " in output
    assert set(record(robot)["leaks"]) == {"c5"} and record(robot)["wrong"][0].startswith("c5 leaks")


@pytest.mark.long
def test_a_person_is_not_told_what_was_asked_and_a_yes_sayer_is_found_out(robot):
    output = commissioned("--by", "person", "c1", "c2", code=1, said="\nwhat?\nagain\n\nc1\n\nc1\n")
    assert "c1 moved when c2 was asked" in output and "1 of 2: press Enter" in output and "c7" in output
    assert commissioned("--by", "person", "c1", code=0, said="\nc1\n").endswith("c1 moved alone when it was asked.\n")
    assert "nothing is kept. The lease is given up. The robot is measured at rest." in commissioned(
        "--by", "person", code=130, said="\nstop\n"
    )
    assert record(robot)["by"] == "person"
    assert "has no c99" in commissioned("c99", code=2)


def begun(robot):
    process = subprocess.Popen(
        [sys.executable, "-m", "softform_core.cli.main", "commission", "--by", "scanner", "c5"],
        stderr=subprocess.PIPE,
        text=True,
    )
    robot.wait(lambda: robot.state.state == DriverState.RUNNING and robot.values[4] > 500.0)
    return process


def test_killed_in_a_step_the_robot_is_vented(robot):
    process = begun(robot)
    process.kill()
    assert robot.wait(lambda: robot.state.state != DriverState.RUNNING) < COMMAND_TIMEOUT + LATE
    robot.wait(lambda: robot.is_at_rest, 5.0)
    process.communicate()


def test_frozen_in_a_step_the_robot_is_vented_and_stays_so_when_it_wakes(robot):
    process = begun(robot)
    process.send_signal(signal.SIGSTOP)
    assert robot.wait(lambda: robot.state.state != DriverState.RUNNING) < COMMAND_TIMEOUT + LATE
    robot.wait(lambda: robot.is_at_rest, 5.0)
    process.send_signal(signal.SIGCONT)
    while process.poll() is None:
        assert robot.state.state != DriverState.RUNNING
        time.sleep(0.01)
    assert process.returncode == 1
    said = process.stderr.read()
    assert "Commissioning ended: " in said and "The robot is measured at rest." in said


@pytest.mark.long
def test_interrupted_or_stopped_in_a_step_it_ends_with_a_sentence(robot):
    process = begun(robot)
    process.send_signal(signal.SIGINT)
    assert robot.wait(lambda: robot.state.state != DriverState.RUNNING) < COMMAND_TIMEOUT + LATE
    assert process.wait(30.0) == 130 and "The robot is measured at rest." in process.stderr.read()
    process = begun(robot)
    assert call_driver(robot.node, "stop", 20.0).success
    assert process.wait(30.0) == 1 and "Commissioning ended: " in process.stderr.read()
    assert call_driver(robot.node, "reset", 20.0).success
    robot.wait(lambda: robot.is_at_rest)
