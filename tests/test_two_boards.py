"""One robot on two boards: driver and virtual rig, launched; what is measured, a pulled cable, stop and reset."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from driver_operator import Operator, operated

from softform_actuation.assembly import make_driver, parameters_of
from softform_actuation.parameters import PARAMETERS
from softform_core.errors import SoftformError
from softform_core.paths import config_dir
from softform_core.robots import load_robot
from softform_interfaces.msg import DriverState
from softform_interfaces.srv import InjectFault
from softform_pneumatics.cli_channels import channels
from softform_rig.faults import parse_fault
from softform_rig.parameters import REGISTRATION
from softform_rig.reality import load_reality
from softform_rig.rig_settings import RigSettings
from softform_rig.virtual_rig import VirtualRig
from softform_ros.service_calls import call_service

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


def reach_goal(operator: Operator) -> None:
    operator.take_over()
    operator.wait_until(lambda: np.abs(operator.measured - GOAL).max() < NEAR, "the goal", goal=GOAL)
    operator.wait_until(lambda: np.abs(operator.true_pressures - GOAL).max() < NEAR, "the true pressures", goal=GOAL)


def inject(operator: Operator, fault: str) -> InjectFault.Response:
    request = InjectFault.Request(fault=fault)
    return call_service(operator.node, "rig", InjectFault, "rig/inject_fault", request, 10.0)


@pytest.fixture
def stack(description: Path, tmp_path: Path) -> Iterator[Operator]:
    with operated(str(description), SPACE, tmp_path) as operator:
        yield operator


def test_two_boards_move_one_robot_and_are_made_safe_together(stack: Operator, tmp_path: Path) -> None:
    assert sorted(path.name for path in tmp_path.glob("openpneu*")) == ["openpneu_left", "openpneu_right"]
    reach_goal(stack)
    health = stack.health[f"/{SPACE}/actuation"]
    assert "openpneu_left" in health["devices"] and "openpneu_right" in health["devices"]
    assert {"bytes received of left", "bytes received of right"} <= health.keys()
    rejected = inject(stack, "disconnect")
    assert not rejected.success and "left/ or right/" in rejected.message

    assert inject(stack, "left/disconnect+3").success
    stack.wait_until(lambda: stack.state.state == DriverState.FAULT, "the fault", goal=GOAL)
    assert "openpneu_left" in stack.state.reason and stack.state.holder == ""
    right = stack.robot.indices_of(RIGHT)
    stack.wait_until(lambda: np.abs(stack.true_pressures[right]).max() < VENTED, "the other board to vent", 3.0)
    stack.wait_until(lambda: "back on its port" in stack.state.reason, "the lost board", goal=GOAL)
    stack.wait_until(lambda: np.abs(stack.true_pressures).max() < VENTED, "both to be vented", goal=GOAL)
    assert stack.state.state == DriverState.FAULT
    stack.reset()
    reach_goal(stack)

    stack.stop()
    stack.wait_until(lambda: np.abs(stack.true_pressures).max() < VENTED, "both to be vented", goal=GOAL)
    stack.reset()
    reach_goal(stack)


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
