"""`softform plan`: a motion past an obstacle, by a running stack."""

from pathlib import Path
from typing import Any

import click

from softform_tools.commands import goals


@click.command()
@click.argument("target", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--obstacle", type=click.Path(path_type=Path), required=True, help="What to keep clear of.")
@click.option("--output", type=click.Path(path_type=Path), help="CSV for the motion, which `./softform follow` takes.")
@goals.UNIT_OPTION
@click.option("--clearance", default=0.0, help="m that must stay, beside the model's uncertainty.  [default: 0]")
@goals.values_option("--start", "Where the motion begins.  [default: where the robot is]")
@click.option("--max-time", default=0.0, help="s.  [default: the node's]")
@goals.MODEL_OPTION
@goals.SIMULATED_OPTION
@goals.ACCEPT_OPTION
@goals.stack_options
def plan(
    target: Path,
    obstacle: Path,
    output: Path | None,
    unit: Any,
    namespace: str,
    frame: str,
    json_path: str | None,
    **options: Any,
) -> None:
    """Plan a motion to a shape along which the whole surface keeps clear of an obstacle; moves nothing.

    FILE and --obstacle are meshes or clouds (PLY, OBJ, STL, PCD, XYZ) in one unit. Exits with 1 if there is no such
    motion, with 2 if the goal could not be sent.

    \b
    Examples:
      ./softform plan target.ply --obstacle stick.stl --unit mm --clearance 0.003 --output motion.csv
      ./softform follow motion.csv
    """  # noqa: D301 - click reads the escape as "keep these lines"
    import numpy as np

    from softform_client.capture_files import write_table
    from softform_core.shapes.read import read_shape
    from softform_core.units import MM_PER_M
    from softform_interfaces.action import PlanToShape

    shape, in_the_way = read_shape(target, unit), read_shape(obstacle, unit)
    with goals.connected(namespace, frame) as client, goals.Progress() as bar:

        def note(feedback: PlanToShape.Feedback) -> None:
            bar.note(f"{feedback.stage}, {feedback.elapsed:.1f} s, {feedback.states_checked} surfaces checked")

        result = goals.carried_out(lambda: client.plan(shape, in_the_way, on_feedback=note, **options), client.cancel)
    names = list(result.actuators.name)
    if output is not None:
        values = np.reshape(result.actuators.value, (-1, len(names)))
        write_table(output, [*names, "time"], np.column_stack([values, result.times]))
    line = (
        f"{len(result.times)} waypoints in {result.times[-1]:.1f} s, {min(result.clearances) * MM_PER_M:.1f} mm clear"
    )
    goals.tell([line if output is None else f"{line}: {output}"], result, json_path)
