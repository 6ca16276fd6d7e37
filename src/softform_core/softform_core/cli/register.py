"""Command `softform register`: where a scanner stands, by a scan of the robot at rest."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from softform_core.cli.shared import PATH, numbers, robot_option
from softform_core.errors import SoftformError
from softform_core.robots import Robot, load_robot
from softform_core.shapes.read import UNITS, Unit
from softform_core.shapes.validate import check_target
from softform_core.units import MM_PER_M

if TYPE_CHECKING:
    from softform_core.arrays import Array

_SAMPLES = 20_000


@click.command()
@click.argument("scan", type=PATH)
@robot_option
@click.option("--unit", type=click.Choice(UNITS), required=True, help="Of all coordinates that are given.")
@click.option("--name", default="default", show_default=True, help="Of the scanner, for launch and import.")
@click.option(
    "--at", multiple=True, metavar="PLACE=SEEN", help="A base marker or X,Y,Z of the robot, and its X,Y,Z in SCAN."
)
@click.option("--choose", type=click.IntRange(min=1), help="Which of the placements it is, where several fit alike.")
@click.option(
    "--hand-held", is_flag=True, help="Each scan has a frame of its own, and is aligned by what stands still."
)
def register(
    scan: Path, robot_name: str, unit: Unit, name: str, at: tuple[str, ...], choose: int | None, hand_held: bool
) -> None:
    """Find where a scanner stands, by a scan of the robot at rest that is cut to the robot, and keep it by a name.

    A robot that looks the same from several sides leaves several placements. Choose by the picture, or tell a place
    that you see in the scan (--at). Three places or more are a start for scans that show more than the robot.

    \b
    Examples:
      ./softform register rest.ply --unit mm
      ./softform register rest.ply --unit mm --at base_1=312.4,80.1,655.0 --at base_2=... --at base_3=...
      ./softform launch softform rig:=false scanner_pose:=default
    """  # noqa: D301 - click reads the escape as "keep these lines"
    from softform_core.evaluation.pictures import draw_registration
    from softform_core.provenance import command_line, now
    from softform_core.registration.register_scanner import described, doubt, register_scanner, standing_still
    from softform_core.registration.scan_alignment import Scan
    from softform_core.registration.scanner_pose import ScannerRegistration, kept_registration
    from softform_core.shapes.read import read_shape

    robot = load_robot(robot_name, "surface")
    path, shape = kept_registration(robot.name, name), read_shape(scan, unit)
    check_target(shape.points, robot, "scan")
    seen = Scan(shape.points if shape.faces is None else shape.sample(_SAMPLES).points)
    places = _places(at, robot, unit)
    found = register_scanner(robot, seen, places)
    if choose is not None:
        if choose > len(found):
            raise SoftformError(f"Placement {choose} was chosen of {len(found)}.", "Choose one that is listed.")
        found = [found[choose - 1]]
    best, picture = found[0], path.with_suffix(".png")
    draw_registration(picture, robot, seen.points, [one.motion for one in found])
    click.echo(
        f"The scan fits '{robot.name}' at rest to {MM_PER_M * best.error:.2f} mm and shows {best.seen:.0%} of it; "
        f"{best.beside:.0%} of the scan lie beside it. Drawn in {picture}."
    )
    if wrong := doubt(best, places):
        click.echo(f"WARNING: {wrong}")
    for number, one in enumerate(found, 1):
        click.echo(f"  {number}: {described(one)}" + (f"; not told: {one.left_open}" if one.left_open else ""))
    still = standing_still(robot, best.motion.apply(seen.points)) if hand_held else np.empty((0, 3))
    if (len(found) > 1 or best.left_open) and (len(still) or not hand_held):
        raise SoftformError(
            f"The scan does not tell {best.left_open or f'which of {len(found)} placements it is'}: nothing was kept.",
            "Tell it by --at" + ("." if best.left_open else ", or look at the picture and give --choose."),
        )
    ScannerRegistration(
        robot=robot.name,
        created_at=datetime.fromisoformat(now()),
        command=command_line(),
        pose=best.motion.pose,
        error=best.error,
        hand_held=hand_held,
        still=still.tolist(),
    ).save(path)
    click.echo(f"{path}: launch with scanner_pose:={name}, import frames with --scanner {name}.")
    if hand_held:
        click.echo(
            f"Scans are aligned by {len(still)} places around the robot that stand still."
            if len(still)
            else "Nothing around the robot is in the scan: scans are aligned by those parts of the robot that do not "
            "move, to a millimetre or two; one that looks alike after a turn is rejected."
        )


def _places(at: tuple[str, ...], robot: Robot, unit: Unit) -> "dict[tuple[float, float, float], Array]":
    """Places in the robot's frame and in the scan's, m."""
    factor, found = 1.0 / MM_PER_M if unit == "mm" else 1.0, {}
    for one in at:
        place, _, seen = one.partition("=")
        known = robot.base_markers.get(place.strip())
        if (known is None and place.count(",") != 2) or seen.count(",") != 2:
            raise SoftformError(
                f"--at {one} does not name a place and where the scan shows it.",
                f"Give PLACE=X,Y,Z, with X,Y,Z or one of {', '.join(robot.base_markers) or '(none)'} as PLACE.",
            )
        x, y, z = known if known is not None else [factor * value for value in numbers(place, "--at")]
        found[x, y, z] = factor * np.array(numbers(seen, "--at"))
    return found
