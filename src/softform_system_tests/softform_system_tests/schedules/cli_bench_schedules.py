"""Command `softform bench schedules`."""

import sys

import click

from softform_core.cli.shared import json_option, report_figures


@click.command()
@click.option(
    "--seeds", type=click.IntRange(min=1), default=10_000, show_default=True, help="How many schedules to run."
)
@click.option("--first", type=click.IntRange(min=0), default=0, show_default=True, help="First seed.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes.  [default: one for each core]")
@json_option
def schedules(seeds: int, first: int, jobs: int | None, json_path: str | None) -> None:
    """Run the driver among commanders, an operator and their queues in virtual time, and freeze, kill, drop and delay.

    Each seed is one schedule: goals, stops, resets and restarts around one moment, and up to three faults, at any wait
    of any process or at any message. The real driver, lease, guardian's rules and commanders run in one process; the
    same seed always runs the same way. What is promised whatever happens is looked at by the true pressures
    (docs/safety.md). The shortest schedule that breaks a promise is printed. 10 000 schedules take about a minute on
    two cores.

    \b
    Examples:
      ./softform bench schedules --seeds 10000 --json -
      ./softform bench schedules --seeds 1 --first 8737
    """  # noqa: D301
    from softform_core.workers import default_jobs
    from softform_system_tests.schedules.explore import explore

    figures = explore(range(first, first + seeds), jobs or default_jobs())
    if (failure := figures["shortest_failure"]) is not None:
        click.echo("\n".join([f"seed {failure['seed']}:", *failure["items"], *failure["breaks"]]), err=True)
    report_figures(figures, json_path)
    if figures["violations"]:
        sys.exit(1)
