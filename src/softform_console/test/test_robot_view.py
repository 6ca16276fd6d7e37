"""What a page is told of a robot is what the stack said last, and nothing that is old."""

import math

import numpy as np
import pytest
from std_msgs.msg import Header

from softform_console.robot_info import info_of
from softform_console.robot_view import RobotView
from softform_core.contact.barrier import Touch
from softform_core.paths import config_dir
from softform_core.robots import load_robot
from softform_core.robots.contact import ITSELF
from softform_interfaces.msg import ActuatorCommand, ActuatorState, DriverState, ServoState
from softform_ros.viewer_markers import touch_markers


@pytest.fixture
def seen():
    class Clock:
        now = 10.0

        def __call__(self):
            return self.now

    clock, robot = Clock(), load_robot("membrane")
    return clock, robot, RobotView(robot, clock)


def state(view):
    return view.state(0, "none", ())


def test_without_a_driver_it_is_silent_and_nothing_is_known(seen):
    _, _, view = seen
    told = state(view)
    assert told.driver.state == "silent" and told.measured is told.commanded is told.servo is None
    assert not told.driver.all_at_rest and not told.driver.stopped


def test_a_driver_that_says_nothing_more_is_not_at_rest(seen):
    clock, _, view = seen
    view.note_driver(DriverState(state=DriverState.SAFE, at_rest=[True], epoch=2**63 + 7))
    assert state(view).driver.all_at_rest and state(view).driver.epoch == str(2**63 + 7)
    clock.now += 1.1
    assert state(view).driver.state == "silent" and not state(view).driver.all_at_rest


def test_arms_that_hold_an_object_are_stopped_once_they_have_braked_and_stand_still(seen):
    clock, _, sheet = seen
    view = RobotView(load_robot(config_dir() / "arms" / "two_arms.yaml"), clock)
    values, braked = np.zeros(12), [True] * 12

    def told(state=DriverState.FAULT, acknowledged=braked, since=-math.inf):
        for one in (view, sheet):
            one.note_driver(DriverState(state=state, acknowledged=acknowledged, rest_value=values.tolist()))
            clock.now += 0.2
        return view.stands_still(since)

    asked = clock.now
    assert [told() for _ in range(4)] == [False, False, True, True]
    assert state(view).driver.stands_still and not sheet.stands_still() and not state(view).driver.all_at_rest
    assert not view.stands_still(clock.now - 0.5) and view.stands_still(asked)
    for _ in range(3):
        values[3] += 4e-4  # a brake that slips: little between two messages
        told()
    assert not view.stands_still()
    assert [told() for _ in range(4)][-1]
    assert not told(acknowledged=[True] * 11 + [False]) and not told()
    values[0] = math.nan
    assert not any(told() for _ in range(4))
    values[0] = 0.0
    assert [told() for _ in range(4)][-1]
    assert not told(DriverState.RUNNING)
    assert [told() for _ in range(4)][-1]
    clock.now += 1.1
    assert not view.stands_still()


@pytest.mark.parametrize(
    ("faults", "stopped"),
    [
        (["stopped by request; call 'reset' to go on"], True),
        (["Latched before this start: stopped by request; call 'reset' to go on. Call 'reset' to go on"], True),
        (["stopped by request; call 'reset' to go on", "c1 leaks"], False),
        (["c1 leaks"], False),
        ([], False),
    ],
)
def test_a_stop_is_told_apart_from_a_fault(seen, faults, stopped):
    _, _, view = seen
    view.note_driver(DriverState(state=DriverState.FAULT, faults=faults))
    assert state(view).driver.stopped is stopped


def test_values_come_in_the_robots_order_and_age(seen):
    clock, robot, view = seen
    names = robot.actuators[::-1]
    values = [float(i) for i in range(9)]
    view.note_measured(ActuatorState(name=names, value=values, status=[ActuatorState.SETTLED] * 9))
    view.note_commanded(ActuatorCommand(name=names, value=values))
    told = state(view)
    assert told.measured == told.commanded == values[::-1] and told.settled
    clock.now += 1.1
    assert state(view).measured is None and state(view).commanded is None and not state(view).settled


