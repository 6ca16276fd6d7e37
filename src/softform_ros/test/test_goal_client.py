"""The client of a moving goal is seen by who listens to its feedback; one that is gone, or never was there, is told."""

from types import SimpleNamespace

import pytest

from softform_ros import goal_client
from softform_ros.goal_client import CLIENT_SECONDS, GoalClient
from softform_ros.goal_error import GoalCode, GoalError


class Graph:
    """Who listens, and a clock that goes on as somebody looks."""

    def __init__(self, *listeners: str) -> None:
        self.listeners, self.now = list(listeners), 10.0

    def get_subscriptions_info_by_topic(self, topic: str) -> list[SimpleNamespace]:
        assert topic == "shape_object/_action/feedback"
        self.now += 0.5
        parts = (name.rpartition("/") for name in self.listeners)
        return [SimpleNamespace(node_namespace=space or "/", node_name=name) for space, _, name in parts]

    def client(self, name: str) -> GoalClient:
        return GoalClient(self, "shape_object", name, lambda: self.now)


@pytest.mark.parametrize("name", ["/lab/mine", "/mine", ""])
def test_a_client_is_gone_some_time_after_it_listens_no_more(name):
    graph = Graph(name or "/anybody", "/lab/console")
    client = graph.client(name)
    assert not client.is_gone()
    client.require(lambda: False)
    graph.listeners = graph.listeners[1:] if name else []
    looks = 0
    while not client.is_gone():
        looks += 1
    assert looks == pytest.approx(CLIENT_SECONDS / 0.5, abs=1)
    graph.listeners.append(name or "/anybody")
    assert not client.is_gone()


def test_one_that_is_not_discovered_yet_counts_as_there():
    graph = Graph("/_NODE_NAME_UNKNOWN_")
    assert not graph.client("/mine").is_gone()


def test_a_goal_whose_client_left_before_it_began_is_told(monkeypatch):
    monkeypatch.setattr(goal_client, "_LEAVING_SECONDS", 0.0)
    with pytest.raises(GoalError, match="gone before it began") as caught:
        Graph("/lab/console").client("/lab/mine").require(lambda: False)
    assert caught.value.code is GoalCode.CANCELLED
    Graph().client("/lab/mine").require(lambda: True)
