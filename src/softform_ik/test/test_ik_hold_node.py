"""A shape that nobody wants any more: let go of at once by the service `release`, or when the driver ends its lease."""

import numpy as np
import pytest
from std_srvs.srv import Trigger

from softform_client.client import Mode
from softform_ros.service_calls import call_service

HIDDEN = np.array([4000.0, 500.0, 3000.0, 800.0, 2500.0, 1500.0, 200.0, 3500.0, 1000.0])


@pytest.fixture(scope="module")
def node(start_node):
    one = start_node("settle_timeout:=4.0", "sim_to_real:=none")
    one.start()
    return one


@pytest.fixture
def held(moving_client, stand_in, shape_of):
    moving_client.reach(shape_of(HIDDEN), Mode.PLAN_AND_MOVE, tolerance=1e-6)
    assert stand_in.holder == "inverse_kinematics" and not stand_in.is_silent()


def release(stand_in):
    return call_service(stand_in.node, "inverse_kinematics", Trigger, "release", Trigger.Request(), 20.0)


def test_release_lets_the_robot_go_at_once(node, stand_in, held, wait_for):
    answer = release(stand_in)
    assert answer.success and answer.message == "Released; the driver makes the robot safe."
    wait_for(lambda: not stand_in.holder, "the lease to be given up")
    assert stand_in.reason == "'inverse_kinematics' gave its lease up"
    assert stand_in.is_silent()
    assert release(stand_in).message == "Nothing was held."
    assert not any("stood still" in line for line in node.log), "".join(node.log)


def test_a_shape_that_is_released_is_reached_again_by_a_new_goal(stand_in, held, moving_client, shape_of, wait_for):
    release(stand_in)
    wait_for(stand_in.is_silent, "the commands to end")
    wait_for(lambda: moving_client._reaching._epochs._epoch == stand_in.leased.epoch, "the client to hear of it")
    moving_client.reach(shape_of(HIDDEN), Mode.PLAN_AND_MOVE, tolerance=1e-6)
    assert stand_in.holder == "inverse_kinematics" and not stand_in.is_silent()


def test_a_shape_whose_lease_the_driver_ends_is_not_held_again(node, stand_in, held, wait_for):
    stand_in.take_lease_away("the same values were held for 600 s (hold_timeout)")
    wait_for(stand_in.is_silent, "the commands to end")
    wait_for(lambda: any("hold_timeout" in line for line in node.log), "the reason in the log")
    assert not stand_in.holder
