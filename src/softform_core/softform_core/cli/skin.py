"""`softform skin`: bind a mesh to a robot, so that the mesh moves with it and is picked and dragged."""

import re
from pathlib import Path

import click
import numpy as np

from softform_core.cli.shared import PATH, robot_option
from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_core.shapes.read import UNITS, Unit
from softform_core.units import MM_PER_M


@click.command()
@click.argument("file", type=PATH)
@robot_option
@click.option("--unit", type=click.Choice(UNITS), required=True, help="Of the file's coordinates.")
@click.option("--name", help="Of the skin; the file's by default.")
@click.option("--bones", type=click.IntRange(min=2), help="So many along a tube, in place of where each vertex lies.")
@click.option(
    "--samples",
    type=click.IntRange(100, 100_000),
    default=1000,
    show_default=True,
    help="Points of the robot's surface; as many as `surface_points` of the shape predictor.",
)
def skin(file: Path, robot_name: str, unit: Unit, name: str | None, bones: int | None, samples: int) -> None:
    """Bind a mesh (.ply, .obj, .stl) that lies over the robot at rest, in the robot's frame, as its skin.

    The skin moves with the robot's predicted surface; of a robot without one with the elements of its body. The page
    shows the newest one, and points that are picked and dragged are its own. Look at the picture that is drawn: it
    shows the mesh over the robot.

    \b
    Examples:
      ./softform skin dragon.obj --robot manipulator --unit mm --bones 12
      ./softform skin face.stl --robot mannequin --unit mm
      ./softform skin dragon.obj --robot tendon_rod --unit mm
    """  # noqa: D301
    from softform_core.evaluation.look import look_at, resting_mesh
    from softform_core.evaluation.pictures import draw_shape
    from softform_core.provenance import made_now
    from softform_core.shapes.features import named_outputs
    from softform_core.shapes.read import read_file
    from softform_core.shapes.skin_store import save_skin, skin_path
    from softform_core.skin.bind import bind_skin

    robot = load_robot(robot_name)
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", file.stem) if name is None else name
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name) or name in named_outputs(robot):
        raise SoftformError(
            f"'{name}' is no name for a skin, or is that of a patch or frame of '{robot.name}'.",
            "Give another by --name, of letters, digits, - and _.",
        )
    read = read_file(file, unit)
    bound = bind_skin(read.shape, robot, samples, bones or 0)
    path = skin_path(robot.name, name)
    picture = path.with_suffix(".png")
    made_from = {"robot": robot.name, "robot_fingerprint": robot.fingerprint(), "file": file.name, "unit": unit}
    bound.skin.card.update(made_now(), **made_from, bones=bones or 0)
    save_skin(path, bound.skin)
    resting = resting_mesh(robot) if robot.surfaces else None
    draw_shape(picture, read.shape, resting, f"Skin '{name}' over '{robot.name}' at rest")
    near, middle, far = MM_PER_M * np.quantile(bound.distances, [0.0, 0.5, 1.0])
    click.echo(f"{file}: {look_at(read.shape, robot, repaired=read.notes, unit=unit).line()}.")
    click.echo(f"It lies {near:.1f} … {far:.1f} mm from '{robot.name}' at rest, {middle:.1f} mm in the median.")
    for said in (*read.notes, *bound.warnings):
        click.echo(f"WARNING: {said}")
    by = f"{bones} bones" if bones else "where each vertex lies" if robot.surfaces else "the elements of its body"
    click.echo(f"{path}: skin '{name}', bound by {by}.")
    click.echo(f"Drawn in {picture}. The page shows it when the console is launched.")
