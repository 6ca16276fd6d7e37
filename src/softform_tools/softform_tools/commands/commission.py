"""`softform commission`: goes through a robot of which nothing is known yet, and keeps what was found."""

import os
import random
import signal
import sys
import termios
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from softform_core.errors import SoftformError
from softform_tools.commands.goals import EXIT_FAILED, EXIT_INTERRUPTED, PATIENCE

if TYPE_CHECKING:  # commands are listed without ROS
    from rclpy.node import Node

    from softform_core.robots import Robot
    from softform_tools.commission import Finding
    from softform_tools.commission_steps import Stepper

NONE, AGAIN, STOP, YES, NO = "none", "again", "stop", "yes", "no"
_CALIBRATION_SECONDS = 60.0


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
    """Find out whether a running robot is what its description says: ports, offsets, tubes, leaks, scanner, a shape.

    Each step takes one of ACTUATORS (all by default) to a share of its range, and back to safe, where the driver must
    measure it at rest before the next. A person is asked which one moved, in random order and without being told which
    one should; a scanner compares with what the simulation predicts. Where all are asked, the sensors' offsets are
    measured before, and all move together after, unless they pull against each other. If it takes motion to measure
    offsets, as of tendons, a person is asked first. Exits with 0 if all is well, with 1 if not, and with 130 after
    Ctrl-C or the answer `stop`; the robot is vented then.
    """
    from softform_ros.background_node import BackgroundNode
    from softform_tools.commission import layout
    from softform_tools.commission_steps import Stepper

    by = by or ("person" if sys.stdin.isatty() else "scanner")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with BackgroundNode(f"commission_{os.getpid()}", namespace) as node:
        robot, adapters, ports = _driven(node)
        if unknown := set(actuators) - set(robot.actuators):
            raise SoftformError(
                f"'{robot.name}' has no {', '.join(sorted(unknown))}.", f"It has {', '.join(robot.actuators)}."
            )
        names = [name for name in robot.actuators if not actuators or name in actuators]
        is_whole = len(names) == len(robot.actuators)
        stepper = Stepper(node, robot)
        try:
            stepper.wait_at_rest()
            click.echo("\n".join([*ports, layout(robot)]))
            offsets = _offsets(node, stepper, _moved_by_calibration(robot), by) if is_whole else ""
            ask = _by_person if by == "person" else _by_scanner
            found = ask(stepper, robot, names, share)
        except (KeyboardInterrupt, click.Abort):
            _end(stepper, "Ended; nothing is kept.", EXIT_INTERRUPTED)
        except SoftformError as error:
            _end(stepper, f"Commissioning ended: {error}", EXIT_FAILED)
        finally:
            stepper.lease.close()
    _tell(robot, adapters, by, share, offsets, found, stepper.leaks, names)


def _tell(
    robot: "Robot",
    adapters: list[str],
    by: str,
    share: float,
    offsets: str,
    found: "_Found",
    leaks: dict[str, str],
    names: list[str],
) -> None:
    """Keep what was found and say it; exits if something is wrong."""
    from softform_actuation.commissioned import Commissioned, keep
    from softform_tools.commission import complaints, leak_complaints

    wrong = [*complaints(found.findings, robot), *leak_complaints(leaks, robot), *found.wrong]
    record = Commissioned(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        robot=robot.name,
        command_fingerprint=robot.command_fingerprint(),
        by=by,
        share=share,
        confirmed=not wrong and {one.asked for one in found.findings} == set(robot.actuators),
        seen={one.asked: list(one.seen) for one in found.findings},
        offsets=offsets,
        leaks=leaks,
        rest_mm=found.rest_mm,
        shape_mm=found.shape_mm,
        wrong=wrong,
    )
    if wrong or record.confirmed:
        click.echo(f"Kept in {', '.join(keep(record, adapters))}.")
    if wrong:
        click.echo("\n".join([*wrong, "Correct tubes or description, then commission again."]), err=True)
        sys.exit(EXIT_FAILED)
    click.echo(f"Each of {', '.join(names)} moved alone when it was asked.")


class _Found(NamedTuple):
    """Outcome of the steps: which moved at each, what else is wrong, and distances of scans, mm."""

    findings: "list[Finding]"
    wrong: list[str]
    rest_mm: float | None = None
    shape_mm: float | None = None


def _moved_by_calibration(robot: "Robot") -> list[str]:
    """Return the actuators that move while the driver calibrates."""
    from softform_actuation.assembly import device_family

    return [
        name
        for device in robot.devices
        if device_family(device.kind).calibration_moves
        for name in robot.actuators_on(device)
    ]


