"""`softform release`, `stop` and `reset`: services of a running stack from a terminal."""

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from softform_core.errors import SoftformError
from softform_core.text import LONGEST_MESSAGE, printable
from softform_tools.commands.goals import EXIT_FAILED, PATIENCE, told_if_long

if TYPE_CHECKING:  # commands are listed without ROS
    from rclpy.node import Node

_NAMESPACE = click.option("--namespace", default="softform", show_default=True, help="Where the stack runs.")


@click.command()
@_NAMESPACE
def stop(namespace: str) -> None:
    """Stop the robot of a running stack at once: its driver makes every actuator safe, as by venting all chambers.

    Whatever runs ends with an error, and the driver latches: nothing moves before `./softform reset`. It says "measured
    at rest" once every actuator was measured so, and exits with 0. Exits with 1 if one is not, or is not known to be,
    with 2 if the driver does not answer: then open the manual vent valve.
    """
    from softform_ros.service_calls import call_driver

    _call("stop", namespace, "driver", lambda node: call_driver(node, "stop", PATIENCE))


@click.command()
@_NAMESPACE
def reset(namespace: str) -> None:
    """Let the robot of a running stack be commanded again, after a stop or a fault whose cause is removed.

    It clears the faults that the driver tells when it is called, and names them; a later one is not cleared. Nothing
    moves by itself: what was held before is forgotten. Exits with 1 if the driver rejects the reset, with its reason,
    and with 2 if it does not answer.
    """
    from softform_ros.service_calls import call_driver

    _call("reset", namespace, "driver", lambda node: call_driver(node, "reset", PATIENCE))


@click.command()
@_NAMESPACE
def release(namespace: str) -> None:
    """Let go of the shape that the robot of a running stack holds: its driver vents it, or makes it safe otherwise.

    Nothing latches: the next goal may move the robot at once, and others may command it. Only what `reach`, `follow`
    and `stream` left is let go. Exits with 2 if the stack does not answer.
    """
    from std_srvs.srv import Trigger

    from softform_ros.service_calls import call_service

    server, request = "inverse_kinematics", Trigger.Request()
    _call("release", namespace, server, lambda node: call_service(node, server, Trigger, "release", request, PATIENCE))


def _call(service: str, namespace: str, server: str, call: Callable[["Node"], Any]) -> None:
    from softform_ros.background_node import BackgroundNode, full_namespace

    space = full_namespace(namespace)
    waiting = told_if_long(f"waiting up to {PATIENCE:g} s for what the {server} in {space} says of '{service}'")
    with BackgroundNode(f"{service}_{os.getpid()}", namespace) as node, waiting:
        answer = call(node)
    if answer is None:
        raise SoftformError(
            f"No {server} in {space} answered '{service}' within {PATIENCE:g} s.",
            "Check that the stack runs, the namespace and ROS_DOMAIN_ID; to be safe, open the manual vent valve.",
        )
    click.echo(printable(answer.message, LONGEST_MESSAGE, lines=True), err=not answer.success)
    if not answer.success:
        sys.exit(EXIT_FAILED)
