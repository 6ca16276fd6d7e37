"""One robot, two consoles: one of them steers."""

import time
from types import SimpleNamespace

import pytest

from softform_console.protocol import Point
from softform_console.robot_link import RobotLink
from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_interfaces.msg import SteeringBeat
from softform_ros.background_node import BackgroundNode

POINT = Point(id=1, output="sheet", u=0.5, v=0.5, target=(0.0, 0.0, 0.1))


@pytest.fixture
def links():
    robot, view = load_robot("membrane"), SimpleNamespace(driver=None, servo_off="")
    with BackgroundNode("one", "alone/robot_link") as one, BackgroundNode("two", "alone/robot_link") as two:
        pair = [RobotLink(node, robot, view, print, print) for node in (one, two)]
        yield pair
        for link in pair:
            link.close()


def until(condition):
    deadline = time.monotonic() + 10.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_robot_that_another_console_steers_is_not_steered_until_that_lets_go(links):
    one, two = links
    one.check_alone()

    def is_refused():
        one.beat(True, False)
        try:
            two.check_alone()
        except SoftformError as error:
            return "Another console" in str(error)
        return False

    until(is_refused)
    one.check_alone()  # its own beats are none of another one
    one.beat(False, False)

    def is_free():
        try:
            two.check_alone()
        except SoftformError:
            return False
        return True

    begun = time.monotonic()
    until(is_free)
    assert time.monotonic() - begun < 0.8, "told, before the silence was long enough"
    until(is_refused)
    time.sleep(1.1)
    two.check_alone()  # silent: it has vanished


def test_of_two_consoles_that_begin_at_once_one_goes_on(links):
    for link, other in (links, links[::-1]):
        link._beats.note(SteeringBeat(sender=other._beats.sender, dead_man=1.0))
    said = [link.publish_points([POINT]) for link in links]
    assert sorted(said) == ["", "Another console or program steers this robot."]
    assert said[0] if links[0]._beats.sender > links[1]._beats.sender else said[1]
