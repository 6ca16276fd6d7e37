"""`softform follow`: a path to a running stack."""

from pathlib import Path
from typing import Any

import click

from softform_tools.commands import goals


@click.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="TABLE")
@goals.UNIT_OPTION
@click.option("--point", default="", metavar="NAME", help="Frame of the robot that is led, or centre_line.")
@click.option(
    "--uv", nargs=2, type=float, help="Surface point that is led, or v of the centre line.  [default: 0.5 0.5]"
)
@click.option("--plan-only", is_flag=True, help="Solve, and move nothing.")
@goals.values_option("--seed", "Where the first solve starts, one value for each actuator.")
@goals.MODEL_OPTION
@goals.SIMULATED_OPTION
@goals.ACCEPT_OPTION
@goals.stack_options
def follow(
    path: Path,
    unit: str,
    point: str,
    uv: tuple[float, float] | None,
    namespace: str,
    frame: str,
    json_path: str | None,
    **options: Any,
) -> None:
    """Lead the robot of a running stack along a path; it holds the end.

    The table (as `import tips` takes) has columns x,y,z for a tip or a point of the surface, or the names of all
    actuators with values in their unit, whatever --unit; and time, in s after the start, if each waypoint is due at its
    time. Ctrl-C cancels, and the robot stays where it is. Exits with 1 if the goal ends with an error, with 2 if it
    could not be sent.

    \b
    Examples:
      ./softform follow eight.csv
      ./softform follow eight.csv --point tip
      ./softform follow eight.csv --point centre_line --uv 0 0.5
      ./softform follow eight.csv --plan-only --json - | jq .solve.max_error
      ./softform follow motion.csv                     as `./softform plan --output motion.csv` writes it
    """  # noqa: D301 - click reads the escape as "keep these lines"
    import numpy as np

    from softform_core.importing.table import read_table
    from softform_core.robots import CENTRE_LINE
    from softform_core.units import MM_PER_M
    from softform_interfaces.action import FollowWaypoints
    from softform_tools.commands.tables import read_path

    if uv and point not in ("", CENTRE_LINE):
        raise click.UsageError("--point and --uv name two points. Give one of them.")
    table = read_table(path)
    with goals.connected(namespace, frame) as client:
        points, times = read_path(table, client.robot(), np.array(uv or (0.5, 0.5)), point, unit)
        count = len(points.points if hasattr(points, "points") else points.values)
        with goals.Progress(count, "waypoint") as bar:

            def note(feedback: FollowWaypoints.Feedback) -> None:
                bar.note(feedback.stage, feedback.waypoint)

            result = goals.carried_out(
                lambda: client.follow(points, times=times, on_feedback=note, **options), client.cancel
            )
    lines = [f"{len(result.times)} waypoints {'planned' if options['plan_only'] else 'followed'}"]
    for name, errors in (("predicted", result.errors), ("measured", result.measured_errors)):
        known = MM_PER_M * np.array([error for error in errors if np.isfinite(error)])
        if len(known):
            lines.append(f"{name} error {known.mean():.2f} mm in the mean, {known.max():.2f} mm at most")
    goals.tell(lines, result, json_path)
