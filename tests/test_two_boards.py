"""One robot on two boards: driver and virtual rig, launched; what is measured, a pulled cable, stop and reset."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from diagnostic_msgs.msg import DiagnosticArray

from softform_actuation.assembly import make_driver, parameters_of
from softform_actuation.parameters import PARAMETERS
from softform_core.errors import SoftformError
from softform_core.paths import config_dir
from softform_core.robots import Robot, load_robot
from softform_interfaces.msg import ActuatorState, DriverState
from softform_interfaces.srv import InjectFault
from softform_launch.launched_stack import LaunchedStack
from softform_pneumatics.cli_channels import channels
from softform_rig.fault_messages import request_from_fault
from softform_rig.faults import parse_fault
from softform_rig.parameters import REGISTRATION
from softform_rig.reality import load_reality
from softform_rig.rig_settings import RigSettings
from softform_rig.virtual_rig import VirtualRig
from softform_ros.background_node import BackgroundNode
from softform_ros.command_lease import CommandLease
from softform_ros.qos import ACTUATOR_STATE_READER, DIAGNOSTICS, LATCHED_STATE
from softform_ros.service_calls import call_driver, call_service
from softform_ros.stack_state import wait_until_active

SPACE = "two_boards"
GOAL = np.linspace(1500.0, 3500.0, 9)
NEAR, VENTED = 300.0, 200.0  # Pa
LEFT = ["c1", "c4", "c7", "c2", "c5"]
RIGHT = ["c9", "c8", "c6", "c3"]


@pytest.fixture(scope="module")
def description(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The membrane, with its chambers on two boards and in no order."""
    given = yaml.safe_load((config_dir() / "robots" / "membrane.yaml").read_text())
    given["name"] = "two_boards"
    given["devices"] = [
        {"name": "left", "actuators": LEFT, "channels": [2, 4, 0, 7, 9]},
        {"name": "right", "actuators": RIGHT, "channels": [1, 2, 3, 0]},
    ]
    path = tmp_path_factory.mktemp("robot") / "two_boards.yaml"
    path.write_text(yaml.safe_dump(given))
    return path


