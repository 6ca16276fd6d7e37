"""Command `softform register`: where a scanner stands, by a scan of the robot at rest."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from softform_core.cli.shared import PATH, robot_option
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
@click.option("--also", type=PATH, help="Another scan from the same pose, of the robot under --actuation.")
@click.option("--actuation", help="Of --also, by commas.")
@click.option("--actuation-unit", type=click.Choice(["Pa", "kPa", "m", "mm"]), help="Of --actuation.")
@click.option("--choose", type=click.IntRange(min=1), help="Which of the placements it is, where several fit alike.")
@click.option(
    "--hand-held", is_flag=True, help="Each scan has a frame of its own, and is aligned by what stands still."
)
@click.option("--picture", type=PATH, help="[default: data/ROBOT/scanners/NAME.png]")
def register(
    scan: Path,
    robot_name: str,
    unit: Unit,
    name: str,
    at: tuple[str, ...],
    also: Path | None,
    actuation: str | None,
    actuation_unit: str | None,
    choose: int | None,
    hand_held: bool,
    picture: Path | None,
) -> None:
    """Find where a scanner stands, by a scan of the robot at rest that is cut to the robot, and keep it by a name.

    A robot that looks the same from several sides leaves several placements. Choose by the picture, tell a place that
    you see in the scan (--at), or scan the robot with one chamber inflated, too (--also). Three places or more are a
    start for scans that show more than the robot.

    \b
    Examples:
      ./softform register rest.ply --unit mm
      ./softform register rest.ply --unit mm --also c1.ply --actuation 2,0,0,0,0,0,0,0,0 --actuation-unit kPa
      ./softform register rest.ply --unit mm --at base_1=312.4,80.1,655.0 --at base_2=... --at base_3=...
      ./softform launch softform rig:=false scanner_pose:=default
    """  # noqa: D301 - click reads the escape as "keep these lines"
    from softform_core.evaluation.registration_picture import draw_registration
    from softform_core.provenance import command_line, now
    from softform_core.registration.register_scanner import described, register_scanner
    from softform_core.registration.scanner_pose import ScannerRegistration, kept_registration

    robot = load_robot(robot_name, "surface")
    if (also is None) != (actuation is None) or (also is None) != (actuation_unit is None):
        raise SoftformError(
            "--also, --actuation and --actuation-unit belong together.", "Give all three of them, or none."
        )
    other = None
    if also is not None and actuation is not None and actuation_unit is not None:
        other = _points(also, unit, robot), _actuation(robot, actuation, actuation_unit)
    registered = register_scanner(robot, _points(scan, unit, robot), other, _places(at, robot, unit))
    path, found = kept_registration(robot.name, name), registered.found
    if choose is not None:
        if choose > len(found):
            raise SoftformError(f"Placement {choose} was chosen of {len(found)}.", "Choose one that is listed.")
        found = [found[choose - 1]]
    drawn = picture or path.with_suffix(".png")
    draw_registration(drawn, robot, registered.scan.points, [one.motion for one in found])
    click.echo(f"The scan fits '{robot.name}' at rest to {MM_PER_M * found[0].error:.2f} mm; drawn in {drawn}.")
    for number, one in enumerate(found, 1):
        click.echo(f"  {number}: {described(one)}" + (f"; not told: {one.left_open}" if one.left_open else ""))
    still = registered.still(found[0], robot) if hand_held else np.empty((0, 3))
    if (len(found) > 1 or found[0].left_open) and (len(still) or not hand_held):
        what = found[0].left_open or f"which of {len(found)} placements it is"
        raise SoftformError(
            f"The scan does not tell {what}: nothing was kept.",
            "Tell it by --also, by --at, or look at the picture and give --choose.",
        )
    motion = found[0].motion
    ScannerRegistration(
        robot=robot.name,
        created_at=datetime.fromisoformat(now()),
        command=command_line(),
        pose=(*motion.translation.tolist(), *motion.quaternion().tolist()),
        error=found[0].error,
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


def _points(path: Path, unit: Unit, robot: Robot) -> "Array":
    from softform_core.shapes.read import read_shape

    shape = read_shape(path, unit)
    check_target(shape.points, robot)
    return shape.points if shape.faces is None else shape.sample(_SAMPLES).points


def _actuation(robot: Robot, given: str, unit: str) -> "Array":
    from softform_core.importing.checks import in_si

    values = in_si(np.array(_floats(given, "--actuation")), unit, robot.unit)
    return robot.actuation_of(robot.check_commands(robot.actuators_of(values)))


def _places(at: tuple[str, ...], robot: Robot, unit: Unit) -> "dict[tuple[float, float, float], Array]":
    """Places in the robot's frame and in the scan's, m."""
    factor, found = 1.0 / MM_PER_M if unit == "mm" else 1.0, {}
    for one in at:
        place, equals, seen = one.partition("=")
        known = robot.base_markers.get(place.strip())
        ours = np.array(_floats(place, "--at")) * factor if known is None else np.array(known)
        theirs = np.array(_floats(seen, "--at")) * factor
        if not equals or len(ours) != 3 or len(theirs) != 3:
            raise SoftformError(
                f"--at {one} does not name a place and where the scan shows it.",
                f"Give PLACE=X,Y,Z, with X,Y,Z or one of {', '.join(robot.base_markers) or '(none)'} as PLACE.",
            )
        found[(float(ours[0]), float(ours[1]), float(ours[2]))] = theirs
    return found


def _floats(text: str, option: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError as error:
        raise SoftformError(f"{option} holds text that is no number: {text}.", "Part numbers by commas.") from error
