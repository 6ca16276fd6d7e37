"""Command `softform bench shaping`."""

import click

from softform_core.cli.shared import json_option, report_figures


@click.command()
@click.option("--task", "names", multiple=True, metavar="NAME", help="One of the tasks.  [default: all eleven]")
@click.option("--seeds", type=click.IntRange(min=1), default=10, show_default=True, help="Drawn rigs for each.")
@click.option("--seed", "first", type=click.IntRange(min=0), default=0, show_default=True, help="The first of them.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes.  [default: one for each core]")
@json_option
def shaping(names: tuple[str, ...], seeds: int, first: int, jobs: int | None, json_path: str | None) -> None:
    """Two grippers shape soft objects: paper 003's controller as printed beside ours, judged by the true object.

    The true object has another mesh, material and weight than the model, the camera is a little off, and its pictures
    have noise and holes. It takes long; `--task` and `--seeds` make it short.

    \b
    Examples:
      ./softform bench shaping --json shaping.json
      ./softform bench shaping --task sponge_1 --seeds 2
    """  # noqa: D301
    from softform_core.executors import make_executor
    from softform_shaping.bench import shaping as run
    from softform_shaping.tasks import TASKS

    chosen = list(dict.fromkeys(names)) or list(TASKS)
    rigs = range(first, first + seeds)
    report_figures(run(chosen, rigs, make_executor(jobs), lambda line: click.echo(line, err=True)), json_path)
