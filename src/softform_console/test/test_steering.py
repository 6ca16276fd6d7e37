"""Who steers, what is sent for them, and what ends it."""

import threading
import time

import numpy as np
import pytest

from softform_console.operator_role import OperatorRole
from softform_console.protocol import DEAD_MAN_SECONDS, Point
from softform_console.steering import Steering
from softform_core.errors import SoftformError


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Robot:
    """Notes what is done to it."""

    def __init__(self, refuses=""):
        self.done, self.refuses, self.holds, self.beats = [], refuses, True, []

    def publish_points(self, points):
        self.done.append(("points", [one.id for one in points]))
        return self.refuses

    def beat(self, is_there, of_goal):
        self.beats.append((is_there, of_goal))

    def begin_manual(self):
        if self.refuses:
            raise SoftformError(self.refuses)
        self.done.append(("begin",))

    def send_values(self, values):
        self.done.append(("values", values.tolist()))
        return self.holds

    def end_manual(self):
        self.done.append(("end",))

    def let_go(self, released):
        self.done.append(("let go",))
        self.released = released

    def cancel_goal(self):
        self.done.append(("cancel",))


def point(number=1):
    return Point(id=number, output="skin", u=0.5, v=0.5, target=(0.0, 0.0, 0.1))


@pytest.fixture
def desk():
    clock, robot, told = Clock(), Robot(), []
    role = OperatorRole(clock)
    role.take("me")
    return clock, robot, role, Steering(robot, role, told.append), told


def test_one_page_operates_and_others_do_not():
    clock = Clock()
    role = OperatorRole(clock)
    assert role.take("one") and not role.take("two")
    assert (role.seen_by("one"), role.seen_by("two")) == ("you", "other")
    assert not role.leave("two") and role.leave("one") and role.seen_by("two") == "none"
    assert role.take("two")


def test_a_page_that_is_silent_for_long_loses_the_role_to_who_asks():
    clock = Clock()
    role = OperatorRole(clock)
    role.take("one")
    clock.now += 2.0
    assert not role.take("two")
    clock.now += 2.0
    assert role.take("two") and not role.is_operator("one")


def test_the_beat_of_another_page_keeps_nothing_alive():
    clock = Clock()
    role = OperatorRole(clock)
    role.take("one")
    clock.now += DEAD_MAN_SECONDS + 0.01
    role.beat("two")
    assert not role.is_alive
    role.beat("one")
    assert role.is_alive


@pytest.mark.parametrize("begin", ["points", "values", "goal"])
def test_a_silence_that_was_over_before_anybody_looked_ends_the_motion_all_the_same(desk, begin):
    """The process was frozen: beats that waited in the socket are read before the steering thread looks."""
    clock, robot, role, steering, told = desk
    clock.now += 2.0
    role.beat("me")  # before anything moved: of no matter
    start = {
        "points": lambda: steering.set_points([point()], True),
        "values": lambda: steering.set_values(np.ones(2)),
        "goal": steering.begin_goal,
    }[begin]
    start()
    steering.step()
    assert steering.mode != "none"
    clock.now += DEAD_MAN_SECONDS + 0.01
    role.beat("me")
    if begin != "goal":
        start()  # the page went on meanwhile
    steering.step()
    assert steering.mode == "none" and told and robot.done[-1] != ("points", [1])
    assert role.take("other")


def test_points_are_repeated_until_they_are_held(desk):
    _, robot, _, steering, _ = desk
    steering.set_points([point(1), point(2)], True)
    steering.step()
    steering.step()
    steering.set_points([point(1)], False)
    steering.step()
    assert robot.done == [("points", [1, 2])] * 2 and steering.mode == "held"
    steering.set_points([], True)
    assert steering.mode == "held"
    assert steering.end() and robot.done[-1] == ("let go",) and steering.mode == "none"


def test_editing_points_moves_nothing_that_is_at_rest(desk):
    _, robot, _, steering, _ = desk
    steering.set_points([point()], False)
    steering.step()
    assert steering.mode == "none" and robot.done == []


@pytest.mark.parametrize("optimise", [True, False])
def test_a_silent_page_ends_what_it_moves(desk, optimise):
    clock, robot, role, steering, told = desk
    steering.set_points([point()], True)
    steering.set_points([point()], optimise)
    clock.now += DEAD_MAN_SECONDS - 0.01
    steering.step()
    assert steering.mode != "none"
    clock.now += 0.02
    steering.step()
    assert robot.done[-1] == ("let go",) and steering.mode == "none"
    assert role.seen_by("me") == "none" and "silent" in told[0]
    steering.step()
    assert robot.done.count(("let go",)) == 1


def test_a_silent_page_gives_up_the_lease_of_manual_mode(desk):
    clock, robot, _, steering, _ = desk
    steering.set_values(np.array([1.0, 2.0]))
    steering.step()
    steering.step()
    clock.now += DEAD_MAN_SECONDS + 0.01
    steering.step()
    assert robot.done == [("begin",), ("values", [1.0, 2.0]), ("values", [1.0, 2.0]), ("end",)]


