"""The compressible manipulator on the rig: two boards pull vacuum and push air, and vent together."""

import time
from pathlib import Path

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray

from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_interfaces.msg import ActuatorState, DriverState
from softform_launch.launched_stack import LaunchedStack
from softform_ros.background_node import BackgroundNode
from softform_ros.command_lease import CommandLease
from softform_ros.qos import ACTUATOR_STATE_READER, DIAGNOSTICS, LATCHED_STATE
from softform_ros.service_calls import call_driver
from softform_ros.stack_state import wait_until_active

SPACE, ROBOT = "compressible", load_robot("compressible")
VACUUM = ROBOT.actuator_min
MIXED = np.array([10e3, -40e3, 0.0, -20e3, 5e3, -1e3, 10e3, 10e3, -40e3])
NEAR, VENTED = 600.0, 600.0  # Pa; the sensors of the default reality are off by up to 160 Pa and 3 %


class Operator:
    """Commands pressures and notes what comes back."""

    def __init__(self, node: object) -> None:
        self.state, self.measured, self.true = DriverState(), np.full(9, np.nan), np.full(9, np.nan)
        self.lease = CommandLease(node, ROBOT.actuators, ROBOT.unit)
        node.create_subscription(DriverState, "driver_state", self._note_state, LATCHED_STATE)
        node.create_subscription(ActuatorState, "actuator_state", self._note_measured, ACTUATOR_STATE_READER)
        node.create_subscription(DiagnosticArray, "/diagnostics", self._note_health, DIAGNOSTICS)

    def _note_state(self, told: DriverState) -> None:
        self.state = told
        self.lease.note(told)

    def _note_measured(self, told: ActuatorState) -> None:
        self.measured = ROBOT.in_order(told.name, told.value)

    def _note_health(self, told: DiagnosticArray) -> None:
        for status in told.status:
            if status.name == f"/{SPACE}/rig":
                values = {pair.key: pair.value for pair in status.values}
                self.true = np.array(values["true pressures (Pa)"].split(), dtype=float)

    def wait_until(self, condition, what: str, goal: np.ndarray | None = None) -> float:
        """Wait, and command a goal meanwhile; how long it took, s."""
        begun = time.monotonic()
        while not condition():
            told = f"{self.state.state} {self.state.reason} {self.measured} {self.true}"
            assert time.monotonic() < begun + 30.0, f"waited in vain for {what}: {told}"
            if goal is not None:
                self.lease.send(goal)
            time.sleep(0.05)
        return time.monotonic() - begun

    def is_at(self, goal: np.ndarray) -> bool:
        near = NEAR + 0.03 * np.abs(goal)
        return bool((np.abs(self.measured - goal) < NEAR).all() and (np.abs(self.true - goal) < near).all())


def test_full_vacuum_and_mixed_signs_are_reached_slowly_and_stop_vents_all(tmp_path: Path) -> None:
    arguments = {"robot": "compressible", "rig": "true", "run_dir": str(tmp_path), "namespace": SPACE}
    with (
        (tmp_path / "launch.log").open("wb") as log,
        LaunchedStack("driver", arguments, output=log) as launch,
        BackgroundNode("operator", f"/{SPACE}") as node,
    ):
        try:
            wait_until_active(SPACE, 90.0, lambda: launch.exit_code is not None)
        except SoftformError as error:
            raise AssertionError(f"{error}\n{(tmp_path / 'launch.log').read_text()}") from error
        operator = Operator(node)
        operator.wait_until(
            lambda: operator.state.state == DriverState.SAFE and "ready" in operator.state.reason, "a driver"
        )
        operator.lease.acquire()
        took = operator.wait_until(lambda: operator.is_at(VACUUM), "full vacuum", VACUUM)
        assert took > 0.9 * np.abs(VACUUM).max() / ROBOT.slew_rate.max(), "at the slew rate, no faster"
        operator.wait_until(lambda: operator.is_at(MIXED), "pressures of both signs", MIXED)
        answer = call_driver(node, "stop", 10.0)
        assert answer is not None and answer.success, answer
        operator.wait_until(lambda: np.abs(operator.true).max() < VENTED, "all to be vented")
