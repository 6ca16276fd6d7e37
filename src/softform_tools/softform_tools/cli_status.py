"""`softform status`: one screen of the whole stack's health."""

import json
import os
import shutil
import sys
import textwrap
import time

import click

from softform_tools.status.stack_status import (
    ACTIVE,
    LEAST_FREE,
    UNMANAGED,
    ActuatorRest,
    DriverStatus,
    NodeStatus,
    StackStatus,
    TopicStatus,
    made_printable,
    nothing_runs,
)

_COLOURS = {"OK": "green", "WARN": "yellow", "ERROR": "red", "STALE": "red", "": None}
_MESSAGE_AT = 44  # column
_DRIVER_COLOURS = {"safe": "green", "running": "cyan", "holding": "yellow", "making safe": "yellow"}


def screen(status: StackStatus, width: int) -> str:
    """Return the status in lines of at most `width` characters, in colours."""
    lines = [_headline(status)]
    if status.driver is not None and status.driver.state == "fault" and status.driver.unsafe:
        loud = f" KEEP AWAY, THE ROBOT IS NOT KNOWN TO BE SAFE: {status.driver.unsafe} "
        lines += [click.style(line, fg="white", bg="red", bold=True) for line in textwrap.wrap(loud, max(20, width))]
    lines += [*_devices(status), ""]
    lines.append(_cut(f"  {'node':<20} {'state':<13} health", width))
    lines += [_node_line(node, width) for node in status.nodes]
    lines += ["", _cut(f"  {'topic':<30} {'Hz':>8}  last message", width)]
    lines += [_topic_line(topic, width) for topic in status.topics]
    lines.append("")
    lines += [click.style(_wrapped(f"! {trouble}", width, 2), fg="red") for trouble in status.troubles]
    warned = ", ".join(node.name for node in status.nodes if node.level == "WARN")
    if warned and not status.troubles:
        lines.append(click.style(_wrapped(f"no trouble, but warnings of {warned}", width, 2), fg="yellow"))
    elif not status.troubles and not status.bringup:
        lines.append(click.style("no trouble, but no bring-up manager watches over the nodes", fg="yellow"))
    elif not status.troubles:
        lines.append(click.style("all is well", fg="green"))
    return "\n".join(lines)


def _headline(status: StackStatus) -> str:
    state = status.bringup or "without a bring-up manager"
    colour = "green" if status.bringup == ACTIVE else "yellow"
    name = click.style(status.namespace, bold=True)
    return f"{name} in ROS_DOMAIN_ID {status.domain}: {click.style(state, fg=colour)}"


def _devices(status: StackStatus) -> list[str]:
    lines = []
    if status.driver is None:
        lines.append("  driver    no state received")
    else:
        state = click.style(status.driver.state, fg=_DRIVER_COLOURS.get(status.driver.state, "red"))
        reason = f": {status.driver.reason}" if status.driver.reason else ""
        lines.append(f"  driver    {state}{reason}")
        lines += [click.style(f"  fault     {fault}", fg="red") for fault in status.driver.faults]
        if status.driver.state == "fault":
            lines.append(f"            it takes no command until you call {status.namespace}/reset")
        if status.driver.state == "holding":
            lines.append("            motors hold the robot under power: it is not safe to touch")
        lines += [click.style(f"  warning   {warning}", fg="yellow") for warning in status.driver.warnings]
        lines += _rest(status.driver)
        lines.append(f"  lease     {status.driver.lease}")
        if status.driver.past_known is False:
            lines.append("  past      not known since the driver began; for a body that remembers: ./softform home")
    lines += [
        f"  held      {node} has held its shape for {text} s without renewal" for node, text in status.held.items()
    ]
    lines += [f"  {name:<9} {text}" for name, text in status.motors.items()]
    models = ", ".join(sorted(set(status.models.values()))) or "unknown"
    fingerprint = f" ({status.driver.fingerprint})" if status.driver is not None and status.driver.fingerprint else ""
    lines.append(f"  robot     {', '.join(status.robots) or 'unknown'}{fingerprint}; sim-to-real model: {models}")
    for one in status.recorders:
        missing = click.style(f"{one.missing} missing", fg="red") if one.missing else "none missing"
        lines.append(f"  recorder  {one.messages} messages, {missing}, into {one.bag}")
    if not status.recorders:
        lines.append("  recorder  nothing is recorded (./softform record)")
    for disk in status.disks:
        free = click.style(f"{disk.free / 1e9:.1f} GB", fg="red" if disk.free < LEAST_FREE else None)
        lines.append(f"  disk      {free} left for {disk.folder}")
    return lines


