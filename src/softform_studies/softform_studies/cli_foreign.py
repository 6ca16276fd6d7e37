"""Command `softform bench foreign`."""

import click

from softform_core.cli.shared import json_option, report_figures


@click.command()
@json_option
def foreign(json_path: str | None) -> None:
    """A real robot of others: the tip of a soft tentacle in poses that no model has seen, beside its authors' models.

    22 poses under two tendons, by motion capture (MIT licence, in the package). A tapered rod is identified and learned
    from some of the poses: all but one in turn, and those of one tendon for those of two. About a minute.

    \b
    Examples:
      ./softform bench foreign --json -
    """  # noqa: D301
    from softform_core.threads import one_thread
    from softform_studies.foreign.bench import foreign as run

    with one_thread():
        figures = run(lambda line: click.echo(line, err=True))
    report_figures(figures, json_path)
