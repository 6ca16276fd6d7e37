"""Command `softform figures`."""

import sys

import click

from softform_core.paths import home


@click.command()
@click.argument("names", nargs=-1, metavar="[RUN]...")
@click.option("--again", is_flag=True, help="Run what has been run before, too.")
def figures(names: tuple[str, ...], again: bool) -> None:
    """Make the figures of README and docs: run the commands that they come from, and write the pages and the picture.

    What each command prints is kept in docs/figures.json with its command, revision and date; docs/figures.yaml lists
    the runs. Press Ctrl-C: what is done is kept, and the same command goes on; long runs go on within, too. Times are
    worth what the machine is: let nothing else run. What was made by a revision that is not in the history is named.

    \b
    Examples:
      ./softform figures                  what is missing; says how long that takes
      ./softform figures --again          everything anew, some three hours
      ./softform figures dem --again      one run
    """  # noqa: D301
    from softform_studies.figures import make_figures

    try:
        failed = make_figures(home(), names, again, lambda line: click.echo(line, err=True))
    except KeyboardInterrupt:
        raise click.ClickException("stopped. The same command goes on.") from None
    if failed:
        click.echo(f"failed: {', '.join(failed)}. The same command runs them again.", err=True)
        sys.exit(1)
