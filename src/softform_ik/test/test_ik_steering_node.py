"""The watch over who steers in a node that repeats its commands as seldom as it may."""

import time

import pytest

from softform_client.client import ActuatorPath
from softform_interfaces.msg import SteeringBeat
from softform_ros import qos

DEAD_MAN = 0.2
TWO_COMMANDS_LATER = 0.65
"""s; at 2 Hz two looks with the commands would take 0.7 s at least."""


@pytest.fixture(scope="module")
def node(start_node):
    one = start_node("command_rate:=2.0", "path_settle_time:=0.1", "sim_to_real:=none", "surface_points:=200")
    one.start()
    return one


def test_silence_is_noticed_at_once_however_seldom_commands_are_repeated(stand_in, moving_client, wait_for):
    beats = stand_in.node.create_publisher(SteeringBeat, "steering_beat", qos.STEERING_BEAT)
    wait_for(beats.get_subscription_count, "the node to listen")
    noticed = []
    for _ in range(3):  # of a busy machine the best counts
        moving_client.follow(ActuatorPath([[1000.0] * 9]))
        assert stand_in.holder == "inverse_kinematics"
        beats.publish(SteeringBeat(dead_man=DEAD_MAN))
        begun = time.monotonic()
        wait_for(lambda: not stand_in.holder, "the node to let go")
        noticed.append(time.monotonic() - begun)
        wait_for(lambda: stand_in.is_at_rest, "the robot to be vented")
        time.sleep(0.5)
    assert DEAD_MAN < min(noticed) < TWO_COMMANDS_LATER, noticed
