"""An operator of a launched driver and its virtual rig."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.robots import Robot, load_robot
from softform_interfaces.msg import ActuatorState, DriverState
from softform_launch.launched_stack import LaunchedStack
from softform_ros.background_node import BackgroundNode
from softform_ros.command_lease import CommandLease
from softform_ros.qos import ACTUATOR_STATE_READER, DIAGNOSTICS, LATCHED_STATE
from softform_ros.service_calls import call_driver
from softform_ros.stack_state import wait_until_active


class Operator:
    """Commands pressures and notes what comes back."""

    def __init__(self, node: object, robot: Robot, space: str) -> None:
        self.node, self.robot, self.space = node, robot, space
        self.state, self.measured = DriverState(), np.full(robot.degrees_of_freedom, np.nan)
        self.health: dict[str, dict[str, str]] = {}
        self.lease = CommandLease(node, robot)
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
    def true_pressures(self) -> NDArray[np.float64]:
        told = self.health.get(f"/{self.space}/rig", {}).get("true pressures (Pa)", "nan")
        return np.array(told.split(), dtype=float)

    def wait_until(
        self, condition: Callable[[], bool], what: str, seconds: float = 20.0, goal: NDArray[np.float64] | None = None
    ) -> float:
        """Wait, and command a goal meanwhile; how long it took, s."""
        begun = time.monotonic()
        while not condition():
            told = f"{self.state.state} {self.state.reason} {self.measured} {self.true_pressures}"
            assert time.monotonic() < begun + seconds, f"waited in vain for {what}: {told}"
            if goal is not None:
                self.lease.send(goal)
            time.sleep(0.05)
        return time.monotonic() - begun

    def take_over(self) -> None:
        self.wait_until(lambda: self.state.state == DriverState.SAFE and "ready" in self.state.reason, "a driver")
        self.lease.acquire()

    def stop(self) -> None:
        self._succeed("stop", 10.0)

    def reset(self) -> None:
        self._succeed("reset", 30.0)

    def _succeed(self, service: str, seconds: float) -> None:
        answer = call_driver(self.node, service, seconds)
        assert answer is not None and answer.success, answer


@contextmanager
def operated(robot: str, space: str, folder: Path) -> Iterator[Operator]:
    """Driver and virtual rig of a robot, launched in a namespace, and their operator."""
    arguments = {"robot": robot, "rig": "true", "run_dir": str(folder), "namespace": space}
    with (
        (folder / "launch.log").open("wb") as log,
        LaunchedStack("driver", arguments, output=log) as launch,
        BackgroundNode("operator", f"/{space}") as node,
    ):
        try:
            wait_until_active(space, 90.0, lambda: launch.exit_code is not None)
        except SoftformError as error:
            raise AssertionError(f"{error}\n{(folder / 'launch.log').read_text()}") from error
        yield Operator(node, load_robot(robot), space)
