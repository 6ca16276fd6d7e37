"""`softform status`: one screen of the whole stack's health."""

import json
import os
import shutil
import sys
import time

import click

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
    from softform_tools.status.screen import screen
    from softform_tools.status.stack_status import made_printable, nothing_runs

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
