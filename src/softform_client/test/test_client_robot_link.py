"""The link of a node with a driver that begins an epoch at each way out of its motion."""

import threading
import time

import numpy as np
import pytest

from softform_actuation.clock import Clock
from softform_actuation.lease import Asked, Grant, LeasedCommands, LeaseError
from softform_client.robot_link import RobotLink
from softform_core.robots import load_robot
from softform_interfaces.msg import ActuatorCommand, DriverState
from softform_interfaces.srv import Lease
from softform_ros import qos
from softform_ros.asked import age_of
from softform_ros.background_node import BackgroundNode
from softform_ros.command_lease import LeaseRejectedError
from softform_ros.frames import Frames

ROBOT = load_robot("membrane")
VALUES = np.full(9, 1000.0)


class Driver:
    """Gives its lease by the driver's own rules, and follows whoever has it."""

    def __init__(self, node):
        self.leased = LeasedCommands(Clock(), 3.0, ROBOT.command_fingerprint())
        self.state, self.commands, self._lock = DriverState.SAFE, [], threading.RLock()
        self._states = node.create_publisher(DriverState, "driver_state", qos.LATCHED_STATE)
        node.create_subscription(ActuatorCommand, "actuator_command", self._on_command, qos.ACTUATOR_COMMAND)
        node.create_service(Lease, "lease", self._on_lease)
        self.tell()

    def tell(self):
        holder, lease = self.leased.holder
        self._states.publish(
            DriverState(state=self.state, reason="told", holder=holder, lease=lease, epoch=self.leased.epoch)
        )

    def end_motion(self, state):
        with self._lock:
            self.state = state
            self.leased.end("ended")
            self.leased.begin_epoch()
            self.tell()

    def _on_command(self, message):
        with self._lock:
            try:
                self.leased.put(message.source, Grant(message.lease, message.key), np.array(message.value))
            except LeaseError:
                return
            self.commands.append(np.array(message.value))
            self.state = DriverState.RUNNING
            self.tell()

    def _on_lease(self, request, response):
        try:
            if request.request == Lease.Request.RELEASE:
                self.leased.require(request.source, Grant(request.lease, request.key))
                self.end_motion(DriverState.MAKING_SAFE)
                response.epoch = self.leased.epoch
            else:
                asked = Asked(age_of(request.asked.stamp, time.time()), request.asked.epoch)
                response.lease, response.key = self.leased.acquire(
                    request.source, request.client, asked, request.fingerprint
                )
                self.tell()
            response.success = True
        except LeaseError as error:
            response.message = str(error)
        return response


@pytest.fixture
def driver():
    with BackgroundNode("driver", "/link_test") as node:
        yield Driver(node)


@pytest.fixture
def link(driver):
    with BackgroundNode("collector", "/link_test") as node:
        link = RobotLink(ROBOT, node, Frames(node), driver.leased.epoch)
        with link:
            wait_until(lambda: link._lease.epoch == driver.leased.epoch)
            yield link


def wait_until(condition):
    deadline = time.monotonic() + 10.0
    while not condition():
        assert time.monotonic() < deadline, "what was waited for did not happen"
        time.sleep(0.01)


def hold(link, driver):
    count = len(driver.commands)
    assert link.hold(VALUES, lambda: True)
    wait_until(lambda: len(driver.commands) > count)


def test_one_goal_lets_go_of_the_robot_and_holds_it_again(driver, link):
    for _ in range(3):
        hold(link, driver)
        link.let_go()
    hold(link, driver)
    time.sleep(0.3)
    assert link.stop_reason is None and driver.leased.holder[0] == "collector"


def test_a_stop_and_a_reset_between_two_frames_end_the_goal(driver, link):
    hold(link, driver)
    link.let_go()
    wait_until(lambda: not driver.leased.holder[0])
    driver.end_motion(DriverState.FAULT)
    driver.end_motion(DriverState.SAFE)
    wait_until(lambda: link.stop_reason is not None)
    count = len(driver.commands)
    assert not link.hold(VALUES, lambda: True)
    assert len(driver.commands) == count


def test_a_goal_that_was_asked_for_before_a_stop_and_a_reset_gets_no_lease(driver, link):
    driver.leased.begin_epoch()  # and nobody has told
    with pytest.raises(LeaseRejectedError, match="before the robot was made safe"):
        link.hold(VALUES, lambda: True)
    assert not driver.commands
