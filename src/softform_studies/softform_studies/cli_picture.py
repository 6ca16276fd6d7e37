"""Command `softform picture`."""

from pathlib import Path

import click

from softform_core.cli.shared import robot_names
from softform_core.errors import SoftformError


@click.command()
@click.argument("robot", default="membrane", shell_complete=robot_names)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), required=True, help="The picture (PNG, SVG, PDF)."
)
def picture(robot: str, output: Path) -> None:
    """Draw ROBOT as it is simulated: at rest, at its corners, and in section.

    ROBOT is a name in config/robots or the path of a description; it needs a surface. A body of solids
    takes minutes; what has no equilibrium is said, and left out. For the robots of paper 001, whose tips alone are
    known, the picture shows how the real tip follows an '8', and the commands.

    \b
    Examples:
      ./softform picture compressible --output docs/images/compressible.png
      ./softform picture planar_fingers --output docs/images/waypoints.png
    """  # noqa: D301 - click reads the escape as "keep these lines"
    from softform_core.robots import load_robot
    from softform_studies.robot_pictures import (  # matplotlib takes a second to import
        EIGHTS,
        draw_robot,
        draw_waypoints,
    )

    described = load_robot(robot)
    try:
        if described.name in EIGHTS and not described.surfaces:
            draw_waypoints(described, "default", output)
        else:
            draw_robot(load_robot(robot, "surface"), output, lambda line: click.echo(line, err=True))
    except (OSError, ValueError) as error:
        raise SoftformError(f"{output} cannot be drawn: {error}.", "Give a writable .png, .svg or .pdf.") from error
    click.echo(f"drawn: {output}")
