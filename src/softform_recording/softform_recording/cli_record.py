"""`softform record`: topics of a running stack into a bag."""

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from softform_core.errors import SoftformError
from softform_core.paths import config_dir

if TYPE_CHECKING:
    from softform_recording.topic_recorder import RecordingCounts

_TELL_PERIOD = 1.0


@click.command()
@click.option(
    "--topics", multiple=True, metavar="NAME", help="One to record, several times.  [default: as a launch does]"
)
@click.option("--duration", type=click.FloatRange(min=0.1), help="Seconds; by default until Ctrl-C.")
@click.option("--output", type=click.Path(path_type=Path), help="Bag folder.  [default: runs/bags/DATE-TIME]")
@click.option("--largest-bag", default=1024, show_default=True, type=click.IntRange(min=0), help="MB; then a new one.")
@click.option("--longest-bag", default=0.0, type=click.FloatRange(min=0.0), help="Seconds; then a new one.")
@click.option("--namespace", default="softform", show_default=True, help="Where the stack runs.")
@click.option(
    "--salvage",
    "broken",
    type=click.Path(exists=True, path_type=Path),
    metavar="BAG",
    help="Record nothing; put what is whole of a damaged bag, or of one left open by a crash, into a new one.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as one JSON object.")
def record(
    topics: tuple[str, ...],
    duration: float | None,
    output: Path | None,
    largest_bag: int,
    longest_bag: float,
    namespace: str,
    broken: Path | None,
    as_json: bool,
) -> None:
    """Record topics of the stack that runs into an MCAP bag.

    Quality of service and type hashes are kept, so that `./softform replay`, `ros2 bag play` and Foxglove read it.
    The bag is closed however the recording ends; after `kill -9` or a power cut --salvage puts all but the last second
    into a new bag. Every message is counted: the command fails if one that was published is not in the bag.

    \b
    Examples:
      ./softform record                               what a launch with record:=true records
      ./softform record --duration 60 --output walk
      ./softform record --topics actuator_state --topics /diagnostics
      ./softform record --salvage runs/bags/2026-01-31-12-00-00
    """  # noqa: D301 - click reads the escape as "keep these lines"
    from softform_core.run_folder import free_bag_folder

    if broken is not None:
        from softform_recording.salvage import salvage_bag

        if topics or duration is not None:
            raise SoftformError("--salvage records nothing.", "Leave --topics and --duration out.")
        folder = output or free_bag_folder()
        count, left_out = salvage_bag(broken, folder)
        if as_json:
            click.echo(json.dumps({"bag": str(folder), "messages": count, "left_out": left_out}))
        else:
            click.echo(f"{folder} holds {count} messages; left out: {', '.join(left_out) or 'nothing'}.")
        return
    from softform_recording.record import background_recording, stop_requests

    folder = output or free_bag_folder()
    click.echo(f"recording into {folder}; Ctrl-C ends it", err=True)
    began = time.monotonic()
    chosen = topics or default_topics()
    with (
        stop_requests() as stopped,
        background_recording(chosen, folder, namespace, largest_bag * 1_000_000, longest_bag) as recorder,
    ):
        while not (stopped.is_set() or recorder.counts.failure):
            left = _TELL_PERIOD if duration is None else duration - (time.monotonic() - began)
            if left <= 0.0:
                break
            stopped.wait(min(left, _TELL_PERIOD))
            if sys.stderr.isatty():
                _show_counts(time.monotonic() - began, recorder.counts)
    seconds, counts = time.monotonic() - began, recorder.counts
    not_recorded = [f"{topic} was not recorded: {reason}" for topic, reason in recorder.rejected.items()]
    missing = "; ".join(part for part in (counts.shortcomings, *not_recorded) if part)
    bags = [str(one) for one in recorder.folders]
    if as_json:
        figures = {"bags": bags, "seconds": round(seconds, 1)}
        click.echo(json.dumps(figures | asdict(counts) | {"rejected": recorder.rejected}))
    else:
        click.echo(
            f"{counts.written} messages of {counts.topics} topics in {seconds:.1f} s are in {', '.join(bags)}; "
            f"{missing or 'none is missing'}."
        )
        if recorder.awaited:
            click.echo(f"  no publisher of {', '.join(sorted(recorder.awaited))}")
    if not counts.received and not missing:
        raise SoftformError(f"No message came in namespace {namespace}.", "See what runs: ./softform status")
    if missing:
        raise SoftformError(f"The recording is not complete: {missing}.", "What was written can be read.")


def _show_counts(seconds: float, counts: "RecordingCounts") -> None:
    missing = counts.dropped + counts.lost
    text = f"\r{seconds:8.1f} s  {counts.topics:3d} topics  {counts.written:8d} messages  {missing} missing "
    click.echo(click.style(text, fg="red" if missing else None), nl=False, err=True)


def default_topics() -> list[str]:
    """Return the topics that a launched stack records."""
    from softform_core.yaml_files import read_yaml

    settings = read_yaml(config_dir() / "nodes" / "bag_recorder.yaml")
    return [str(topic) for topic in settings["/**"]["ros__parameters"]["topics"]]