def _offsets(node: "Node", stepper: "Stepper", moved: list[str], by: str) -> str:
    """Have the driver measure its sensors at rest, and once a person allows it also those that move; what it found."""
    from softform_ros.service_calls import call_driver

    if moved and by != "person":
        raise SoftformError(
            f"Calibration moves {', '.join(moved)} all at once, and nobody is asked.", "Choose --by person."
        )
    if moved:
        _entered(stepper, f"Calibration moves {', '.join(moved)} all at once: keep clear and press Enter")
    click.echo("calibrating" if moved else "measuring the sensors at rest")
    answer = call_driver(node, "calibrate", _CALIBRATION_SECONDS)
    if answer is None or not answer.success:
        why = "The driver did not answer." if answer is None else answer.message
        raise SoftformError(f"The sensors' offsets were not measured: {why}", "See ./softform status.")
    stepper.wait_at_rest()
    stepper.wait_until_measured()
    if answer.message:
        click.echo(answer.message)
    return str(answer.message)


def _by_person(stepper: "Stepper", robot: "Robot", names: list[str], share: float) -> _Found:
    from softform_tools.commission import Finding, all_together, base_and_steps

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
    together = all_together(robot, base, steps)
    while len(names) == len(robot.actuators) and together is not None:
        epoch = _entered(stepper, "All together: press Enter and watch the robot")
        stepper.step(together, base, epoch, stepper.hold)
        stepper.wait_at_rest()
        word = _asked("Did it take the shape that it should?", [YES, NO, AGAIN, STOP])
        if word != AGAIN:
            return _Found(findings, ["All together did not take the shape that they should."] if word == NO else [])
    return _Found(findings, [])


def _asked(text: str, words: list[str]) -> str:
    """Return one of some words, as a person answers."""
    while (word := click.prompt(f"{text} [{'/'.join(words)}]").strip()) not in words:
        click.echo("Answer one of these words.")
    if word == STOP:
        raise click.Abort
    return word


def _entered(stepper: "Stepper", text: str) -> int:
    """Return the driver's epoch when Enter was pressed in it; earlier input is dropped."""
    from softform_tools.commission_steps import BEAT_SECONDS

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


def _by_scanner(stepper: "Stepper", robot: "Robot", names: list[str], share: float) -> _Found:
    from softform_tools.commission import UNCLEAR, Finding, SurfaceSteps, all_together, base_and_steps, shape_complaint

    base, steps = base_and_steps(robot, share)
    surface, findings, epoch = SurfaceSteps(robot, base, steps), [], stepper.lease.epoch
    rest = stepper.rest_cloud()
    rest_mm = surface.check_registered(rest)
    click.echo(f"the scan at rest lies {rest_mm:.2f} mm from the predicted rest (median)")
    for name in names:
        stepper.wait_at_rest()
        rest = stepper.rest_cloud()
        step = stepper.step(steps[robot.actuators.index(name)], base, epoch, stepper.cloud)
        moved = surface.moved(rest, step)
        seen = (UNCLEAR,) if moved is None else tuple(robot.actuators[one] for one in moved)
        click.echo(f"{name} was asked, {' and '.join(seen) or 'nothing'} moved")
        findings.append(Finding(name, seen))
    stepper.wait_at_rest()
    if len(names) < len(robot.actuators):
        return _Found(findings, [], rest_mm)
    rest = stepper.rest_cloud()
    together = all_together(robot, base, steps)
    assert together is not None  # or `SurfaceSteps` had raised
    step = stepper.step(together, base, epoch, stepper.cloud)
    error_mm, moved_mm = surface.shape_errors(rest, step)
    click.echo(f"all together moved the surface by {moved_mm:.2f} mm, {error_mm:.2f} mm otherwise than predicted")
    stepper.wait_at_rest()
    return _Found(findings, list(filter(None, [shape_complaint(error_mm, moved_mm)])), rest_mm, error_mm)


def _driven(node: "Node") -> "tuple[Robot, list[str], list[str]]":
    """Return the robot that the driver drives, the adapter of each of its devices, and a line on each port.

    Raises:
        SoftformError: If the driver does not answer, or its description is not on this machine.
    """
    from softform_actuation.assembly import adapters_of, parameters_of, ports_of
    from softform_core.robots import load_robot

    robot = load_robot(_parameters(node, ["robot"])["robot"]).in_namespace(node.get_namespace())
    values = _parameters(node, [row.name for row in parameters_of(robot)])
    adapters = adapters_of(values, robot)
    lines = [
        f"{device.name}: {device.kind} on {port} ({adapter}), "
        + ", ".join(
            f"{name} {channel}" for name, channel in zip(robot.actuators_on(device), device.channels, strict=True)
        )
        for device, port, adapter in zip(robot.devices, ports_of(values, robot), adapters, strict=True)
    ]
    return robot, adapters, lines


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
