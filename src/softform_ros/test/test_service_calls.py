"""Services of nodes that are slow to answer."""

import time

import pytest
import rclpy
from rcl_interfaces.srv import GetParameters
from std_srvs.srv import Trigger

from softform_ros.background_node import BackgroundNode
from softform_ros.service_calls import call_service


@pytest.fixture
def busy_server():
    """A node that takes 0.4 s for each request."""
    with BackgroundNode("busy", "/softform") as node:
        node.destroy_service(next(one for one in node.services if one.srv_name.endswith("/get_parameters")))

        def answer(request, response):
            time.sleep(0.4)
            return response

        node.create_service(GetParameters, "busy/get_parameters", answer)
        node.create_service(Trigger, "stop", answer)
        yield node


def test_a_busy_node_is_called_although_it_answers_late(busy_server: rclpy.node.Node) -> None:
    with BackgroundNode("operator", "/softform") as operator:
        assert call_service(operator, "busy", Trigger, "stop", Trigger.Request(), 10.0) is not None
