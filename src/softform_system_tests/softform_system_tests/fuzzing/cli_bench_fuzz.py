"""Command `softform bench fuzz`."""

import sys

import click

from softform_core.cli.shared import json_option, report_figures


@click.command()
@click.option("--inputs", type=click.IntRange(min=1), default=1_000_000, show_default=True, help="For all targets.")
@click.option("--only", multiple=True, metavar="TARGET", help="Fuzz this target alone; may be given several times.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of what is random.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes.  [default: one for each core]")
@json_option
def fuzz(inputs: int, only: tuple[str, ...], seed: int, jobs: int | None, json_path: str | None) -> None:
    """Feed boards' replies, scan files and motion-capture packets that are wrong to what reads them.

    Counts crashes, hangs and wrong accepts; each input that led to one is kept with its traceback. Guided by coverage
    if atheris is installed (pip install atheris), by random mutation of valid inputs if not.

    \b
    Examples:
      ./softform bench fuzz --inputs 1000000 --json -
      ./softform bench fuzz --only natnet --inputs 20000
    """  # noqa: D301
    from softform_core.plugins import plugin_kinds
    from softform_core.run_folder import new_run_folder
    from softform_core.workers import default_jobs
    from softform_system_tests.fuzzing.campaign import fuzz as fuzz_targets
    from softform_system_tests.fuzzing.trial import GROUP, KINDS, load_target

    names = list(only) or plugin_kinds(GROUP)
    for name in names:
        load_target(name)
    folder = new_run_folder("bench-fuzz")
    figures = fuzz_targets(names, inputs, folder, seed, jobs or default_jobs())
    report_figures({**figures, "folder": str(folder)}, json_path)
    if any(figures[kind] for kind in KINDS):
        sys.exit(1)
