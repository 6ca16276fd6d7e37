"""The watch over who steers: silence lets go, once, and of nobody else's goal."""

import math

import pytest

from softform_client.steering_watch import LOOK_SECONDS, SteeringWatch
from softform_core.errors import SoftformError

ONE, OTHER = "one", "another"


class Robot:
    """What the watch acts on, and the time."""

    def __init__(self):
        self.now, self.reasons, self.has_goal, self.has_moved = 10.0, [], False, True
        self.watch = SteeringWatch(self.let_go, lambda: self.has_goal, lambda: self.has_moved, lambda: self.now)

    def let_go(self, reason):
        self.reasons.append(reason)
        return True

    def wait(self, seconds):
        """Look as often as the node does."""
        for _ in range(round(seconds / LOOK_SECONDS)):
            self.now += LOOK_SECONDS
            self.watch.look()


@pytest.fixture
def robot():
    return Robot()


def test_without_a_beat_nothing_is_let_go_of(robot):
    robot.wait(60.0)
    assert robot.reasons == []


def test_silence_lets_go_once(robot):
    robot.watch.note(ONE, 1.0, False)
    robot.wait(0.9)
    assert robot.reasons == []
    robot.wait(0.4)
    assert len(robot.reasons) == 1 and "1 s" in robot.reasons[0]
    robot.wait(60.0)
    assert len(robot.reasons) == 1


def test_beats_that_come_keep_it(robot):
    for _ in range(40):
        robot.watch.note(ONE, 0.5, False)
        robot.wait(0.4)
    assert robot.reasons == []


def test_who_says_that_they_steer_no_more_leaves_what_is_held(robot):
    robot.watch.note(ONE, 1.0, False)
    robot.watch.note(ONE, 0.0, False)
    robot.wait(60.0)
    assert robot.reasons == []


def test_after_a_stall_of_the_node_beats_that_waited_are_heard_first(robot):
    robot.watch.note(ONE, 1.0, False)
    robot.now += 5.0
    robot.watch.look()
    robot.watch.note(ONE, 1.0, False)
    robot.wait(0.5)
    assert robot.reasons == []


@pytest.mark.parametrize("of_goal", [True, False])
def test_a_goal_ends_if_it_is_of_who_is_silent_alone(robot, of_goal):
    robot.watch.note(ONE, 1.0, of_goal)
    robot.has_goal = True
    robot.wait(3.0)
    assert len(robot.reasons) == of_goal
    robot.has_goal = False
    robot.wait(3.0)
    assert len(robot.reasons) == of_goal


@pytest.mark.parametrize("moves", [True, False])
def test_somebody_elses_goal_that_moves_nothing_leaves_what_was_steered_to_the_watch(robot, moves):
    robot.watch.note(ONE, 1.0, False)
    robot.has_goal, robot.has_moved = True, False
    robot.wait(5.0)
    assert robot.reasons == [], "the goal may still move the robot"
    robot.has_moved = moves
    robot.wait(0.2)
    robot.has_goal = False
    robot.wait(0.3)
    assert len(robot.reasons) == (not moves)


def test_beats_of_one_do_not_keep_what_another_one_has_left(robot):
    robot.watch.note(OTHER, 1.0, False)
    for _ in range(20):
        robot.watch.note(ONE, 1.0, False)
        robot.wait(0.1)
    assert len(robot.reasons) == 1, "once for who is silent, and not for who is there"


@pytest.mark.parametrize("names", [(ONE, OTHER), ("", OTHER), (ONE, "")])
def test_who_steers_no_more_does_not_end_the_watch_over_another_one(robot, names):
    vanishes, ends = names
    robot.watch.note(vanishes, 1.0, False)
    robot.watch.note(ends, 1.0, False)
    robot.watch.note(ends, 0.0, False)
    robot.wait(3.0)
    assert len(robot.reasons) == 1


def test_each_of_two_who_vanish_is_noticed_at_its_own_time(robot):
    robot.watch.note(ONE, 1.0, False)
    robot.watch.note(OTHER, 4.0, False)
    robot.wait(3.0)
    assert len(robot.reasons) == 1 and "1 s" in robot.reasons[0]
    robot.wait(3.0)
    assert len(robot.reasons) == 2 and "4 s" in robot.reasons[1]


def test_a_goal_of_who_is_there_does_not_end_by_the_silence_of_who_dragged_points(robot):
    robot.watch.note(OTHER, 1.0, False)
    robot.has_goal = True
    for _ in range(50):
        robot.watch.note(ONE, 1.0, True)
        robot.wait(0.1)
    assert robot.reasons == []
    robot.wait(2.0)
    assert len(robot.reasons) == 1, "of who moved the robot last"


def test_a_flood_of_senders_is_rejected_and_who_was_watched_before_stays_so(robot):
    robot.watch.note(ONE, 5.0, False)
    with pytest.raises(SoftformError, match="already"):
        for number in range(1000):
            robot.watch.note(f"{number}", 10.0, False)
    with pytest.raises(SoftformError, match="long name"):
        robot.watch.note("\x1b" * 10**6, 1.0, False)
    robot.watch.note(ONE, 1.0, False)
    robot.wait(2.0)
    assert len(robot.reasons) == 1


@pytest.mark.parametrize("dead_man", [math.nan, -1.0, math.inf, 11.0])
def test_a_beat_that_makes_no_sense_is_rejected_and_the_one_before_counts_on(robot, dead_man):
    robot.watch.note(ONE, 1.0, False)
    with pytest.raises(SoftformError, match="dead_man"):
        robot.watch.note(ONE, dead_man, False)
    robot.wait(2.0)
    assert len(robot.reasons) == 1
