"""Command `softform bench mutation`."""

import sys
from pathlib import Path

import click

from softform_core.cli.shared import json_option, report_figures

_BAR = 0.8
_BEGIN, _END = "<!-- made by ./softform bench mutation: mutation -->", "<!-- end -->"


@click.command()
@click.option("--jobs", type=click.IntRange(min=1), help="Processes.  [default: one for each core]")
@click.option(
    "--write",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Write the table into this page, between its markers.",
)
@json_option
def mutation(jobs: int | None, write: Path | None, json_path: str | None) -> None:
    """Put small faults into the files that decide about motion, and see whether their fast tests notice each.

    Lease, supervisor, latch, checks of commands and guardian are mutated in a copy by mutmut, one change at a time:
    another comparison, a number that is one more, a condition turned round, an argument left out. A change that no test
    notices survives (docs/steps/bench-mutation.md). Branch coverage is of the same files by the same tests.

    It exits with 1 if fewer than 80 % of a file's mutants are noticed.

    \b
    Examples:
      ./softform bench mutation --json -
      ./softform bench mutation --write docs/safety.md
    """  # noqa: D301
    from softform_core.workers import default_jobs
    from softform_system_tests.mutation.measure import measure

    figures = measure(jobs or default_jobs(), lambda line: click.echo(line, err=True))
    report_figures(figures, json_path)
    if write is not None:
        text = write.read_text(encoding="utf-8")
        before, begin, rest = text.partition(_BEGIN)
        _, end, after = rest.partition(_END)
        if not (begin and end):
            raise click.UsageError(f"{write} has no lines {_BEGIN} and {_END}. Put them where the table belongs.")
        write.write_text(f"{before}{begin}\n{_table(figures)}\n{end}{after}", encoding="utf-8")
    if any(of_file["score"] < _BAR for of_file in figures.values()):
        sys.exit(1)


def _table(figures: dict[str, dict[str, float]]) -> str:
    rows = [
        f"| `{file}.py` | {row['mutants']} | {row['killed'] + row['timed_out']} | {row['survived']} | "
        f"{100 * row['score']:.0f} % | {100 * row['branch_coverage']:.0f} % |"
        for file, row in figures.items()
    ]
    return "\n".join(
        ["| file | mutants | killed | survived | score | branches covered |", "|---|---|---|---|---|---|", *rows]
    )
