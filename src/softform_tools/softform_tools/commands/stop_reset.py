"""`softform stop` and `softform reset`: the driver's own services from a terminal."""

import os
import sys

import click

from softform_core.errors import SoftformError
from softform_core.text import LONGEST_MESSAGE, printable
from softform_tools.commands.goals import EXIT_FAILED, PATIENCE

_NAMESPACE = click.option("--namespace", default="softform", show_default=True, help="Where the stack runs.")


@click.command()
@_NAMESPACE
def stop(namespace: str) -> None:
    """Stop the robot of a running stack at once: its driver makes every actuator safe, as by venting all chambers.

    Whatever runs ends with an error, and the driver latches: nothing moves before `softform reset`. It says "measured
    at rest" once every actuator was measured so, and exits with 0. Exits with 1 if one is not, or is not known to be,
    with 2 if the driver does not answer: then open the manual vent valve.
    """
    _call("stop", namespace)


@click.command()
@_NAMESPACE
def reset(namespace: str) -> None:
    """Let the robot of a running stack be commanded again, after a stop or a fault whose cause is removed.

    It clears the faults that the driver tells when it is called, and names them; a later one is not cleared. Nothing
    moves by itself: what was held before is forgotten. Exits with 1 if the driver rejects the reset, with its reason,
    and with 2 if it does not answer.
    """
    _call("reset", namespace)


def _call(service: str, namespace: str) -> None:
    from softform_ros.background_node import BackgroundNode
    from softform_ros.service_calls import call_driver

    with BackgroundNode(f"{service}_{os.getpid()}", namespace) as node:
        answer = call_driver(node, service, PATIENCE)
    if answer is None:
        raise SoftformError(
            f"No driver in /{namespace.strip('/')} answered '{service}' within {PATIENCE:g} s.",
            "Check that the stack runs, the namespace and ROS_DOMAIN_ID; to be safe, open the manual vent valve.",
        )
    click.echo(printable(answer.message, LONGEST_MESSAGE, lines=True), err=not answer.success)
    if not answer.success:
        sys.exit(EXIT_FAILED)
