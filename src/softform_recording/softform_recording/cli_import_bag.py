"""`softform import bag`: scans and actuations out of a recording become frames."""

from pathlib import Path

import click

from softform_core.cli.shared import going_on, robot_names
from softform_core.files import named
from softform_core.paths import data_dir
from softform_core.robots import load_robot
from softform_core.shapes.read import UNITS, Unit


@click.command()
@click.argument("bag", type=click.Path(path_type=Path))
@click.option(
    "--robot", "robot_name", required=True, shell_complete=robot_names, help="Name in config/robots, or a .yaml."
)
@click.option("--scans", required=True, metavar="TOPIC", help="Point clouds (sensor_msgs/PointCloud2).")
@click.option("--unit", type=click.Choice(UNITS), default="m", show_default=True, help="Unit of scans.")
@click.option("--actuation", required=True, metavar="TOPIC:FIELD,…", help="Commanded actuations, in their order.")
@click.option(
    "--actuation-unit", type=click.Choice(["Pa", "kPa", "m", "mm"]), required=True, help="Unit of actuations."
)
@click.option("--measured", metavar="TOPIC:FIELD,…", help="Measured actuations.  [default: as commanded]")
@click.option("--frame", help="The robot's frame, into which the bag's /tf and /tf_static bring scans.")
@click.option(
    "--settled",
    default=2.0,
    show_default=True,
    type=click.FloatRange(0.0),
    help="s for which an actuation must have stood still when a scan comes.",
)
@click.option("--output", type=click.Path(path_type=Path), help="Zarr store.  [default: data/ROBOT/frames.zarr]")
def bag(
    bag: Path,
    robot_name: str,
    scans: str,
    unit: Unit,
    actuation: str,
    actuation_unit: str,
    measured: str | None,
    frame: str | None,
    settled: float,
    output: Path | None,
) -> None:
    """Import scans and actuations from any ROS 2 bag (MCAP or SQLite), with any types of messages.

    The last scan of each actuation that stood still is taken, in the robot's frame. Scans and their table are left in
    a folder beside the store, as `./softform import frames` takes them, which then judges them. The bag stays as it is.

    \b
    Examples:
      ./softform import bag walk --robot mine --scans /camera/points --actuation /pressures:data --actuation-unit kPa
      ./softform import bag walk --robot mine --scans /scan --frame base_link --actuation-unit Pa \\
          --actuation /left:pressure,/right:pressure --measured /sensors:data[0],/sensors:data[1]
      ./softform train s2r --robot mine
    """  # noqa: D301
    from softform_core.cli.import_ import report_frames
    from softform_core.importing.frames import import_frames
    from softform_recording.bag_captures import TopicField, extract_captures

    robot = load_robot(robot_name, needs="surface")
    store_path = data_dir() / robot.name / "frames.zarr" if output is None else output
    folder = store_path.with_name(f"{store_path.stem}_from_{named(bag).stem}")
    commanded, sensed = (
        [TopicField.parse(text) for text in given.split(",")] if given else [] for given in (actuation, measured)
    )
    names = robot.actuation_names
    table, told = extract_captures(
        bag, scans, commanded, names, folder, measured=sensed, frame=frame, settled=settled, unit=unit
    )
    click.echo(told)
    columns = [f"measured_{name}" for name in names] if sensed else None
    with going_on(store_path):
        store = import_frames(robot, table, names, "scan", "m", actuation_unit, store_path, measured=columns)
    report_frames(store, store_path, robot)
