"""Command `softform picture`."""

from pathlib import Path

import click

from softform_core.errors import SoftformError


@click.command()
@click.argument("robot", default="membrane")
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), required=True, help="The picture (PNG, SVG, PDF)."
)
def picture(robot: str, output: Path) -> None:
    """Draw ROBOT as it is simulated: at rest, at its corners, and in section.

    ROBOT is a name in config/robots or the path of a description; it needs a surface and a simulator.

    Example: ./softform picture compressible --output docs/images/compressible.png
    """
    from softform_core.robots import load_robot
    from softform_studies.robot_pictures import draw_robot  # matplotlib takes a second to import

    described = load_robot(robot, "surface")
    if not described.body.is_simulated:
        raise SoftformError(f"Robot '{described.name}' has no simulator to draw.", "Choose a simulated robot.")
    try:
        draw_robot(described, output)
    except (OSError, ValueError) as error:
        raise SoftformError(f"{output} cannot be drawn: {error}.", "Give a writable .png, .svg or .pdf.") from error
    click.echo(f"drawn: {output}")
