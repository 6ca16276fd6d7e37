"""Commands `softform import ...`: simulation data and captures from elsewhere."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from softform_core.cli.registered import RegisteredCommands
from softform_core.cli.shared import PATH, going_on, numbers, robot_names, with_options
from softform_core.paths import data_dir
from softform_core.robots import Robot, load_robot
from softform_core.shapes.read import Unit
from softform_core.units import MM_PER_M

if TYPE_CHECKING:
    from softform_core.frames.store import FrameStore
    from softform_core.importing.tips import Repeats


class _Imports(RegisteredCommands):
    entry_point_group = "softform.imports"
    sections = {"Commands": ("tips", "shapes", "frames", "bag")}


@click.command("import", cls=_Imports)
def import_() -> None:
    """Bring data of your own: simulations, from which `train fk` learns, and captures, from which `train s2r` does.

    Tables are CSV files with a header, NPZ files with an array a column, or Parquet files. Units are always stated. A
    column whose name has a comma is named in double quotes: --tip '"Tip x, mm","Tip y, mm","Tip z, mm"'.
    The body of the robot may be one that Softform simulates, or `kind: imported`, which needs no physics.
    """


_FAR_OFF = (
    "  tips far from those under actuations nearby: {}. They are kept; see whether their unit is another, or a marker "
    "was taken for another one."
)
_UNITS = click.Choice(["Pa", "kPa", "m", "mm"])
_of_a_table = with_options(
    click.argument("table", type=PATH),
    click.option(
        "--robot", "robot_name", required=True, shell_complete=robot_names, help="Name in config/robots, or a .yaml."
    ),
    click.option("--unit", type=click.Choice(["m", "mm"]), required=True, help="Unit of places."),
    click.option("--actuation-unit", type=_UNITS, required=True, help="Unit of actuations."),
    click.option("--actuation", help="Columns of the actuations, by commas.  [default: the robot's names]"),
    click.option(
        "--in-order",
        is_flag=True,
        help="Rows follow one another as they were executed: each is kept, with what was before it.",
    ),
)
_OUTPUT = click.option("--output", type=PATH, help="Zarr store.  [default: data/ROBOT/simulation.zarr]")


def _columns(given: str | None, default: list[str]) -> list[str]:
    """Names parted by commas; one with a comma in it stands in double quotes."""
    return default if given is None else [name.strip() for name in next(csv.reader([given], skipinitialspace=True))]


@click.command()
@_of_a_table
@click.option("--tip", help="Columns of the tip, by commas.  [default: x,y,z; x,y of a planar robot]")
@click.option(
    "--displaced-from", metavar="X,Y,Z", help="The columns are displacements from this place of the resting tip."
)
@click.option(
    "--repeats",
    type=click.Choice(["mean", "first", "keep"]),
    help="Of an actuation that comes again with another tip: the mean, the first, or each.  [default: refused]",
)
@click.option(
    "--captured", is_flag=True, help="Tips of the real robot, for `train s2r`.  [output: data/ROBOT/tips.zarr]"
)
@_OUTPUT
def tips(
    table: Path,
    robot_name: str,
    unit: str,
    actuation_unit: str,
    actuation: str | None,
    in_order: bool,
    tip: str | None,
    displaced_from: str | None,
    repeats: "Repeats | None",
    captured: bool,
    output: Path | None,
) -> None:
    """Import actuations and places of the tip, a row each, in the robot's frame.

    Rows that come twice are left out, and those without a tip, or whose tip stands for none: it comes under other
    actuations, too, far from the tips nearby. The same command again goes on where it was stopped.

    With --captured they are measured on the real robot, by a motion-capture system or a camera of your own, and each is
    kept; give --in-order where rows follow one another as they were executed, so that its memory is learned, too.

    \b
    Examples:
      ./softform import tips fem.csv --robot mine.yaml --unit mm --actuation-unit kPa --actuation p1,p2,p3 --tip x,y,z
      ./softform train fk --robot mine.yaml        N_fk, and N_J from the derivative of N_fk
      ./softform import tips mocap.csv --captured --in-order --robot mine.yaml --unit m --actuation-unit Pa
      ./softform train s2r --robot mine.yaml       N_s2r, from what was captured
    """  # noqa: D301
    from softform_core.importing.tips import import_captured_tips, import_tips, ranges

    robot = load_robot(robot_name, needs="tip")
    kind = "tips" if captured else "simulation"
    path = data_dir() / robot.name / f"{kind}.zarr" if output is None else output
    names = _columns(actuation, robot.actuation_names), _columns(tip, ["x", "y", "z"][: robot.tip_dimensions])
    rest = None if displaced_from is None else numbers(displaced_from, "--displaced-from")
    if captured:
        if repeats is not None:
            raise click.UsageError("Captured tips are all kept: --repeats has nothing to choose.")
        samples, absent, far = import_captured_tips(
            robot, table, *names, unit, actuation_unit, path, displaced_from=rest, in_order=in_order
        )
        click.echo(f"{path}: {len(samples.tips)} captured tips, {'with' if in_order else 'without'} their past.")
        click.echo(f"  {ranges(robot, samples.actuation, samples.tips)}")
        if absent:
            click.echo(f"  without a tip, or with one that stands for none, left out: {absent}")
        if far:
            click.echo(_FAR_OFF.format(far))
        click.echo(f"Learn from them: ./softform train s2r --robot {robot.given_as}")
        return
    with going_on(path):
        store = import_tips(
            robot, table, *names, unit, actuation_unit, path, displaced_from=rest, repeats=repeats, in_order=in_order
        )
    told = store.attributes
    click.echo(f"{path}: {len(store)} tips; {told['left_out']} rows that came twice were left out.")
    click.echo(f"  {ranges(robot, *store.converged()[:2])}")
    if told["far_off"]:
        click.echo(_FAR_OFF.format(told["far_off"]))
    if told["without_tip"]:
        click.echo(f"  without a tip, or with one that stands for none, left out: {told['without_tip']}")
    again = cast(dict[str, float], told["repeats"])
    if again["actuations"]:
        click.echo(
            f"  {again['actuations']} actuations came again with another tip, {MM_PER_M * again['rms']:.3g} mm "
            f"r.m.s. from their mean, {MM_PER_M * again['largest']:.3g} mm apart at most: the table's own noise. No "
            "model comes closer to single rows."
        )
    elif repeats:
        click.echo("  no actuation came again with another tip: --repeats had nothing to do")
    click.echo(f"Learn them: ./softform train fk --robot {robot.given_as}")


@click.command()
@_of_a_table
@click.option("--meshes", default="mesh", show_default=True, help="Column of mesh files.")
@click.option("--part", help="Abaqus: the part or instance that is the surface, if there are several.")
@click.option(
    "--displacement",
    metavar="FIELD|none",
    help="VTK: the field that moves the points, or none if they have moved.  [default: found out]",
)
@_OUTPUT
def shapes(
    table: Path,
    robot_name: str,
    unit: str,
    actuation_unit: str,
    actuation: str | None,
    in_order: bool,
    meshes: str,
    part: str | None,
    displacement: str | None,
    output: Path | None,
) -> None:
    """Import actuations and meshes of one topology (OBJ, PLY, STL, VTK or Abaqus), a row each, in the robot's frame.

    The mesh nearest to rest is repaired, and gives the triangles of all. The same command again goes on where it was
    stopped.

    \b
    Examples:
      ./softform import shapes fem.csv --robot mine.yaml --unit mm --actuation-unit kPa --actuation p1,p2 --meshes file
      ./softform train fk --robot mine.yaml
    """  # noqa: D301
    from softform_core.importing.shapes import import_shapes

    robot = load_robot(robot_name, needs="surface")
    path = data_dir() / robot.name / "simulation.zarr" if output is None else output
    names = _columns(actuation, robot.actuation_names)
    with going_on(path):
        store = import_shapes(
            robot,
            table,
            names,
            meshes,
            unit,
            actuation_unit,
            path,
            part=part,
            displacement=displacement,
            in_order=in_order,
        )
    click.echo(
        f"{path}: {len(store)} shapes of {len(store.rest_vertices)} vertices, at rest {store.attributes['rest']}; "
        f"{store.attributes['left_out']} rows that came twice were left out."
    )
    if (field := store.attributes["displacement"]) is not None:
        click.echo(f"  the points are moved by the field '{field}'")
    for beside in cast(list[str], store.attributes["beside"]):
        click.echo(f"  in the files, not used: {beside}")
    for done in cast(list[str], store.attributes["repairs"]):
        click.echo(f"  repaired: {done}")
    click.echo(f"Learn them: ./softform train fk --robot {robot.given_as}")


@click.command()
@_of_a_table
@click.option("--scans", default="scan", show_default=True, help="Column of scan files.")
@click.option(
    "--scanner", metavar="POSE", help="Scans are in the frame of this scanner: a name, file or pose as for launch."
)
@click.option("--measured", help="Columns of the measured actuations, by commas.  [default: as commanded]")
@click.option("--output", type=PATH, help="Zarr store.  [default: data/ROBOT/frames.zarr]")
def frames(
    table: Path,
    robot_name: str,
    unit: Unit,
    actuation_unit: str,
    actuation: str | None,
    in_order: bool,
    scans: str,
    scanner: str | None,
    measured: str | None,
    output: Path | None,
) -> None:
    """Import actuations and scans of the real robot (PLY, PCD, XYZ, OBJ or STL), a row each, in the robot's frame.

    With --scanner they are in the frame of a scanner that `./softform register` has found. Each scan is judged as one
    that `./softform collect` takes; an unfit one is kept aside with its reason. The robot needs its forward kinematics.
    The same command again goes on where it was stopped.

    \b
    Examples:
      ./softform import frames captures.csv --robot mine --unit mm --actuation-unit kPa --actuation p1,p2,p3
      ./softform import frames captures.csv --robot mine --unit mm --actuation-unit kPa --scanner bench
      ./softform train s2r --robot mine
    """  # noqa: D301
    from softform_core.importing.frames import import_frames

    robot = load_robot(robot_name, needs="surface")
    path = data_dir() / robot.name / "frames.zarr" if output is None else output
    of_measured = None if measured is None else _columns(measured, [])
    names = _columns(actuation, robot.actuation_names)
    with going_on(path):
        store = import_frames(
            robot,
            table,
            names,
            scans,
            unit,
            actuation_unit,
            path,
            measured=of_measured,
            scanner=scanner,
            in_order=in_order,
        )
    report_frames(store, path, robot)


def report_frames(store: "FrameStore", path: Path, robot: Robot) -> None:
    """Say what was imported, what was rejected and why, and the next step."""
    click.echo(f"{path}: {len(store.captured)} frames, {store.coverage[store.captured].mean():.0%} of the robot seen.")
    for number, reason in store.rejections.items():
        click.echo(f"  frame {number} is rejected: {reason}")
    click.echo(f"Learn them: ./softform train s2r --robot {robot.given_as}")
