"""`./softform home` on a tendon robot whose driver has just started: what was before is not known, then it is."""

import json
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from click.testing import CliRunner

from softform_client.client import GoalFailedError, NotConnectedError, ShapeClient
from softform_core.cli.main import main
from softform_core.forward.homing import homing_path
from softform_core.robots import load_robot
from softform_interfaces.msg import ActuationHistory, ActuatorState, DriverState
from softform_ros.background_node import BackgroundNode
from softform_ros.qos import ACTUATOR_STATE_READER, LATCHED_STATE

NAME = "tendon_robot"
ROBOT = load_robot(NAME)
STACK = {"robot": NAME, "reality": "printed"}
NEAR = 1e-3  # m, of home

pytestmark = [pytest.mark.timeout(400), pytest.mark.long]


class Heard:
    def __init__(self, node):
        self.known: bool | None = None
        self.driver = DriverState()
        self.measured = np.full(len(ROBOT.actuators), np.nan)
        node.create_subscription(ActuationHistory, "actuation_history", self._note_history, LATCHED_STATE)
        node.create_subscription(DriverState, "driver_state", lambda told: setattr(self, "driver", told), LATCHED_STATE)
        node.create_subscription(ActuatorState, "actuator_state", self._note_measured, ACTUATOR_STATE_READER)

    def _note_history(self, told):
        self.known = told.known

    def _note_measured(self, told):
        self.measured = np.array(told.value)

    @property
    def pulled(self) -> float:
        return float((self.measured - ROBOT.safe).max())

    def wait_until(self, condition, what, seconds=20.0):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain for {what}: {self.known}, {self.driver}"
            time.sleep(0.02)


@pytest.fixture
def heard(stack) -> Iterator[Heard]:
    with BackgroundNode("listener", "/softform") as node:
        yield Heard(node)


def test_after_a_start_the_past_is_not_known_and_home_makes_it_known(stack, heard):
    heard.wait_until(lambda: heard.known is not None, "the history")
    assert heard.known is False
    done = CliRunner().invoke(main, ["home", "--json", "-"])
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout)["times"]) == len(homing_path(ROBOT))
    heard.wait_until(lambda: heard.known, "the past to be known")
    assert heard.pulled < NEAR


@pytest.mark.ends_stack
def test_what_leads_home_is_killed_midway_and_the_tendons_are_slack(stack, heard):
    ended: list[Exception] = []

    def go_home():
        with ShapeClient("/softform", timeout=30.0) as client:
            try:
                client.home()
            except (GoalFailedError, NotConnectedError) as failure:
                ended.append(failure)

    thread = threading.Thread(target=go_home)
    thread.start()
    heard.wait_until(lambda: heard.pulled > 0.005, "the way home to be under way", 60.0)
    assert heard.driver.state == DriverState.RUNNING
    stack.process("inverse_kinematics_node").kill()
    heard.wait_until(lambda: heard.driver.state == DriverState.SAFE, "the driver to slacken the tendons", 5.0)
    heard.wait_until(lambda: heard.pulled < NEAR, "slack tendons", 3.0)
    thread.join(30.0)
    assert ended
