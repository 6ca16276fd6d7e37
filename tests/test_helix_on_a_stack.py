"""An arm of nine cables on the virtual rig, led by physics alone: reached, streamed, and its driver frozen midway."""

import signal
import time
from collections.abc import Iterator

import numpy as np
import pytest

from softform_client.client import PointPath, ShapeClient
from softform_core.errors import SoftformError
from softform_core.robots import TIP, load_robot
from softform_core.shapes.features import FeaturePoints
from softform_interfaces.msg import ActuatorState, DriverState, ServoState
from softform_ros.background_node import BackgroundNode
from softform_ros.qos import ACTUATOR_STATE_READER, LATCHED_STATE
from softform_tendons.settings import SLACKENED_WITHIN

ROBOT = load_robot("helix")
STACK = {"robot": "helix", "model": "fem", "console": "false"}
NEAR_M = 5e-3
"""The driver's readings against a command, drums and homes of the reality."""

pytestmark = [pytest.mark.timeout(600), pytest.mark.long]


class Heard:
    """What the stack has said last."""

    def __init__(self, node: BackgroundNode) -> None:
        self.driver, self.measured = DriverState(), np.full(9, np.nan)
        node.create_subscription(DriverState, "driver_state", lambda told: setattr(self, "driver", told), LATCHED_STATE)
        node.create_subscription(ActuatorState, "actuator_state", self._note, ACTUATOR_STATE_READER)

    def _note(self, told: ActuatorState) -> None:
        self.measured = ROBOT.in_order(told.name, told.value)

    def wait_until(self, condition, what: str, seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain for {what}: {self.driver} {self.measured}"
            time.sleep(0.05)


@pytest.fixture
def heard(stack) -> Iterator[Heard]:
    with BackgroundNode("listener", "/softform") as node:
        yield Heard(node)


@pytest.fixture
def client(stack) -> Iterator[ShapeClient]:
    with ShapeClient("/softform", timeout=120.0) as client:
        yield client


def tip_at(place: np.ndarray) -> FeaturePoints:
    return FeaturePoints.of([[0.0, 0.0]], [place], output=[TIP])


def circling(seconds: float) -> Iterator[FeaturePoints]:
    begun = time.monotonic()
    while (now := time.monotonic() - begun) < seconds:
        yield tip_at(np.array([0.10 * np.cos(0.5 * now), 0.10 * np.sin(0.5 * now), 0.83]))


def test_its_tip_is_reached_and_follows_a_path(client, heard):
    result = client.reach(features=tip_at(np.array([0.10, 0.0, 0.83])), mode="plan-and-move")
    assert result.solve.mean_error < 1e-3
    heard.wait_until(lambda: heard.driver.state == DriverState.RUNNING, "a driver that runs")
    heard.wait_until(lambda: np.abs(heard.measured - result.actuators.value).max() < NEAR_M, "the motors to be there")
    path = client.follow(PointPath(np.array([[0.08, 0.06, 0.83], [0.0, 0.10, 0.83]]), output=TIP))
    assert max(path.errors) < 1e-3 and heard.driver.state == DriverState.RUNNING


def test_a_stream_is_followed_and_a_target_out_of_reach_leaves_it_in_balance(client, heard):
    assert client.reach(features=tip_at(np.array([0.10, 0.0, 0.83])), mode="plan-and-move").solve.mean_error < 1e-3
    states = list(client.stream(circling(8.0), 20.0))
    followed = [one.mean_error for one in states if one.state == ServoState.TRACKING]
    assert len(followed) > 100 and np.median(followed) < 1e-3, states[-1]
    far = (tip_at(np.array([0.3, 0.0, 1.3])) for _ in range(80))
    last = list(client.stream(far, 20.0))[-1]
    assert last.state == ServoState.HOLDING and "out of reach" in last.reason
    assert heard.driver.state == DriverState.RUNNING


def test_a_driver_that_is_frozen_while_its_arm_is_streamed_leaves_slack_cables(stack, client, heard):
    driver = stack.process("actuation_node")
    state = ServoState()
    for number, state in enumerate(client.stream(circling(16.0), 20.0)):  # noqa: B007 - the last one is looked at
        if number == 60:
            assert heard.measured.max() > 0.01
            driver.send_signal(signal.SIGSTOP)
        if number == 160:  # 5 s: the guardian has seen 2 s of silence, and slackened
            driver.send_signal(signal.SIGCONT)
    assert state.state != ServoState.TRACKING and state.reason
    heard.wait_until(lambda: heard.driver.state != DriverState.RUNNING, "the driver to see what happened")
    heard.wait_until(lambda: all(heard.driver.at_rest), "slack cables", SLACKENED_WITHIN + 5.0)
    assert (np.array(heard.driver.rest_value) - ROBOT.safe).max() < NEAR_M
    epoch = heard.driver.epoch
    time.sleep(2.0)
    assert all(heard.driver.at_rest) and heard.driver.epoch == epoch, "nothing moves it again"


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL], ids=["frozen", "killed"])
def test_a_solver_that_is_lost_while_its_arm_is_streamed_leaves_slack_cables(stack, client, heard, how):
    solver = stack.process("inverse_kinematics_node")
    begun, gone = time.monotonic(), False
    try:
        for _ in client.stream(circling(60.0), 20.0):
            if not gone and heard.measured.max() > 0.01 and heard.driver.state == DriverState.RUNNING:
                solver.send_signal(how)
                begun, gone = time.monotonic(), True
            if gone and time.monotonic() - begun > 8.0:
                break
    except SoftformError:
        pass  # the client may tell first that nobody answers
    assert gone
    heard.wait_until(lambda: all(heard.driver.at_rest), "slack cables", SLACKENED_WITHIN + 10.0)
    assert (heard.measured - ROBOT.safe).max() < NEAR_M
    if how == signal.SIGSTOP:
        solver.send_signal(signal.SIGCONT)
        time.sleep(3.0)
        assert all(heard.driver.at_rest), "what it wanted before does not come back with it"
