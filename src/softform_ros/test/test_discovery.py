"""A program that has just come waits for those whom it looks for, even if others are seen long before."""

import time
from types import SimpleNamespace

from softform_ros.discovery import QUIET_SECONDS, await_discovery


def graph(*nodes):
    return SimpleNamespace(
        get_node_names_and_namespaces=lambda: [(name, "/") for name in nodes],
        get_topic_names_and_types=lambda: [("/diagnostics", [])],
        count_publishers=lambda topic: 1,
    )


def test_a_quiet_graph_is_not_complete_before_those_are_there_who_are_looked_for():
    began = time.monotonic()
    assert await_discovery(graph("own", "other"), is_complete=lambda: time.monotonic() > began + 2.0 * QUIET_SECONDS)
    assert time.monotonic() - began > 2.0 * QUIET_SECONDS


def test_who_never_comes_is_not_waited_for_without_end():
    assert await_discovery(graph("own", "other"), timeout=0.3, is_complete=lambda: False)
    assert not await_discovery(graph("own"), timeout=0.3)
