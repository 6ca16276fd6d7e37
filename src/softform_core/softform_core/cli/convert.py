"""`softform convert`: files of earlier versions."""

from pathlib import Path

import click


@click.command()
@click.argument("paths", type=click.Path(exists=True, path_type=Path), nargs=-1, required=True)
@click.option("--robot", "robot_name", help="Whose models or stores they are: a name in config/robots, or a .yaml.")
def convert(paths: tuple[Path, ...], robot_name: str | None) -> None:
    """Convert robots, realities, models, data stores and bags that an earlier version wrote.

    Everything is converted in place; descriptions, model cards and bags are kept beside as .old. What is in today's
    form already is left as it is.

    \b
    Examples:
      softform convert mine.yaml                     a robot or a reality
      softform convert data/mine/simulation.zarr data/mine/frames.zarr models/mine --robot mine.yaml
      softform convert runs/live/bags/2026-01-31-12-00-00
    """  # noqa: D301
    from softform_core.robots import load_robot
    from softform_core.stores.convert import convert as convert_path

    robot = None if robot_name is None else load_robot(robot_name)
    for path in paths:
        lines = convert_path(path, robot)
        for line in lines or [f"{path}: nothing to convert"]:
            click.echo(line)
