"""`softform replay`: a recording, as if the robot were there."""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

import click

from softform_core.errors import SoftformError
from softform_core.text import LONGEST_MESSAGE, printable


@click.command()
@click.argument("bag", type=click.Path(path_type=Path))
@click.option("--rate", default=1.0, show_default=True, type=click.FloatRange(0.01, 100.0), help="Times as fast.")
@click.option("--loop", is_flag=True, help="Begin anew at its end, until Ctrl-C.")
@click.option(
    "--topics", multiple=True, metavar="NAME", help="One to replay, several times.  [default: all that may be]"
)
@click.option("--commands", is_flag=True, help="Replay commands of actuators, stops and actions, too.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as one JSON object.")
def replay(bag: Path, rate: float, loop: bool, topics: tuple[str, ...], commands: bool, as_json: bool) -> None:
    """Replay the recording BAG, a folder or file: predictor and console see it exactly as they saw the robot.

    Topics, types, quality of service, header stamps, order and intervals are those of the recording. A recording that
    went on in BAG_2, BAG_3, … is replayed to its end; an .mcap file alone. Nothing in them is written. A topic that a
    node here publishes itself is left out.

    Nothing is replayed beside a driver, whatever its state, and a replay ends when one comes: no recorded value
    shall be taken for a live one. Commands are replayed only with --commands.

    \b
    Examples:
      ./softform launch replay                  in another terminal: the predictor without devices
      ./softform replay runs/live/bags/2026-01-31-12-00-00
      ./softform replay walk --rate 2 --loop
      ./softform replay walk --topics actuator_state --topics driver_state
    """  # noqa: D301 - click reads the escape as "keep these lines"
    from softform_recording.bag_reading import bag_parts
    from softform_recording.record import stop_requests
    from softform_recording.replay import Player, check_no_driver, is_published_elsewhere
    from softform_recording.replayed_topics import OpenRecording
    from softform_ros.background_node import BackgroundNode
    from softform_ros.discovery import await_discovery

    def show(seconds: float, count: int) -> None:
        if sys.stderr.isatty():
            click.echo(f"\r{seconds:8.1f} of {recording.seconds:.1f} s  {count:8d} messages ", nl=False, err=True)

    def leave(topic: str) -> None:
        click.echo(f"  {printable(topic)} is left out from here on: a node has come that publishes it", err=True)

    with stop_requests() as stopped, OpenRecording(bag_parts(bag)) as recording:
        chosen = recording.topics(topics, commands)
        with BackgroundNode(f"replay_{os.getpid()}", "") as node:
            await_discovery(node)
            check_no_driver(node)
            if not topics:
                elsewhere = [topic.name for topic in chosen if is_published_elsewhere(node, topic.name)]
                recording.left_out |= dict.fromkeys(elsewhere, "a node that runs publishes it")
                chosen = [topic for topic in chosen if topic.name not in recording.left_out]
            for topic, reason in sorted(recording.left_out.items()):
                click.echo(printable(f"  {topic} is left out: {reason}", LONGEST_MESSAGE, lines=True), err=True)
            if not any(topic.messages for topic in chosen):
                raise SoftformError(f"There is nothing to replay in {bag}.", "See why topics are left out above.")
            player = Player(node, chosen, None if topics else leave)
            replayed = player.play(recording.messages(chosen), rate, stopped, show)
            while loop and replayed.finished:
                replayed = player.play(recording.messages(chosen), rate, stopped, show)
    if as_json:
        click.echo(json.dumps({"topics": [topic.name for topic in chosen], **asdict(replayed)}))
        return
    end = "to its end" if replayed.finished else "until it was stopped"
    click.echo(
        f"{replayed.messages} messages of {len(chosen)} topics were replayed {end}; the latest came "
        f"{1e3 * replayed.latest:.1f} ms late."
    )
