"""`softform commission`: moves one actuator at a time, and has a person or a scanner tell which one moved."""

import os
import random
import signal
import sys
import termios
import time
from typing import TYPE_CHECKING, Any

import click

from softform_core.errors import SoftformError
from softform_tools.commands.goals import EXIT_FAILED, EXIT_INTERRUPTED, PATIENCE

if TYPE_CHECKING:  # commands are listed without ROS
    from rclpy.node import Node

    from softform_core.robots import Robot
    from softform_tools.commission import Finding, Stepper

NONE, AGAIN, STOP = "none", "again", "stop"


@click.command()
@click.argument("actuators", nargs=-1)
@click.option(
    "--by", type=click.Choice(["person", "scanner"]), help="Who tells what moved.  [default: person at a terminal]"
)
@click.option(
    "--share", type=click.FloatRange(0.02, 0.5), default=0.2, show_default=True, help="Of the range, for each step."
)
@click.option("--namespace", default="softform", show_default=True, help="Where the stack runs.")
def commission(actuators: tuple[str, ...], by: str | None, share: float, namespace: str) -> None:
    """Move one chamber or tendon of a running robot at a time, and find tubes that are swapped.

    Each step takes one of ACTUATORS (all by default) to a share of its range, and back to safe, where the driver must
    measure it at rest before the next. A person is asked which one moved, in random order and without being told which
    one should; a scanner compares with what the simulation predicts. Exits with 0 if each moved alone when it was
    asked, with 1 if not, and with 130 after Ctrl-C or the answer `stop`; the robot is vented then.
    """
    from softform_ros.background_node import BackgroundNode
    from softform_tools.commission import Stepper, complaints, keep, layout

    by = by or ("person" if sys.stdin.isatty() else "scanner")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with BackgroundNode(f"commission_{os.getpid()}", namespace) as node:
        robot, adapters = _driven(node)
        if unknown := set(actuators) - set(robot.actuators):
            raise SoftformError(
                f"'{robot.name}' has no {', '.join(sorted(unknown))}.", f"It has {', '.join(robot.actuators)}."
            )
        names = [name for name in robot.actuators if not actuators or name in actuators]
        stepper = Stepper(node, robot)
        try:
            stepper.wait_at_rest()
            click.echo(layout(robot))
            ask = _by_person if by == "person" else _by_scanner
            findings = ask(stepper, robot, names, share)
        except (KeyboardInterrupt, click.Abort):
            _end(stepper, "Ended; nothing is kept.", EXIT_INTERRUPTED)
        except SoftformError as error:
            _end(stepper, f"Commissioning ended: {error}", EXIT_FAILED)
        finally:
            stepper.lease.close()
    wrong = complaints(findings, robot)
    if wrong or len(findings) == len(robot.actuators):
        click.echo(f"Kept in {', '.join(keep(robot, adapters, by, share, findings))}.")
    if wrong:
        click.echo("\n".join([*wrong, "Correct tubes or description, then commission again."]), err=True)
        sys.exit(EXIT_FAILED)
    click.echo(f"Each of {', '.join(names)} moved alone when it was asked.")


def _by_person(stepper: "Stepper", robot: "Robot", names: list[str], share: float) -> "list[Finding]":
    from softform_tools.commission import Finding, base_and_steps

    base, steps = base_and_steps(robot, share)
    findings: list[Finding] = []
    left = random.sample(names, len(names))
    while left:
        epoch = _entered(stepper, f"{len(findings) + 1} of {len(names)}: press Enter and watch the robot")
        stepper.step(steps[robot.actuators.index(left[0])], base, epoch, stepper.hold)
        stepper.wait_at_rest()
        seen = _answer(robot)
        if seen is not None:
            findings.append(Finding(left.pop(0), seen))
    return findings


def _entered(stepper: "Stepper", text: str) -> int:
    """Return the driver's epoch when Enter was pressed in it; earlier input is dropped."""
    from softform_tools.commission import BEAT_SECONDS

    while True:
        before = stepper.lease.epoch, stepper.standstills
        if sys.stdin.isatty():
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
        if click.prompt(text, default="", show_default=False).strip() == STOP:
            raise click.Abort
        time.sleep(2.0 * BEAT_SECONDS)  # what happened meanwhile is told by then, also to a process that was stopped
        if before == (stepper.lease.epoch, stepper.standstills):
            return before[0]
        click.echo("The robot was stopped or reset meanwhile, or this program stood still. Look at the robot.")
        stepper.wait_at_rest()


def _answer(robot: "Robot") -> tuple[str, ...] | None:
    """Return what a person saw move, in the order of the actuators; None if it is to be shown again."""
    quantities = set(robot.actuator_quantities)
    what = {"pressure": "chamber", "displacement": "tendon"}.get("".join(quantities), "actuator")
    while True:
        words = click.prompt(f"Which {what} moved? [{'/'.join(robot.actuators)}/{NONE}/{AGAIN}/{STOP}]").split()
        if words == [STOP]:
            raise click.Abort
        if words in ([NONE], [AGAIN]):
            return () if words == [NONE] else None
        if words and set(words) <= set(robot.actuators):
            return tuple(name for name in robot.actuators if name in words)
        click.echo("Answer one of these words, or several names with spaces between them.")


def _by_scanner(stepper: "Stepper", robot: "Robot", names: list[str], share: float) -> "list[Finding]":
    from softform_tools.commission import UNCLEAR, Finding, SurfaceSteps, base_and_steps

    base, steps = base_and_steps(robot, share)
    surface, findings, epoch = SurfaceSteps(robot, base, steps), [], stepper.lease.epoch
    for name in names:
        stepper.wait_at_rest()
        rest = stepper.rest_cloud()
        step = stepper.step(steps[robot.actuators.index(name)], base, epoch, stepper.cloud)
        moved = surface.moved(rest, step)
        seen = (UNCLEAR,) if moved is None else tuple(robot.actuators[one] for one in moved)
        click.echo(f"{name} was asked, {' and '.join(seen) or 'nothing'} moved")
        findings.append(Finding(name, seen))
    stepper.wait_at_rest()
    return findings


def _driven(node: "Node") -> "tuple[Robot, list[str]]":
    """Return the robot that the driver drives, and the adapter that each of its devices is known by.

    Raises:
        SoftformError: If the driver does not answer, or its description is not on this machine.
    """
    from softform_actuation.assembly import device_family, parameters_of, ports_of
    from softform_core.robots import load_robot

    robot = load_robot(_parameters(node, ["robot"])["robot"]).in_namespace(node.get_namespace())
    values = _parameters(node, [row.name for row in parameters_of(robot)])
    ports = zip(robot.devices, ports_of(values, robot), strict=True)
    return robot, [device_family(device.kind).adapters({**values, "port": port})[-1] for device, port in ports]


def _parameters(node: "Node", names: list[str]) -> dict[str, Any]:
    from softform_ros.service_calls import asked_parameters

    values = asked_parameters(node, "actuation", names, PATIENCE)
    if values is None:
        raise SoftformError(
            f"No driver answered within {PATIENCE:g} s.", "Check that it runs, the namespace and ROS_DOMAIN_ID."
        )
    return values


def _end(stepper: "Stepper", why: str, code: int) -> None:
    """Give the lease up, tell how the robot is, and exit."""
    stepper.lease.release()
    try:
        stepper.wait_at_rest()
        rest = "The robot is measured at rest."
    except (SoftformError, KeyboardInterrupt) as error:
        rest = f"The robot is not known to be at rest: {error} If need be, open the manual vent valve."
    click.echo(f"{why} The lease is given up. {rest}", err=True)
    sys.exit(code)
