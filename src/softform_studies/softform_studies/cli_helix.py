"""Command `softform bench helix`."""

import click

from softform_core.cli.shared import json_option, report_figures, robot_names


@click.command()
@click.option(
    "--robot",
    default="helix",
    show_default=True,
    metavar="NAME|FILE",
    shell_complete=robot_names,
    help="An arm of kind cable_arm.",
)
@click.option("--reality", default="bowden", show_default=True, metavar="NAME|FILE", help="What the real arm is like.")
@click.option("--turns", type=click.FloatRange(0.01, 10.0), default=1.0, show_default=True, help="Of the slow circle.")
@click.option(
    "--actuations", type=click.IntRange(1), default=100, show_default=True, help="At random, each to be in balance."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of drags, noise and actuations.")
@json_option
def helix(robot: str, reality: str, turns: float, actuations: int, seed: int, json_path: str | None) -> None:
    """The arm of paper 002 led by its finite-element model: time of a tick, errors in the model and against a reality.

    Its tip follows circles at the paper's speed and at 0.5 m/s, abrupt drags, jumps, and targets out of reach. Times
    are processor time of one thread. Some minutes.

    \b
    Examples:
      ./softform bench helix --json -
      ./softform bench helix --turns 0.1 --actuations 10     a short look
    """  # noqa: D301
    from softform_core.threads import one_thread
    from softform_studies.helix.bench import helix as run

    with one_thread():
        figures = run(robot, reality, turns, actuations, seed, lambda line: click.echo(line, err=True))
    report_figures(figures, json_path)