class Stack:
    """Driver and rig, and what they say."""

    def __init__(self, node: object, robot: Robot) -> None:
        self.node, self.robot = node, robot
        self.state, self.measured = DriverState(), np.full(9, np.nan)
        self.health: dict[str, dict[str, str]] = {}
        self.lease = CommandLease(node, robot.actuators, robot.unit)
        node.create_subscription(DriverState, "driver_state", self._note_state, LATCHED_STATE)
        node.create_subscription(ActuatorState, "actuator_state", self._note_measured, ACTUATOR_STATE_READER)
        node.create_subscription(DiagnosticArray, "/diagnostics", self._note_health, DIAGNOSTICS)

    def _note_state(self, told: DriverState) -> None:
        self.state = told
        self.lease.note(told)

    def _note_measured(self, told: ActuatorState) -> None:
        self.measured = self.robot.in_order(told.name, told.value)

    def _note_health(self, told: DiagnosticArray) -> None:
        for status in told.status:
            self.health[status.name] = {pair.key: pair.value for pair in status.values}

    @property
    def true_pressures(self) -> np.ndarray:
        return np.array(self.health.get(f"/{SPACE}/rig", {}).get("true pressures (Pa)", "nan").split(), dtype=float)

    def wait_until(self, condition, what: str, seconds: float = 20.0, goal: np.ndarray | None = None) -> None:
        """Wait, and command a goal meanwhile."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain for {what}: {self.state} {self.measured}"
            if goal is not None:
                self.lease.send(goal)
            time.sleep(0.05)

    def reach_goal(self) -> None:
        self.wait_until(lambda: self.state.state == DriverState.SAFE and "ready" in self.state.reason, "a driver")
        self.lease.acquire()
        self.wait_until(lambda: np.abs(self.measured - GOAL).max() < NEAR, "the goal", goal=GOAL)
        self.wait_until(lambda: np.abs(self.true_pressures - GOAL).max() < NEAR, "the true pressures", goal=GOAL)

    def reset(self) -> None:
        answer = call_driver(self.node, "reset", 30.0)
        assert answer is not None and answer.success, answer

    def inject(self, fault: str) -> InjectFault.Response:
        request = request_from_fault(parse_fault(fault))
        return call_service(self.node, "rig", InjectFault, "rig/inject_fault", request, 10.0)


@pytest.fixture
def stack(description: Path, tmp_path: Path) -> Iterator[Stack]:
    arguments = {"robot": str(description), "rig": "true", "run_dir": str(tmp_path), "namespace": SPACE}
    with (
        (tmp_path / "launch.log").open("wb") as log,
        LaunchedStack("driver", arguments, output=log) as launch,
        BackgroundNode("operator", f"/{SPACE}") as node,
    ):
        try:
            wait_until_active(SPACE, 90.0, lambda: launch.exit_code is not None)
        except SoftformError as error:
            raise AssertionError(f"{error}\n{(tmp_path / 'launch.log').read_text()}") from error
        yield Stack(node, load_robot(str(description)))


def test_two_boards_move_one_robot_and_are_made_safe_together(stack: Stack, tmp_path: Path) -> None:
    assert sorted(path.name for path in tmp_path.glob("openpneu*")) == ["openpneu_left", "openpneu_right"]
    stack.reach_goal()
    health = stack.health[f"/{SPACE}/actuation"]
    assert "openpneu_left" in health["devices"] and "openpneu_right" in health["devices"]
    assert {"bytes received of left", "bytes received of right"} <= health.keys()
    rejected = stack.inject("disconnect")
    assert not rejected.success and "left/ or right/" in rejected.message

    assert stack.inject("left/disconnect+3").success
    stack.wait_until(lambda: stack.state.state == DriverState.FAULT, "the fault", goal=GOAL)
    assert "openpneu_left" in stack.state.reason and stack.state.holder == ""
    right = stack.robot.indices_of(RIGHT)
    stack.wait_until(lambda: np.abs(stack.true_pressures[right]).max() < VENTED, "the other board to vent", 3.0)
    stack.wait_until(lambda: "back on its port" in stack.state.reason, "the lost board", goal=GOAL)
    stack.wait_until(lambda: np.abs(stack.true_pressures).max() < VENTED, "both to be vented", goal=GOAL)
    assert stack.state.state == DriverState.FAULT
    stack.reset()
    stack.reach_goal()

    answer = call_driver(stack.node, "stop", 10.0)
    assert answer is not None and answer.success, answer
    stack.wait_until(lambda: np.abs(stack.true_pressures).max() < VENTED, "both to be vented", goal=GOAL)
    stack.reset()
    stack.reach_goal()


def test_a_rig_whose_second_port_cannot_be_made_leaves_no_first_one(description: Path, tmp_path: Path) -> None:
    robot, port = load_robot(str(description)), tmp_path / "openpneu"
    rig = VirtualRig(robot, load_reality("ideal", robot), RigSettings(port, tmp_path / "scans", REGISTRATION))
    (tmp_path / "openpneu_right").write_text("in the way")
    with pytest.raises(SoftformError, match="openpneu_right exists and is not a link"):
        rig.start()
    assert not (tmp_path / "openpneu_left").is_symlink()
    (tmp_path / "openpneu_right").unlink()
    rig.start()
    rig.stop()
    with pytest.raises(SoftformError, match="Write left/ or right/ before it"):
        rig.inject(parse_fault("leak=3"))
    rig.inject(parse_fault("right/leak=3"))
    assert [str(fault) for fault in rig.faults_on] == ["right/leak=3:1@0"]
    rig.clear_faults()
    assert not rig.faults_on and [event.event for event in rig.fault_events()] == ["starts", "ends"]


def test_two_devices_cannot_be_on_one_port(description: Path) -> None:
    robot = load_robot(str(description))
    values = {row.name: row.default for row in (*PARAMETERS, *parameters_of(robot))}
    assert values["port"] == "/dev/softform" and values["left.port"] == values["right.port"] == ""
    values |= {"left.port": "/dev/ttyUSB7", "right.port": "/dev/ttyUSB7"}
    with pytest.raises(SoftformError, match=r"Two devices are on /dev/ttyUSB7.*DEVICE\.port"):
        make_driver(values, robot, lambda report: None, lambda readings: None)


def test_channels_of_both_boards_are_shown(description: Path, tmp_path: Path) -> None:
    picture = tmp_path / "channels.png"
    done = CliRunner().invoke(channels, [str(description), "--output", str(picture)], catch_exceptions=False)
    assert "left channel 0 -> c7\n" in done.output and "right channel 0 -> c3\n" in done.output
    assert len(done.output.splitlines()) == 10 and picture.stat().st_size > 10_000
