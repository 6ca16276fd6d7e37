"""Goals of plain programs: what is not permitted is not sent, and of a node that is gone nothing is waited for."""

import re
import threading
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace

import pytest
from action_msgs.msg import GoalStatus
from builtin_interfaces.msg import Time
from rclpy.action import ActionServer

from softform_core.errors import SoftformError
from softform_interfaces.action import FollowWaypoints
from softform_interfaces.msg import Asked
from softform_ros.action_caller import ActionCaller, NotConnectedError
from softform_ros.background_node import BackgroundNode


def test_a_goal_that_is_not_permitted_any_more_is_not_sent_and_one_that_is_can_be_cancelled(monkeypatch):
    caller, sent, is_wanted = ActionCaller(FollowWaypoints, "follow", "node", "test"), threading.Event(), True
    monkeypatch.setattr(caller, "_check_connected", lambda: None)
    caller._epochs = None

    def permit():
        if not is_wanted:
            raise SoftformError("Cancelled.")

    def accepted(send):
        assert caller.cancel()  # from where it is permitted on it is found
        sent.set()
        raise SoftformError("No answer.")

    monkeypatch.setattr(caller, "_accepted", accepted)
    goal = FollowWaypoints.Goal(asked=Asked(stamp=Time(sec=1), epoch=7))
    with pytest.raises(SoftformError, match="No answer"):
        caller.call(goal, permit=permit)
    assert sent.is_set() and not caller.cancel()
    is_wanted = False
    sent.clear()
    with pytest.raises(SoftformError, match="Cancelled"):
        caller.call(goal, permit=permit)
    assert not sent.is_set() and not caller.cancel()


@contextmanager
def served(accepted):
    """A node that takes goals and never ends them."""
    with BackgroundNode("node", "alone/action_caller") as node:

        def accept(handle):
            accepted.set()

        server = ActionServer(node, FollowWaypoints, "follow", lambda handle: None, handle_accepted_callback=accept)
        yield
        server.destroy()


def test_a_goal_ends_with_the_node_that_took_it_though_the_next_one_is_there_by_then():
    accepted, raised = threading.Event(), []
    caller = ActionCaller(FollowWaypoints, "follow", "node", "test", "alone/action_caller")

    def call():
        try:
            caller.call(FollowWaypoints.Goal(asked=Asked(stamp=Time(sec=1), epoch=7)))
        except NotConnectedError as error:
            raised.append(str(error))

    with ExitStack() as lasting:
        first = lasting.enter_context(ExitStack())
        first.enter_context(served(accepted))
        lasting.enter_context(caller)
        calling = threading.Thread(target=call)
        calling.start()
        assert accepted.wait(10.0)
        lasting.enter_context(served(threading.Event()))
        first.close()
        calling.join(60.0)
        assert not calling.is_alive() and re.search(r"went away while it worked|answers in place of the one", raised[0])


def test_a_result_of_a_node_that_does_not_have_the_goal_is_none(monkeypatch):
    """Where two nodes of a name answer, the one without the goal is the first."""
    caller, cancelled = ActionCaller(FollowWaypoints, "follow", "node", "test"), []
    monkeypatch.setattr(caller, "_check_connected", lambda: None)
    caller._epochs = None
    handle = SimpleNamespace(accepted=True, get_result_async=None, cancel_goal_async=lambda: cancelled.append(True))
    unknown = SimpleNamespace(status=GoalStatus.STATUS_UNKNOWN, result=FollowWaypoints.Result())
    monkeypatch.setattr(caller, "_accepted", lambda send: handle)
    monkeypatch.setattr(caller, "_ask", lambda send: unknown)
    with pytest.raises(NotConnectedError, match="in place of the one that took the goal"):
        caller.call(FollowWaypoints.Goal())
    assert cancelled
