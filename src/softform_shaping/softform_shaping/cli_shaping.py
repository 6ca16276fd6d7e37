"""Command `softform bench shaping`."""

from pathlib import Path

import click

from softform_core.cli.shared import json_option, report_figures

_PARTS = ("tasks", "dlo", "stress", "variance", "samples", "material", "fitness", "meshes")


@click.command()
@click.option("--only", "parts", multiple=True, type=click.Choice(_PARTS), help="Parts of it.  [default: all]")
@click.option("--task", "names", multiple=True, metavar="NAME", help="One of the tasks.  [default: all eleven]")
@click.option("--seeds", type=click.IntRange(min=1), default=10, show_default=True, help="Drawn rigs for each.")
@click.option("--seed", "first", type=click.IntRange(min=0), default=0, show_default=True, help="The first of them.")
@click.option(
    "--printed-seeds", type=click.IntRange(min=1), help="Of these, for the printed controller.  [default: all]"
)
@click.option("--jobs", type=click.IntRange(min=1), help="Processes.  [default: one for each core]")
@click.option("--ledger", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
              help="Keeps each run of a task, so that what was cut off goes on, and more seeds are added.")  # fmt: skip
@json_option
def shaping(
    parts: tuple[str, ...],
    names: tuple[str, ...],
    seeds: int,
    first: int,
    printed_seeds: int | None,
    jobs: int | None,
    ledger: Path | None,
    json_path: str | None,
) -> None:
    """Two grippers shape soft objects: paper 003's controller as printed beside ours, judged by the true object.

    The true object has another mesh, material and weight than the model, the camera is a little off, and its pictures
    have noise and holes. Besides the `tasks`: linear objects measured from a picture (`dlo`, Table 1), the number of
    `samples` (Table 2), the `variance` of features (Table 3), the `stress` guard on PLA (Figs. 21-22), and what shapes
    depend on: `material` (Fig. 4), the threshold of `fitness` (Fig. 20), `meshes` (Fig. 25). It takes long; `--only`,
    `--task` and `--seeds` make it short.

    \b
    Examples:
      ./softform bench shaping --json shaping.json --ledger shaping.jsonl
      ./softform bench shaping --only tasks --task sponge_1 --seeds 2
    """  # noqa: D301
    from softform_core.executors import make_executor
    from softform_core.kept import Ledger
    from softform_shaping.bench import shaping as run
    from softform_shaping.studies import STUDIES
    from softform_shaping.tasks import TASKS

    def say(line: str) -> None:
        click.echo(line, err=True)

    chosen, rigs = parts or _PARTS, range(first, first + seeds)
    figures: dict[str, object] = {}
    if "tasks" in chosen:
        kept = None if ledger is None else Ledger(ledger)
        figures = run(list(dict.fromkeys(names)) or list(TASKS), rigs, make_executor(jobs), say, kept, printed_seeds)
    for part in (part for part in _PARTS[1:] if part in chosen):
        figures[part] = STUDIES[part](rigs, say)
    report_figures(figures, json_path)
