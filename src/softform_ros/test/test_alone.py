"""A driver finds whether it is alone: two real nodes of one name, on this machine and in the graph."""

import os
import time

import pytest

from softform_core.errors import SoftformError
from softform_interfaces.msg import DriverState
from softform_ros import alone
from softform_ros.alone import require_alone, seen_elsewhere
from softform_ros.background_node import BackgroundNode
from softform_ros.qos import LATCHED_STATE

TOPIC = "driver_state"


@pytest.fixture
def space():
    return f"/alone_{os.getpid()}_{time.monotonic_ns()}"


def driver(space):
    return BackgroundNode("actuation", space)


def publish(node):
    node.create_publisher(DriverState, TOPIC, LATCHED_STATE)


def test_on_this_machine_the_second_of_a_name_is_told_of_the_first_at_once(space):
    with driver(space) as first, driver(space) as second:
        publish(first)
        publish(second)
        with require_alone(first, TOPIC):
            began = time.monotonic()
            with pytest.raises(
                SoftformError, match=rf"{space}/actuation is there already \(since .* process {os.getpid()}"
            ):
                require_alone(second, TOPIC)
            assert time.monotonic() - began < 0.5
        require_alone(second, TOPIC).close()


@pytest.fixture
def on_the_network(monkeypatch):
    """Nodes that the network reaches, each on a machine of its own as far as names that are held go."""
    monkeypatch.setattr(alone, "network_reach", lambda environment: "network")
    monkeypatch.setattr(alone, "claim", lambda name, domain: open(os.devnull))  # noqa: SIM115
    monkeypatch.setattr(alone, "_GONE_SECONDS", 3.0)
    monkeypatch.setattr(alone, "SEEN_SECONDS", 1.0)


def test_on_the_network_one_that_stays_is_told_of(space, on_the_network):
    with driver(space) as first, driver(space) as second:
        publish(first)
        publish(second)
        for node in (first, second):
            with pytest.raises(SoftformError, match=rf"1 other node\(s\) publish {space}/{TOPIC}. End them, or"):
                require_alone(node, TOPIC)


def test_on_the_network_one_that_goes_is_waited_for(space, on_the_network):
    with driver(space) as second:
        publish(second)
        with driver(space) as first:
            publish(first)
            deadline = time.monotonic() + 10.0
            while second.count_publishers(TOPIC) < 2:
                assert time.monotonic() < deadline
                time.sleep(0.02)
        require_alone(second, TOPIC).close()
        began = time.monotonic()
        require_alone(second, TOPIC).close()
        assert 0.9 < time.monotonic() - began < 2.0, "it takes a while until all are known who are there"


def test_nodes_of_a_launch_are_looked_for_in_the_graph(space, on_the_network):
    names = [f"{space}/rig", f"{space}/actuation"]
    assert seen_elsewhere(names) == ""
    with driver(space):
        began = time.monotonic()
        assert seen_elsewhere(names) == f"{space}/actuation"
        assert time.monotonic() - began < 2.5, "one that answers need not be waited for"
