"""Servers of goals without ROS: the robot is taken back from whatever a goal does."""

import asyncio
from types import SimpleNamespace

import numpy as np
import pytest
from granted_lease import GrantedLease

from softform_client.held_command import HeldCommand
from softform_ik.goals import goal_server
from softform_ik.goals.goal_server import MovingGoalServer
from softform_ik.robot.commander import Commander
from softform_ros.goal_error import GoalCode, GoalError

GOAL = SimpleNamespace(goal_id=SimpleNamespace(uuid=np.arange(16, dtype=np.uint8)), publish_feedback=print)
GOAL.request = SimpleNamespace(asked=SimpleNamespace(epoch=1, client=""))


def listener(name):
    return SimpleNamespace(node_namespace="/softform", node_name=name)


class Server(MovingGoalServer):
    """Every goal moves the robot."""

    action, name = None, "moving"

    def moves(self, goal):
        return True

    def result(self, outcome):
        return outcome

    def summary(self, outcome):
        return ""


class Stack:
    """A server, its commander, and who listens to its feedback."""

    def __init__(self, run, monkeypatch):
        self.now, self.listeners, self.lines = 100.0, [listener("follow_1")], []
        monkeypatch.setattr(goal_server, "CheckedAction", lambda *_: SimpleNamespace(destroy=print))
        monkeypatch.setattr(goal_server.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(goal_server, "in_worker", self.in_worker)
        self.commander = Commander(HeldCommand(lambda values: None), GrantedLease())
        node = SimpleNamespace(parameters={"feedback_rate": 20.0}, get_logger=lambda: self)
        node.get_subscriptions_info_by_topic = lambda topic: self.listeners
        monkeypatch.setattr(goal_server.time, "sleep", self.sleep)
        monkeypatch.setattr(goal_server, "since_boot", lambda: self.now)
        self.opening = 0.0
        self.server = Server(node, None, run, None, self.warn, None, self.commander)

    def sleep(self, seconds):
        self.now += seconds

    def warn(self, goal):
        """Open the model of a goal."""
        self.now += self.opening
        return []

    async def in_worker(self, workers, work):
        return work()

    def warning(self, line):
        self.lines.append(line)

    def carry_out(self):
        return asyncio.run(self.server._carry_out("goal", GOAL))


def fails(goal, stop, tell):
    raise RuntimeError("a model of another package")


def test_a_goal_that_raises_does_not_keep_the_robot(monkeypatch):
    stack = Stack(fails, monkeypatch)
    for _ in range(2):
        stack.server._begin("goal", GOAL)
        assert stack.commander.is_moved_by_goal
        with pytest.raises(RuntimeError, match="another package"):
            stack.carry_out()
        assert not stack.commander.is_moved_by_goal and not stack.server._stops


def test_a_goal_whose_model_was_long_in_opening_moves_nothing_and_says_so(monkeypatch):
    began = []
    stack = Stack(lambda goal, stop, tell: began.append(goal), monkeypatch)
    stack.opening = 2.1
    stack.server._begin("goal", GOAL)
    with pytest.raises(GoalError, match=r"only 2.1 s after it was accepted.*send the goal again") as error:
        stack.carry_out()
    assert error.value.code is GoalCode.DRIVER_NOT_READY and began == [] and not stack.commander.is_moved_by_goal


@pytest.mark.parametrize(("opening", "moves"), [(1.9, True), (60.0, False)])
def test_a_goal_whose_model_was_soon_open_or_that_moves_nothing_is_carried_out(monkeypatch, opening, moves):
    began = []
    stack = Stack(lambda goal, stop, tell: began.append(goal), monkeypatch)
    stack.opening, stack.server.moves = opening, lambda goal: moves
    stack.server._begin("goal", GOAL)
    stack.carry_out()
    assert began == ["goal"]


def test_a_goal_that_was_preempted_while_a_model_was_opened_ends_as_such(monkeypatch):
    codes = []
    stack = Stack(lambda goal, stop, tell: codes.append(stop.code), monkeypatch)
    stack.server._begin("goal", GOAL)
    stack.opening = 10.0
    stack.server._stop.request(GoalCode.PREEMPTED)
    stack.carry_out()
    assert codes == [GoalCode.PREEMPTED]


@pytest.mark.parametrize("left", [[], ["console"]])
def test_a_goal_whose_client_left_before_it_began_moves_nothing(monkeypatch, left):
    """A node that stood still finds the goal in its queue, and hears of the client's leaving a moment later."""
    began = []
    stack = Stack(lambda goal, stop, tell: began.append(goal), monkeypatch)
    request = SimpleNamespace(asked=SimpleNamespace(epoch=1, client="/softform/follow_1"))
    stack.server._begin("goal", SimpleNamespace(**{**vars(GOAL), "request": request}))
    stack.listeners = [listener(name) for name in left]
    with pytest.raises(GoalError, match="gone before it began"):
        stack.carry_out()
    assert began == [] and not stack.commander.is_moved_by_goal


@pytest.mark.parametrize(
    ("client", "left", "ends"),
    [
        ("/softform/follow_1", ["follow_1", "console"], False),
        ("/softform/follow_1", ["console"], True),
        ("/softform/follow_1", ["_NODE_NAME_UNKNOWN_"], False),
        ("/softform/follow_1", [], True),
        ("", ["anybody"], False),
        ("", [], True),
    ],
)
def test_a_goal_ends_with_its_own_client_whoever_else_listens(monkeypatch, client, left, ends):
    stack, stops = None, []

    def run(goal, stop, tell):
        stops.append(stop)
        stack.listeners = [listener(name) for name in ("follow_1", "console")]
        look(5.0)
        assert not stop()
        stack.listeners = [listener(name) for name in left]
        look(1.9)
        assert not stop()
        look(0.3)
        return stop.code

    def look(seconds):
        for _ in range(round(seconds / 0.1)):
            stack.now += 0.1
            stack.server.end_without_client()

    stack = Stack(run, monkeypatch)
    request = SimpleNamespace(asked=SimpleNamespace(epoch=1, client=client))
    stack.server._begin("goal", SimpleNamespace(**{**vars(GOAL), "request": request}))
    stack.carry_out()
    assert stops[0].code == (GoalCode.CANCELLED if ends else GoalCode.NONE)
