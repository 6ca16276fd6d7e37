"""Who commands the robot: goals before the stream, newer goals before older ones, nothing from before a stop."""

import numpy as np
import pytest

from softform_client.held_command import HeldCommand
from softform_client.reach_goal import Code
from softform_ik.robot.commander import Commander
from softform_ik.robot.stop_request import StopRequest

FOLLOW_PREEMPTED = 312
GOAL, STREAM = np.full(9, 2000.0), np.full(9, 1000.0)


class WallClock:
    """Stamps, ns: time that passes only when it is asked to."""

    def __init__(self):
        self.now = 1_000_000

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return WallClock()


@pytest.fixture
def sent():
    return []


@pytest.fixture
def commander(sent, clock):
    return Commander(HeldCommand(sent.append), clock)


def test_the_stream_commands_while_no_goal_moves(commander, sent):
    assert commander.hold_for_stream(STREAM, 1_000_100)
    assert len(sent) == 1 and (commander.pressures == STREAM).all() and not commander.is_moved_by_goal


def test_a_goal_takes_the_robot_from_the_stream_at_once(commander, sent):
    goal = StopRequest()
    commander.hold_for_stream(STREAM, 1_000_100)
    commander.begin(goal, Code.PREEMPTED)
    assert commander.is_moved_by_goal and not commander.admits(1_000_200)
    assert not commander.hold_for_stream(STREAM, 1_000_200) and len(sent) == 1
    assert commander.hold(GOAL, goal) and (commander.pressures == GOAL).all()


def test_the_stream_resumes_with_a_target_from_after_the_goal(commander, clock):
    goal = StopRequest()
    commander.begin(goal, Code.PREEMPTED)
    commander.hold(GOAL, goal)
    clock.now = 1_005_000
    commander.end(goal)
    assert not commander.is_moved_by_goal and not commander.hold(STREAM, goal)
    assert not commander.hold_for_stream(STREAM, 1_004_900) and (commander.pressures == GOAL).all()
    assert commander.hold_for_stream(STREAM, 1_005_100)


def test_a_moving_goal_preempts_that_of_another_action_with_its_own_code(commander, sent):
    reach, follow = StopRequest(), StopRequest()
    commander.begin(reach, Code.PREEMPTED)
    commander.begin(follow, FOLLOW_PREEMPTED)
    assert reach.code == Code.PREEMPTED and not follow()
    assert not commander.hold(GOAL, reach) and not sent
    commander.end(reach)
    assert commander.is_moved_by_goal, "the end of the older goal must not take the robot from the newer"
    commander.begin(StopRequest(), Code.PREEMPTED)
    assert follow.code == FOLLOW_PREEMPTED


def test_after_a_release_older_targets_do_not_count(commander, sent, clock):
    commander.hold_for_stream(STREAM, 1_000_100)
    clock.now = 1_001_000
    assert commander.release() and commander.pressures is None
    assert not commander.hold_for_stream(STREAM, 1_000_900) and len(sent) == 1
    clock.now = 1_002_000
    assert not commander.release(), "a reset releases nothing, but older targets are past"
    assert not commander.hold_for_stream(STREAM, 1_001_500)
    assert commander.hold_for_stream(STREAM, 1_002_500) and len(sent) == 2


def test_a_goal_does_not_go_on_after_a_release(commander, sent):
    goal = StopRequest()
    commander.begin(goal, Code.PREEMPTED)
    commander.hold(GOAL, goal)
    commander.release()
    assert not commander.hold(GOAL, goal) and len(sent) == 1 and not goal()


def test_disabled_nobody_commands(commander, sent, clock):
    goal = StopRequest()
    commander.hold_for_stream(STREAM, 1_000_100)
    assert commander.disable() and not commander.disable()
    commander.begin(goal, Code.PREEMPTED)
    assert not commander.hold(GOAL, goal)
    commander.end(goal)
    assert not commander.hold_for_stream(STREAM, 2_000_000) and len(sent) == 1
    clock.now = 1_003_000
    commander.enable()
    assert not commander.hold_for_stream(STREAM, 1_002_000)
    assert commander.hold_for_stream(STREAM, 1_003_500) and len(sent) == 2


def test_what_is_not_permitted_is_not_held(commander, sent):
    goal = StopRequest()
    commander.begin(goal, Code.PREEMPTED)
    assert not commander.hold(GOAL, goal, lambda: False) and not sent


def test_a_clock_that_is_set_back_does_not_silence_the_stream(commander, clock):
    clock.now = 100_000
    assert not commander.admits(100_000), "what was meant before"
    clock.now = 100_500
    assert commander.admits(100_400)
