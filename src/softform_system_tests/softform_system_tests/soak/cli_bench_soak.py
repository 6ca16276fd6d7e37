"""Command `softform bench soak`."""

import sys

import click

from softform_core.cli.shared import json_option, report_figures

_LONGEST_PERIOD_MS = 25.0  # at the 99th percentile


@click.command()
@click.option("--minutes", type=click.FloatRange(min=0.5), default=5.0, show_default=True, help="How long.")
@json_option
def soak(minutes: float, json_path: str | None) -> None:
    """Run the whole stack for long, commanded at 50 Hz and recorded: leaks, punctuality, messages that are lost.

    For each node a line is fitted through its memory, threads and file descriptors; it grows if the line rises by more
    than three times the noise around it.

    \b
    Examples:
      ./softform bench soak --minutes 60 --json -
      ./softform bench soak --minutes 5
    """  # noqa: D301
    from softform_core.run_folder import new_run_folder
    from softform_system_tests.soak.soak import soak as soak_stack

    folder = new_run_folder("bench-soak")
    figures = soak_stack(minutes, folder, lambda line: click.echo(line, err=True))
    report_figures({**figures, "folder": str(folder)}, json_path)
    recorder = figures["recorder"]
    assert isinstance(recorder, dict)
    missing = recorder["dropped"] or recorder["lost_before_arrival"] or recorder["unreadable"]
    period = figures["command_period_ms"]
    assert isinstance(period, dict)
    if figures["growing"] or missing or period["p99"] > _LONGEST_PERIOD_MS:
        sys.exit(1)
