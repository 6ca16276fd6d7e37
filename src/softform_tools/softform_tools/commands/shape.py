"""`softform shape`: what a file with a shape is read as, and how it lies on the robot."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from softform_core.cli.shared import PATH, report_figures, robot_option
from softform_tools.commands import goals
from softform_tools.target_options import FIXED, FREE, POSE_OPTION


@click.command()
@click.argument("target", type=PATH, metavar="FILE")
@goals.UNIT_OPTION
@robot_option
@POSE_OPTION
@click.option("--picture", type=PATH, help="Draw the shape over the robot, in space and in plan.")
@click.option("--json", "json_path", metavar="FILE", help="Write the figures as JSON; - is stdout.")
def shape(target: Path, unit: Any, robot_name: str, pose: str, picture: Path | None, json_path: str | None) -> None:
    """Tell what a mesh or a cloud is read as, and how much of it lies beside the robot; nothing moves.

    FILE is a mesh or cloud (PLY, OBJ, STL, PCD, XYZ). What was left out or mended is said. --pose free solves for the
    place by the robot's model.

    \b
    Examples:
      ./softform shape scan.ply --unit mm
      ./softform shape part.stl --unit mm --pose place --picture part.png
      ./softform shape scan.ply --unit mm --json - | jq .beside_robot_share
    """  # noqa: D301 - click reads the escape as "keep these lines"
    from softform_core.evaluation.look import look_at, moved, resting_mesh
    from softform_core.robots import load_robot
    from softform_core.shapes.placing import placement
    from softform_core.shapes.read import read_file
    from softform_core.units import MM_PER_M

    robot = load_robot(robot_name)
    read = read_file(target, unit)
    placed, place = read.shape, pose
    if pose == FREE:
        from softform_core.forward.robot_pipeline import load_pipeline
        from softform_core.inverse.ik_options import IkOptions
        from softform_core.inverse.inverse import solve_inverse_kinematics

        options = IkOptions(robot.actuation_min, robot.actuation_max, fix_pose=False)
        motion = solve_inverse_kinematics(load_pipeline(robot), read.shape, options).pose.scaled(1.0 / MM_PER_M)
        placed, place = moved(pose, motion, read.shape)
    elif pose != FIXED:
        placed, place = moved(pose, placement(read.shape, robot), read.shape)
    look = look_at(placed, robot, place, read.notes, unit)
    if picture is not None:
        from softform_core.evaluation.pictures import draw_shape

        draw_shape(picture, placed, resting_mesh(robot) if robot.surfaces else None, f"{target.name}: {look.line()}")
    if json_path is not None:
        report_figures(asdict(look), json_path)
        return
    click.echo(f"{target}: {look.line()}")
    for note in look.repaired:
        click.echo(f"  {note}")
    low, high = look.box_mm
    click.echo("  " + ", ".join(f"{axis} {a:g} … {b:g}" for axis, a, b in zip("xyz", low, high, strict=True)) + " mm")
    click.echo(f"  pose {look.pose}")
    if look.unit_guess != unit:
        click.echo(f"  its size suggests that its unit is {look.unit_guess}, not {unit}")
    if picture is not None:
        click.echo(f"  drawn in {picture}")
