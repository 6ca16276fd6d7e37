"""What the tests of two arms hear of their stack, and where the arms truly are."""

import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray

from softform_interfaces.msg import ActuatorState, DriverState
from softform_interfaces.srv import InjectFault
from softform_ros.background_node import BackgroundNode
from softform_ros.qos import ACTUATOR_STATE_READER, DIAGNOSTICS, LATCHED_STATE
from softform_ros.service_calls import call_driver, call_service

STILL = 2e-4  # rad


class Heard:
    """What the stack has said last, and where the arms truly are."""

    def __init__(self, node) -> None:
        self.node, self.driver, self.measured = node, DriverState(), np.full(12, np.nan)
        self.truth: list[tuple[float, np.ndarray]] = []
        node.create_subscription(DriverState, "driver_state", lambda told: setattr(self, "driver", told), LATCHED_STATE)
        node.create_subscription(ActuatorState, "actuator_state", self._note, ACTUATOR_STATE_READER)
        node.create_subscription(DiagnosticArray, "/diagnostics", self._note_truth, DIAGNOSTICS)

    def _note(self, told) -> None:
        self.measured = np.array(told.value)

    def _note_truth(self, told) -> None:
        for pair in (pair for status in told.status for pair in status.values):
            if pair.key.startswith("true rotations"):
                self.truth.append((time.monotonic(), np.array(pair.value.split(), dtype=float)))

    def wait_until(self, condition: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain for {what}: {self.driver}"
            time.sleep(0.02)

    def wait_for_rest(self, seconds: float = 20.0) -> None:
        """Until the driver has made the arms safe, and they truly stand still, and go on doing so."""
        resting = (DriverState.HOLDING, DriverState.FAULT)
        self.wait_until(lambda: self.driver.state in resting, "the arms to be held", seconds)
        since = time.monotonic() + 0.5
        self.wait_until(lambda: sum(at > since for at, _ in self.truth) >= 2, "the rig to tell where they are")
        places = np.array([place for at, place in self.truth if at > since])
        assert np.ptp(places, axis=0).max() < STILL

    def inject(self, fault: str) -> None:
        request = InjectFault.Request(fault=fault)
        answer = call_service(self.node, "rig", InjectFault, "rig/inject_fault", request, 10.0)
        assert answer is not None and answer.success, answer


@pytest.fixture
def heard(stack) -> Iterator[Heard]:
    """At rest, ready for a goal."""
    with BackgroundNode("listener", "/softform") as node:
        heard = Heard(node)
        heard.wait_until(lambda: heard.driver.epoch, "the driver")
        ready(heard)
        yield heard


def ready(heard: Heard) -> None:
    if heard.driver.state == DriverState.FAULT:
        answer = call_driver(heard.node, "reset", 20.0)
        assert answer is not None and answer.success, answer
    heard.wait_until(lambda: heard.driver.state == DriverState.HOLDING, "the arms to be held")
