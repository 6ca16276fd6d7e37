"""Goals that would move the robot too late: unstamped, old, of another epoch, queued in a frozen node, sent twice."""

import os
import signal
import time

import numpy as np
import pytest
from action_msgs.msg import GoalStatus

from softform_client.client import ActuatorPath, FollowCode
from softform_client.follow_messages import FollowGoal, goal_to_message
from softform_interfaces.action import FollowWaypoints
from softform_interfaces.msg import Asked
from softform_ros.background_node import BackgroundNode
from softform_ros.conversions import stamp_from_seconds

PATH = ActuatorPath([[3000.0] * 9])
FROZEN_SECONDS = 3.0


@pytest.fixture(scope="module")
def node(start_node):
    one = start_node("settle_timeout:=4.0", "path_settle_time:=0.1", "sim_to_real:=none", "surface_points:=200")
    one.start()
    return one


@pytest.fixture
def sender(node):
    """Calls the action's services as they are: what was sent once can be sent again, and nobody fills anything in."""
    with BackgroundNode("sender", "/softform") as one:
        yield Sender(one)


class Sender:
    def __init__(self, node):
        self.node = node
        implementation = FollowWaypoints.Impl
        self.goals = node.create_client(implementation.SendGoalService, "follow_waypoints/_action/send_goal")
        self.results = node.create_client(implementation.GetResultService, "follow_waypoints/_action/get_result")
        node.create_subscription(
            implementation.FeedbackMessage, "follow_waypoints/_action/feedback", lambda message: None, 1
        )
        assert self.goals.wait_for_service(30.0) and self.results.wait_for_service(30.0)

    def send(self, asked, number, times=(1.0,)):
        """Send a goal of that number; returns the future of the answer."""
        goal = goal_to_message(FollowGoal(PATH, np.array(times)), "membrane/base_link", stamp_from_seconds(time.time()))
        goal.asked = asked
        request = self.goals.srv_type.Request(goal=goal)
        request.goal_id.uuid = np.full(16, number, dtype=np.uint8)
        return self.goals.call_async(request)

    def result(self, number):
        request = self.results.srv_type.Request()
        request.goal_id.uuid = np.full(16, number, dtype=np.uint8)
        return self.results.call(request, timeout_sec=30.0)


def asked(stand_in, age=0.0, epochs_ago=0):
    return Asked(stamp=stamp_from_seconds(time.time() - age), epoch=stand_in.leased.epoch - epochs_ago)


pytestmark = pytest.mark.usefixtures("moving_client")


@pytest.mark.parametrize(
    ("number", "age", "epochs_ago", "said"),
    [
        (1, 0.0, None, "does not say when"),
        (2, None, 0, "does not say when"),
        (3, 2.5, 0, "was asked for 2.5 s ago"),
        (4, -1.0, 0, "in the future"),
        (5, 0.0, 1, "before the robot was made safe"),
        (6, 0.0, -1, "before the robot was made safe"),
    ],
)
def test_a_goal_that_was_not_asked_for_just_now_moves_nothing(stand_in, sender, number, age, epochs_ago, said):
    told = asked(stand_in, age or 0.0, epochs_ago or 0)
    told.epoch = 0 if epochs_ago is None else told.epoch
    told.stamp = stamp_from_seconds(0.0) if age is None else told.stamp
    before = len(stand_in.commands)
    sender.send(told, number)
    ended = sender.result(number)
    assert ended.status == GoalStatus.STATUS_ABORTED and ended.result.error_code == FollowCode.DRIVER_NOT_READY
    assert said in ended.result.error_msg
    assert stand_in.is_silent() and len(stand_in.commands) == before and not stand_in.holder


def test_a_goal_in_the_queue_of_a_frozen_node_moves_nothing_when_it_wakes(stand_in, sender, node):
    before = len(stand_in.commands)
    os.kill(node.process.pid, signal.SIGSTOP)
    try:
        answer = sender.send(asked(stand_in), 11)
        time.sleep(0.5 * FROZEN_SECONDS)
        stand_in.stop_and_reset()
        time.sleep(0.5 * FROZEN_SECONDS)
    finally:
        os.kill(node.process.pid, signal.SIGCONT)
    ended = sender.result(11)
    assert answer.done() and ended.result.error_code == FollowCode.DRIVER_NOT_READY, ended
    assert stand_in.is_silent() and len(stand_in.commands) == before and not stand_in.holder


def test_a_goal_in_the_queue_of_a_node_that_misses_a_stop_and_a_reset_moves_nothing(stand_in, sender, node):
    """It is young enough; the epoch tells."""
    before = len(stand_in.commands)
    os.kill(node.process.pid, signal.SIGSTOP)
    try:
        sender.send(asked(stand_in), 12)
        stand_in.stop_and_reset()
        time.sleep(0.3)
    finally:
        os.kill(node.process.pid, signal.SIGCONT)
    assert sender.result(12).result.error_code != FollowCode.NONE
    assert stand_in.is_silent() and len(stand_in.commands) == before and not stand_in.holder


def test_a_path_under_way_in_a_node_that_freezes_does_not_go_on(stand_in, sender, node, wait_for):
    sender.send(asked(stand_in), 13, times=(20.0,))
    wait_for(lambda: stand_in.commands and stand_in.commands[-1][0] > 100.0, "the path to be under way")
    os.kill(node.process.pid, signal.SIGSTOP)
    time.sleep(FROZEN_SECONDS)
    assert not stand_in.holder, "the driver has missed it"
    os.kill(node.process.pid, signal.SIGCONT)
    assert sender.result(13).result.error_code != FollowCode.NONE
    wait_for(lambda: any("stood still" in line for line in node.log), "the reason in the log")
    count = len(stand_in.commands)
    assert stand_in.is_silent() and len(stand_in.commands) == count and not stand_in.holder


def test_a_goal_that_comes_twice_moves_the_robot_once(stand_in, sender, wait_for):
    told = asked(stand_in)
    sender.send(told, 14, times=(0.8,))
    assert sender.result(14).result.error_code == FollowCode.NONE
    stand_in.stop_and_reset()
    before = len(stand_in.commands)
    told.stamp = stamp_from_seconds(time.time())  # however young it looks
    for number in (14, 15):
        sender.send(told, number, times=(0.8,))
    assert sender.result(15).result.error_code != FollowCode.NONE
    assert stand_in.is_silent() and len(stand_in.commands) == before and not stand_in.holder


def test_a_path_whose_client_is_gone_ends_and_the_robot_stays_where_it_is(stand_in, node, wait_for, client):
    client._following.connect()  # it listens to the action, too, as a console does
    with BackgroundNode("vanishing", "/softform") as background:
        vanishing, told = Sender(background), asked(stand_in)
        told.client = background.get_fully_qualified_name()
        vanishing.send(told, 16, times=(20.0,))
        wait_for(lambda: stand_in.commands and stand_in.commands[-1][0] > 100.0, "the path to be under way")
    wait_for(lambda: any("the client is gone" in line for line in node.log), "the node to miss the client", 15.0)
    wait_for(lambda: (stand_in.commands[-1] == stand_in.commands[-4]).all(), "the path to end")
    assert stand_in.commands[-1][0] < 2500.0 and stand_in.holder == "inverse_kinematics"
    assert not stand_in.is_silent(), "the driver's hold_timeout is what ends that"
