"""`softform convert`: files of earlier versions."""

from pathlib import Path

import click


@click.command()
@click.argument("paths", type=click.Path(exists=True, path_type=Path), nargs=-1, required=True)
@click.option("--robot", "robot_name", help="Whose models or stores they are: a name in config/robots, or a .yaml.")
def convert(paths: tuple[Path, ...], robot_name: str | None) -> None:
    """Convert robots, realities, models and data stores that an earlier version wrote.

    Everything is converted in place; descriptions and model cards are kept beside as .old. What is in today's form
    already is left as it is.

    \b
    Examples:
      softform convert mine.yaml                     a robot or a reality
      softform convert data/mine/simulation.zarr data/mine/frames.zarr models/mine --robot mine.yaml
    """  # noqa: D301
    from softform_core.robots import load_robot
    from softform_core.stores.convert import convert as convert_path

    robot = None if robot_name is None else load_robot(robot_name)
    for path in paths:
        lines = convert_path(path, robot)
        for line in lines or [f"{path}: nothing to convert"]:
            click.echo(line)
