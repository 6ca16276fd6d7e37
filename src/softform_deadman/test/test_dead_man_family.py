"""What the family of dead-men makes of a description, and descriptions of a device that serves no actuator."""

import dataclasses

import numpy as np
import pytest

from softform_actuation.assembly import served_by_devices
from softform_core.errors import SoftformError
from softform_core.robots import Robot, load_robot, read_robot
from softform_core.robots.devices import has_dead_man
from softform_deadman.family import FAMILY

RELAY = {"name": "relay", "kind": "dead_man", "actuators": [], "channels": []}


def with_relay(**changes: object) -> Robot:
    described = load_robot("membrane").model_dump(mode="json", by_alias=True)
    described["devices"].append(RELAY | changes)
    return read_robot(described, "test")


def test_a_robot_may_have_a_device_that_serves_none_of_its_actuators() -> None:
    robot = with_relay()
    board, relay = served_by_devices(robot)
    assert (board.actuators, relay.actuators, relay.channels) == (robot.actuators, [], [])
    assert relay.safe.shape == (0,) and np.array_equal(board.safe, robot.safe)
    assert has_dead_man(robot.devices) and not has_dead_man(load_robot("membrane").devices)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"actuators": None}, "of a device that serves none, give actuators: \\[\\]"),
        ({"channels": [1]}, "must name 0 different channels"),
    ],
)
def test_channels_and_actuators_are_left_out_together(changes: dict, complaint: str) -> None:
    with pytest.raises(SoftformError, match=complaint):
        with_relay(**changes)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"actuators": ["c1"]}, "is given actuators or settings"),
        ({"settings": {"port": "here"}}, "is given actuators or settings"),
        ({"robot_quantities": ["displacement"]}, "do not let go, without their supply"),
    ],
)
def test_a_dead_man_is_in_the_supply_of_air_and_serves_nothing(changes: dict, complaint: str) -> None:
    _, served = served_by_devices(with_relay())
    FAMILY.check(served)
    with pytest.raises(SoftformError, match=complaint):
        FAMILY.check(dataclasses.replace(served, **changes))
