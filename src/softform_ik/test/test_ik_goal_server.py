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

GOAL = SimpleNamespace(goal_id=SimpleNamespace(uuid=np.arange(16, dtype=np.uint8)), publish_feedback=print)
GOAL.request = SimpleNamespace(asked=SimpleNamespace(epoch=1, client=""))


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
        self.now, self.listeners, self.lines = 100.0, [], []
        monkeypatch.setattr(goal_server, "CheckedAction", lambda *_: SimpleNamespace(destroy=print))
        monkeypatch.setattr(goal_server.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(goal_server, "in_worker", self.in_worker)
        self.commander = Commander(HeldCommand(lambda values: None), GrantedLease())
        node = SimpleNamespace(parameters={"feedback_rate": 20.0}, get_logger=lambda: self)
        node.get_subscriptions_info_by_topic = lambda topic: self.listeners
        node.count_subscribers = lambda topic: len(self.listeners)
        self.server = Server(node, None, run, None, lambda goal: [], None, self.commander)

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
