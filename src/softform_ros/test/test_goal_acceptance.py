"""A goal of which the client cannot be told that it was accepted is not carried out."""

import asyncio
import warnings
from types import SimpleNamespace

import pytest
from rclpy.action import ActionServer

from softform_ros.checked_action import _Server


@pytest.mark.parametrize("is_delivered", [True, False])
def test_a_goal_whose_acceptance_cannot_be_delivered_is_not_carried_out(monkeypatch, is_delivered):
    carried_out, told = [], []

    async def execute(self, request):
        if not is_delivered:  # as rclpy 7.1 has it of a client that is gone
            warnings.warn("failed to send response (timeout): client will not receive response", RuntimeWarning, 1)
        carried_out.append(request)

    monkeypatch.setattr(ActionServer, "_execute_goal_request", execute)
    server = object.__new__(_Server)
    server._node = SimpleNamespace(get_logger=lambda: SimpleNamespace(warning=told.append))
    asyncio.run(server._execute_goal_request("goal"))
    assert carried_out == (["goal"] if is_delivered else [])
    assert told == ([] if is_delivered else ["a goal is not carried out, for its client is gone"])
