"""Calls of services whose nodes, or whose callers, have just come."""

import threading
import time
from collections.abc import Sequence
from typing import Any

from rcl_interfaces.srv import GetParameters
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python
from std_srvs.srv import Trigger

from softform_interfaces.srv import Reset
from softform_ros.asked import EpochWatch

_JOINING_SECONDS = 0.25
"""Time without an answer after which the request is sent again, s."""

_POLL_SECONDS = 0.02


def wait_until_answered(node: Node, server: str, timeout: float) -> bool:
    """Wait until another node can answer the clients that this node has made so far; another thread spins this node.

    A client sees a service before the service has come to know the client, and an answer that is sent in between is
    lost (rmw_fastrtps gives up on it after 100 ms). The middleware announces endpoints in the order in which they were
    made: who answers a request of one more client can answer those that were made before it.

    Args:
        node: This program's.
        server: Name of the other node, absolute or relative to the namespace of `node`.
        timeout: Time limit, s.

    Returns:
        Whether it answers.
    """
    deadline = time.monotonic() + timeout
    client = node.create_client(GetParameters, f"{server}/get_parameters")
    answered = threading.Event()
    try:
        while time.monotonic() < deadline and node.context.ok():
            if not client.service_is_ready():
                time.sleep(_POLL_SECONDS)
                continue
            # A late answer to an earlier question counts, too: a busy machine may take longer for each of them.
            client.call_async(GetParameters.Request()).add_done_callback(lambda _: answered.set())
            if answered.wait(_JOINING_SECONDS):
                return True
        return False
    finally:
        node.destroy_client(client)


def call_service(node: Node, server: str, kind: Any, service: str, request: Any, timeout: float) -> Any | None:
    """Wait for a service, call it once, and return its answer; another thread spins this node.

    Args:
        node: This program's.
        server: Name of the node that serves it, absolute or relative to the namespace of `node`.
        kind: Type of the service.
        service: Name of the service, likewise.
        request: Message.
        timeout: Time limit of the whole call, s.

    Returns:
        The answer, None if there is none in time; the request may have been carried out nevertheless.
    """
    deadline = time.monotonic() + timeout
    client = node.create_client(kind, service)
    try:
        if not wait_until_answered(node, server, timeout):
            return None
        while not client.service_is_ready():
            if time.monotonic() > deadline:
                return None
            time.sleep(_POLL_SECONDS)
        return client.call(request, timeout_sec=max(0.0, deadline - time.monotonic()))
    finally:
        node.destroy_client(client)


def asked_parameters(node: Node, server: str, names: Sequence[str], timeout: float) -> dict[str, Any] | None:
    """Return parameters of another node, as `call_service` asks for them; None if it does not answer in time."""
    request = GetParameters.Request(names=names)
    answer = call_service(node, server, GetParameters, f"{server}/get_parameters", request, timeout)
    return None if answer is None else dict(zip(names, map(parameter_value_to_python, answer.values), strict=True))


def call_driver(node: Node, service: str, timeout: float) -> Trigger.Response | Reset.Response | None:
    """Call `stop`, `reset` or `calibrate` of the driver, as `call_service` does.

    `stop` is served by a second node of the driver's process, which also answers while the first one is in a
    transition. A reset is of the faults that the driver tells just now.
    """
    if service == "reset":
        watch = EpochWatch(node)
        try:
            wait_until_answered(node, "actuation", timeout)
            asked = watch.asked(timeout)
        finally:
            watch.close()
        return call_service(node, "actuation", Reset, service, Reset.Request(asked=asked), timeout)
    server = "actuation_stop" if service == "stop" else "actuation"
    return call_service(node, server, Trigger, service, Trigger.Request(), timeout)
