"""Goals of plain programs: what is not permitted any more is not sent."""

import threading

import pytest
from builtin_interfaces.msg import Time

from softform_core.errors import SoftformError
from softform_interfaces.action import FollowWaypoints
from softform_interfaces.msg import Asked
from softform_ros.action_caller import ActionCaller


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
