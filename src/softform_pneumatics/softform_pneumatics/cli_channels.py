"""The command `channels`: which channel of which board feeds which chamber."""

from pathlib import Path

import click

from softform_core.cli.shared import robot_names
from softform_core.errors import SoftformError
from softform_core.paths import DEFAULT_ROBOT
from softform_core.robots import load_robot


@click.command()
@click.argument("robot", default=DEFAULT_ROBOT, shell_complete=robot_names)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Draw it into this picture (PNG, SVG, PDF)."
)
def channels(robot: str, output: Path | None) -> None:
    """Show how ROBOT's chambers are plumbed to its board or boards.

    ROBOT is a name in config/robots or the path of a description. Prints a line for each chamber with its channel;
    with --output it also draws boards and robot, for the wall of the lab and for docs/robots.

    Example: ./softform channels three_chamber --output channels.png
    """
    described = load_robot(robot)
    for device in described.devices:
        board = f"{device.name} " if len(described.devices) > 1 else ""
        for index, channel in zip(described.served_by(device), device.channels, strict=True):
            click.echo(f"{board}channel {channel} -> {described.actuators[index]}")
    if output is not None:
        from softform_pneumatics.channel_map import draw_channel_map  # matplotlib takes a second to import

        try:
            draw_channel_map(described, output)
        except (OSError, ValueError) as error:
            raise SoftformError(f"{output} cannot be drawn: {error}.", "Give a writable .png, .svg or .pdf.") from error
        click.echo(f"drawn: {output}")
