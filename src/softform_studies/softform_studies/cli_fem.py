"""Command `softform bench fem`."""

import click

from softform_core.cli.shared import json_option, report_figures, robot_names


@click.command()
@click.argument("robots", nargs=-1, metavar="[NAME|FILE]...", shell_complete=robot_names)
@json_option
def fem(robots: tuple[str, ...], json_path: str | None) -> None:
    """What a robot's own simulation does as its model (`model:=fem`), and how fast; all shipped robots by default.

    Its tip, or the middle of its surface, is predicted, reached as a shape or a place, followed along waypoints and
    streamed, by the classes that the nodes serve them with. Times are processor time of one thread. A quarter of an
    hour for all of them; needs no stack.

    \b
    Examples:
      ./softform bench fem --json -
      ./softform bench fem membrane tendon_rod
    """  # noqa: D301
    from softform_core.threads import one_thread
    from softform_studies.fem.bench import models_by_simulation

    with one_thread():
        figures = models_by_simulation(list(robots), lambda line: click.echo(line, err=True))
    report_figures(figures, json_path)