def test_a_servo_that_does_not_follow_ends_the_steering_with_the_reason(desk):
    _, robot, _, steering, told = desk
    robot.refuses = "Out of order."
    steering.set_points([point()], True)
    steering.step()
    steering.step()
    assert steering.mode == "none" and "Out of order." in told[0] and len(robot.done) == 1


def test_points_take_over_from_manual_mode(desk):
    _, robot, _, steering, _ = desk
    steering.set_values(np.array([1.0]))
    steering.step()
    steering.set_points([point()], True)
    steering.step()
    assert robot.done[-2:] == [("end",), ("points", [1])]


def test_a_lease_that_is_not_given_ends_manual_mode_with_the_reason(desk):
    _, robot, _, steering, told = desk
    robot.refuses = "Somebody holds it."
    steering.set_values(np.array([1.0]))
    steering.step()
    assert steering.mode == "none" and told == ["Somebody holds it."] and robot.done == []


def test_a_lease_that_is_lost_is_not_asked_for_again(desk):
    _, robot, _, steering, _ = desk
    steering.set_values(np.array([1.0]))
    steering.step()
    robot.holds = False
    steering.step()
    steering.step()
    assert steering.mode == "none" and robot.done.count(("begin",)) == 1


def test_after_a_stop_nothing_is_sent(desk):
    _, robot, _, steering, _ = desk
    steering.set_points([point()], True)
    assert steering.forget()
    steering.step()
    assert robot.done == [] and steering.points == ()


def test_a_goal_has_the_robot_until_it_ends(desk):
    clock, robot, _, steering, _ = desk
    steering.begin_goal()
    with pytest.raises(SoftformError, match="goal moves"):
        steering.set_points([point()], True)
    with pytest.raises(SoftformError, match="goal moves"):
        steering.begin_goal()
    clock.now += DEAD_MAN_SECONDS + 0.01
    steering.step()
    assert robot.done == [("cancel",), ("let go",)] and steering.mode == "none"


def test_the_servos_node_hears_beats_for_as_long_as_it_moves_or_holds_the_robot_for_somebody(desk):
    _, robot, _, steering, _ = desk
    steering.step()
    assert robot.beats == []
    steering.set_points([point()], True)
    steering.step()
    steering.set_points([point()], False)
    steering.step()
    steering.set_values(np.array([1.0]))
    steering.step()
    steering.step()
    assert robot.beats == [(True, False), (True, False), (False, False)]
    steering.begin_goal()
    steering.step()
    steering.end_goal()
    steering.step()
    assert robot.beats[3:] == [(True, True), (False, False)]


@pytest.mark.parametrize("of_goal", [False, True])
def test_what_was_ended_is_called_over_once_it_was_let_go_of_so_that_silence_ends_it_otherwise(desk, of_goal):
    _, robot, _, steering, _ = desk
    steering.begin_goal() if of_goal else steering.set_points([point()], True)
    steering.step()
    steering.end()
    steering.step()
    assert robot.beats == [(True, of_goal)] and robot.done[-1] == ("let go",)
    robot.released()
    steering.step()
    assert robot.beats[1:] == [(False, False)]
    steering.begin_goal()
    steering.step()
    robot.released()  # of before
    assert robot.beats[2:] == [(True, True)]


def test_a_beat_that_is_under_way_as_the_motion_ends_does_not_call_it_over(desk):
    _, robot, _, steering, _ = desk
    steering.begin_goal()
    steering.end()
    steering._beat("goal")
    steering.step()
    assert robot.beats == []


def test_a_point_is_sent_at_once_by_the_thread_and_ends_with_it():
    robot, role = Robot(), OperatorRole()
    role.take("me")
    steering = Steering(robot, role)
    steering.start()
    time.sleep(0.05)
    begun = time.monotonic()
    steering.set_points([point()], True)
    while not robot.done:
        assert time.monotonic() < begun + 2.0
        time.sleep(0.001)
    assert time.monotonic() - begun < 0.3
    steering.close()
    assert robot.done[-1] == ("let go",)
    assert not any(thread.name == "steering" for thread in threading.enumerate())


def until(condition):
    deadline = time.monotonic() + 3.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def threaded():
    robot, role, told = Robot(), OperatorRole(), []
    role.take("me")
    steering = Steering(robot, role, told.append)
    steering.start()
    yield robot, role, steering, told
    steering.close()


def test_the_thread_sends_one_slider_after_the_other_and_ends_when_the_page_is_silent(threaded):
    robot, _, steering, _ = threaded
    for value in (1.0, 2.0, 3.0):
        steering.set_values(np.array([value, value]))
        until(lambda value=value: ("values", [value, value]) in robot.done)
    until(lambda: steering.mode == "none")
    assert robot.done[-1] == ("end",)


def test_a_step_that_raises_ends_the_motion_and_the_dead_man_goes_on(threaded):
    robot, role, steering, told = threaded
    publish, robot.publish_points = robot.publish_points, lambda points: 1 / 0
    steering.set_points([point()], True)
    until(lambda: ("let go",) in robot.done)
    assert steering.mode == "none" and "division" in told[0]
    robot.publish_points = publish
    role.beat("me")
    steering.set_points([point()], True)
    until(lambda: ("points", [1]) in robot.done)
    until(lambda: robot.done.count(("let go",)) == 2)