def _rest(driver: DriverStatus) -> list[str]:
    """Return one line for all actuators that are equally safe."""
    if driver.state == "running":
        return []
    alike: dict[str, list[ActuatorRest]] = {}
    for one in driver.actuators:
        alike.setdefault(one.words, []).append(one)
    return [
        click.style(
            f"  {', '.join(one.name if one.at_rest else f'{one.name} ({one.measured})' for one in group)}: {words}",
            fg="green" if group[0].at_rest else "red",
        )
        for words, group in alike.items()
    ]


def _node_line(node: NodeStatus, width: int) -> str:
    state = node.state if node.state != UNMANAGED else "-"
    level = click.style(f"{node.level or '-':<6}", fg=_COLOURS[node.level])
    text = f"  {node.name:<20} {click.style(f'{state:<13}', fg='red' if node.trouble else None)} {level}"
    return f"{text} {_wrapped(_MESSAGE_AT * ' ' + node.message, width, _MESSAGE_AT).lstrip()}".rstrip()


def _topic_line(topic: TopicStatus, width: int) -> str:
    rate = f"{topic.rate:8.1f}" if topic.rate else f"{'-':>8}"
    return _cut(f"  {topic.name:<30} {rate}  {_age(topic.age)}", width)


def _age(seconds: float | None) -> str:
    if seconds is None:
        return "none yet"
    if seconds < 1.0:
        return f"{1e3 * seconds:.0f} ms ago"
    if seconds < 120.0:
        return f"{seconds:.1f} s ago"
    return f"{seconds / 60.0:.0f} min ago"


def _wrapped(text: str, width: int, indent: int) -> str:
    """Return the whole text in lines, those after the first indented: its end says what to do."""
    return textwrap.fill(text, max(width, indent + 20), subsequent_indent=" " * indent)


def _cut(text: str, width: int) -> str:
    text = " ".join(text.splitlines())
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


LISTENING_SECONDS = 2.5
"""Time of listening after discovery, s, in which every node reports its health at least twice."""

_WATCH_PERIOD = 1.0
_CLEAR = "\x1b[H\x1b[J"


@click.command()
@click.option("--namespace", default="softform", show_default=True, help="Where the stack runs.")
@click.option("--watch", is_flag=True, help="Show it once a second, until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead; with --watch one a line.")
def status(namespace: str, watch: bool, as_json: bool) -> None:
    """Show the health of the stack that runs: nodes, driver, topics, robot, models, recorder, disk.

    It only listens, and sees every stack of its ROS_DOMAIN_ID, whoever started it. It takes about four seconds, in
    which rates are measured. Exits with 1 if something is wrong, with 2 if nothing runs.

    \b
    Examples:
      ./softform status
      ./softform status --watch
      ./softform status --json | jq .troubles
    """  # noqa: D301 - click reads the escape as "keep these lines"
    from softform_launch.ros_domains import domains_of_stacks
    from softform_ros.background_node import BackgroundNode, full_namespace
    from softform_ros.discovery import await_discovery
    from softform_tools.status.observer import StackObserver

    if sys.stderr.isatty():
        click.echo("listening for a few seconds …", err=True)
    space = full_namespace(namespace)
    with BackgroundNode(f"status_{os.getpid()}", "") as node:
        observer = StackObserver(node, space)
        await_discovery(node, is_complete=lambda: space in observer.namespaces())
        domain = observer.status().domain
        if space not in observer.namespaces():
            others = [domain_of_stack for domain_of_stack in domains_of_stacks() if domain_of_stack != domain]
            raise nothing_runs(space, domain, made_printable(tuple(observer.namespaces())), others)
        time.sleep(LISTENING_SECONDS)
        while True:
            seen = observer.status()
            if as_json:
                click.echo(json.dumps(seen.as_dict(), indent=None if watch else 2))
            else:
                click.echo(
                    (_CLEAR if watch and sys.stdout.isatty() else "") + screen(seen, shutil.get_terminal_size().columns)
                )
            if not watch:
                break
            try:
                time.sleep(_WATCH_PERIOD)
            except KeyboardInterrupt:
                break
    sys.exit(1 if seen.troubles and not watch else 0)
