"""Who commands the robot: goals before the stream, newer goals before older ones, nothing from before a stop."""

from types import SimpleNamespace

import numpy as np
import pytest
from granted_lease import GrantedLease

from softform_client.held_command import HeldCommand
from softform_core.errors import SoftformError
from softform_ik.robot.commander import Commander
from softform_ik.robot.stop_request import StopRequest
from softform_ros.goal_error import GoalCode, GoalError

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
def steady():
    return WallClock()


@pytest.fixture
def lease():
    one = GrantedLease()
    one.is_held = True
    return one


@pytest.fixture
def commander(sent, clock, steady, lease):
    return Commander(HeldCommand(sent.append), lease, stream_pause=500, wall_clock=clock, clock=steady)


def test_the_stream_commands_while_no_goal_moves(commander, sent):
    assert commander.hold_for_stream(STREAM, 1_000_100)
    assert len(sent) == 1 and (commander.values == STREAM).all() and not commander.is_moved_by_goal


def test_a_goal_takes_the_robot_from_the_stream_at_once(commander, sent, lease):
    goal = StopRequest()
    commander.hold_for_stream(STREAM, 1_000_100)
    commander.begin(goal, lease.epoch)
    assert commander.is_moved_by_goal and not commander.admits(1_000_200)
    assert not commander.hold_for_stream(STREAM, 1_000_200) and len(sent) == 1
    assert commander.hold(GOAL, goal) and (commander.values == GOAL).all()


def test_the_stream_resumes_with_a_target_from_after_the_goal(commander, clock, lease):
    goal = StopRequest()
    commander.begin(goal, lease.epoch)
    commander.hold(GOAL, goal)
    clock.now = 1_005_000
    commander.end(goal)
    assert not commander.is_moved_by_goal and not commander.hold(STREAM, goal)
    assert not commander.hold_for_stream(STREAM, 1_004_900) and (commander.values == GOAL).all()
    assert commander.hold_for_stream(STREAM, 1_005_100)


def test_a_moving_goal_preempts_that_of_another_action(commander, sent, lease):
    reach, follow = StopRequest(), StopRequest()
    commander.begin(reach, lease.epoch)
    commander.begin(follow, lease.epoch)
    assert reach.code == GoalCode.PREEMPTED and not follow()
    assert not commander.hold(GOAL, reach) and not sent
    commander.end(reach)
    assert commander.is_moved_by_goal, "the end of the older goal must not take the robot from the newer"
    commander.begin(StopRequest(), lease.epoch)
    assert follow.code == GoalCode.PREEMPTED


def test_after_a_release_older_targets_do_not_count(commander, sent, clock):
    commander.hold_for_stream(STREAM, 1_000_100)
    clock.now = 1_001_000
    assert commander.release() and commander.values is None
    assert not commander.hold_for_stream(STREAM, 1_000_900) and len(sent) == 1
    clock.now = 1_002_000
    assert not commander.release(), "a reset releases nothing, but older targets are past"
    assert not commander.hold_for_stream(STREAM, 1_001_500) and len(sent) == 1


def test_after_a_release_a_stream_that_goes_on_is_not_followed_and_one_that_paused_is(commander, steady, lease):
    commander.hold_for_stream(STREAM, 1_000_100)
    commander.release()
    assert not lease.is_held
    for stamp in range(10):  # every 400, while the pause is 500
        steady.now += 400
        commander.note_target()
        assert commander.stream_bar is not None and not commander.admits(2_000_000 + stamp)
    steady.now += 501
    commander.note_target()
    assert commander.admits(3_000_000) and not commander.hold_for_stream(STREAM, 3_000_000), "not without a lease"
    commander.take_for_stream()
    assert lease.asked == 1 and commander.hold_for_stream(STREAM, 3_000_000)


def test_a_stream_that_was_rejected_the_lease_is_not_asked_for_again(commander, lease):
    lease.is_held, lease.rejection = False, SoftformError("'collector' holds the lease.")
    with pytest.raises(SoftformError, match="'collector' holds"):
        commander.take_for_stream()
    assert commander.stream_bar is not None and not commander.admits(2_000_000)


def test_a_goal_asks_once_and_a_shape_that_is_held_is_taken_over(commander, lease):
    lease.is_held, first, second = False, StopRequest(), StopRequest()
    commander.begin(first, lease.epoch)
    assert lease.asked == 0, "solving needs no lease"
    assert commander.hold(GOAL, first) and commander.hold(GOAL, first) and lease.asked == 1
    commander.end(first)
    commander.begin(second, lease.epoch)
    assert commander.hold(STREAM, second) and lease.asked == 1
    lease.is_held = False  # it died, and nobody has said so yet
    assert not commander.hold(GOAL, second) and lease.asked == 1