def test_values_of_another_robot_or_unknown_are_not_told(seen):
    _, robot, view = seen
    view.note_measured(ActuatorState(name=["other"], value=[1.0], status=[2]))
    assert state(view).measured is None
    view.note_measured(ActuatorState(name=robot.actuators, value=[math.nan] * 9, status=[2] * 9))
    assert state(view).measured is None


def test_a_robot_shows_the_newest_that_was_measured(seen):
    clock, robot, view = seen
    view.note_measured(ActuatorState(name=robot.actuators, value=[4.0] * 9, status=[0] * 9))
    clock.now += 0.1
    view.note_driver(DriverState(state=DriverState.FAULT, actuator=robot.actuators, rest_value=[3.0] * 9))
    assert state(view).measured == [3.0] * 9
    clock.now += 0.1
    view.note_measured(ActuatorState(name=robot.actuators, value=[5.0] * 9, status=[0] * 9))
    assert state(view).measured == [5.0] * 9
    view.note_driver(DriverState(state=DriverState.RUNNING, actuator=robot.actuators, rest_value=[3.0] * 9))
    assert state(view).measured == [5.0] * 9


def test_errors_of_the_servo_that_are_unknown_are_null(seen):
    clock, _, view = seen
    view.note_servo(ServoState(state=ServoState.TRACKING, mean_error=math.nan, max_error=0.002, latency=0.01))
    told = state(view).servo
    assert (told.state, told.mean_error, told.max_error) == ("tracking", None, 0.002) and view.servo_off == ""
    clock.now += 1.1
    assert state(view).servo.max_error is None
    view.note_servo(ServoState(state=ServoState.OFF, reason="no model"))
    assert view.servo_off == "no model"


@pytest.mark.parametrize("name", ["membrane", "manipulator", "three_chamber", "tendon_rod", "planar_fingers"])
def test_robots_of_all_bodies_are_described(name):
    robot = load_robot(name)
    info = info_of(robot)
    assert [one.name for one in info.actuators] == robot.actuators and info.outputs and info.size > 0.0
    assert info.has_surface == bool(robot.surfaces) and all(one.low < one.high for one in info.actuators)


def test_what_the_model_touches_is_told_while_it_is_new(seen):
    clock, robot, view = seen
    points = np.array([[0.01, 0.0, 0.02], [0.02, 0.0, 0.02]])
    forces = np.array([[0.0, 0.0, -1.0], [0.0, 0.0, -5.0]])
    touches = [
        Touch("ball", points[1], forces.sum(axis=0), points, forces),
        Touch("mould", points[0], np.array([3.0, 0.0, 0.0]), points, forces),
        Touch(ITSELF, points[0], np.zeros(3), points, forces),
    ]
    view.note_contact(touch_markers(touches, robot.body.size, Header(frame_id=robot.base_frame)))
    ball, mould, itself = state(view).contacts
    assert (ball.name, ball.newtons) == ("ball", 6.0) and ball.points[0] == tuple(points[1]), "the hardest first"
    assert ball.place == tuple(points[1]) and ball.end[2] < ball.place[2] and ball.share == 1.0
    assert mould.share == pytest.approx(0.5) and mould.end[0] > mould.place[0]
    assert itself.share == 0.0 and itself.place == itself.end
    for wrong in ("ball", "ball N", "ball nan N"):
        said = touch_markers(touches, robot.body.size, Header(frame_id=robot.base_frame))
        said.markers[3].text = wrong
        view.note_contact(said)
        assert [one.name for one in state(view).contacts] == ["mould", ITSELF]
    clock.now += 3.1
    assert state(view).contacts == []
    view.note_contact(touch_markers(touches, robot.body.size, Header(frame_id="another")))
    assert state(view).contacts == []
    view.note_contact(touch_markers([], robot.body.size, Header(frame_id=robot.base_frame)))
    assert state(view).contacts == []