def test_a_goal_that_is_rejected_the_lease_says_who_has_it(commander, lease):
    lease.is_held, lease.rejection, goal = False, SoftformError("'collector' holds the lease."), StopRequest()
    commander.begin(goal, lease.epoch)
    with pytest.raises(GoalError, match="'collector' holds") as rejected:
        commander.hold(GOAL, goal)
    assert rejected.value.code == GoalCode.DRIVER_NOT_READY


def test_a_goal_that_was_accepted_before_a_stop_and_a_reset_moves_nothing(commander, lease, sent):
    """As it is when this process was frozen meanwhile: it has missed both, and the driver is safe as before."""
    lease.is_held, goal = False, StopRequest()
    commander.begin(goal, lease.epoch)
    lease.epoch += 2
    with pytest.raises(GoalError, match="was stopped"):
        commander.hold(GOAL, goal)
    assert not sent
    newer = StopRequest()
    commander.begin(newer, lease.epoch)
    assert commander.hold(GOAL, newer)


def test_a_stream_that_came_before_a_stop_and_a_reset_moves_nothing(commander, lease):
    lease.is_held = False
    commander.note_target()
    lease.epoch += 2
    with pytest.raises(SoftformError, match="was stopped"):
        commander.take_for_stream()
    commander.note_target()
    commander.take_for_stream()
    assert lease.is_held


def test_what_was_asked_for_before_the_process_stood_still_is_over(sent, lease):
    now = 100.0
    commander = Commander(HeldCommand(sent.append), lease, since_boot=lambda: now)
    goal, waiting = StopRequest(), StopRequest()
    commander.begin(goal, lease.epoch)
    assert commander.hold(GOAL, goal)
    now += 1.9
    assert not commander.note_alive() and commander.hold(GOAL, goal) and len(sent) == 2
    now += 2.1
    assert commander.note_alive() and not commander.note_alive()
    assert not lease.is_held and commander.values is None and not commander.has_robot(goal)
    commander.begin(waiting, lease.epoch)
    now += 2.1  # the worker wakes before the executor
    assert not commander.hold(GOAL, waiting) and len(sent) == 2 and not lease.is_held
    assert "stood still for 2.1 s" in commander.stream_bar


def test_a_goal_does_not_go_on_after_a_release(commander, sent, lease):
    goal = StopRequest()
    commander.begin(goal, lease.epoch)
    commander.hold(GOAL, goal)
    commander.release()
    assert not commander.hold(GOAL, goal) and len(sent) == 1 and not goal()


def test_disabled_nobody_commands(commander, sent, clock, lease):
    goal = StopRequest()
    commander.hold_for_stream(STREAM, 1_000_100)
    assert commander.disable() and not commander.disable()
    commander.begin(goal, lease.epoch)
    assert not commander.hold(GOAL, goal)
    commander.end(goal)
    assert not commander.hold_for_stream(STREAM, 2_000_000) and len(sent) == 1
    clock.now = 1_003_000
    commander.enable()
    assert not commander.hold_for_stream(STREAM, 1_002_000)
    assert commander.hold_for_stream(STREAM, 1_003_500) and len(sent) == 2


def test_what_is_not_permitted_is_not_held(commander, sent, lease):
    goal = StopRequest()
    commander.begin(goal, lease.epoch)
    assert not commander.hold(GOAL, goal, lambda: False) and not sent


def test_a_clock_that_is_set_back_does_not_silence_the_stream(commander, clock):
    clock.now = 100_000
    assert not commander.admits(100_000), "what was meant before"
    clock.now = 100_500
    assert commander.admits(100_400)


@pytest.mark.parametrize("jump", [0.0, -3600.0, 3600.0])
def test_what_was_asked_for_before_it_was_let_go_of_is_over_however_the_clock_is_set(sent, lease, jump):
    now = SimpleNamespace(boot=1000.0, jump=0.0)
    wall = lambda: round(1e9 * (now.boot + now.jump))  # noqa: E731
    commander = Commander(HeldCommand(sent.append), lease, wall_clock=wall, since_boot=lambda: now.boot)
    asked_before = wall()
    now.boot += 1.0
    commander.let_go()
    assert commander.is_outdated(lease.epoch, asked_before)
    now.boot, now.jump = now.boot + 1.0, jump
    asked_after = wall()
    now.boot += 0.1
    assert not commander.is_outdated(lease.epoch, asked_after)


def test_what_is_held_is_of_a_goal_once_that_has_commanded(commander, lease):
    commander.hold_for_stream(STREAM, 1_000_100)
    assert not commander.is_held_by_goal
    goal = StopRequest()
    commander.begin(goal, lease.epoch)
    assert not commander.is_held_by_goal and not commander.hold(GOAL, goal, lambda: False)
    assert not commander.is_held_by_goal, "it was not permitted"
    assert commander.hold(GOAL, goal) and commander.is_held_by_goal
    commander.begin(StopRequest(), lease.epoch)
    assert not commander.is_held_by_goal
