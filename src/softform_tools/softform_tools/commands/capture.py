"""`softform capture`: what a scanner or motion capture sees of the robot of a running stack."""

from pathlib import Path
from typing import Any

import click

from softform_core.errors import SoftformError
from softform_tools.commands import goals

_VIA = {".ply": "scanner", ".pcd": "scanner", ".csv": "mocap"}


@click.command()
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="A cloud of the scanner as .ply or .pcd, or the markers of motion capture as .csv; m, in the robot's frame.",
)
@click.option("--target", type=click.Path(path_type=Path), help="Compare with this.  [default: what is predicted]")
@goals.UNIT_OPTION
@click.option("--captures", default=0, help="Clouds or frames that make one capture.  [default: the node's]")
@goals.stack_options
def capture(
    output: Path, target: Path | None, unit: Any, captures: int, namespace: str, frame: str, json_path: str | None
) -> None:
    """Capture the robot of a running stack as it stands, and say how it fits; moves nothing.

    It waits until the robot stands still. The ending of --output says what captures. Exits with 1 if the capture ends
    with an error, with 2 if it could not be asked for.

    \b
    Examples:
      ./softform capture --output now.ply
      ./softform capture --output now.ply --target target.ply --unit mm --json - | jq .measured.mean_error
      ./softform capture --output markers.csv
    """  # noqa: D301 - click reads the escape as "keep these lines"
    from softform_client.capture_files import write_capture
    from softform_core.shapes.read import read_shape
    from softform_core.units import MM_PER_M

    if output.suffix.lower() not in _VIA:
        raise SoftformError(f"{output} is of no type that is written.", f"End it with {', '.join(_VIA)}.")
    via = _VIA[output.suffix.lower()]
    shape = None if target is None else read_shape(target, unit)
    with goals.connected(namespace, frame) as client, goals.Progress() as bar:
        result = goals.carried_out(
            lambda: client.capture(
                shape, via=via, captures=captures, on_feedback=lambda feedback: bar.note(feedback.stage)
            ),
            client.cancel,
        )
    count = write_capture(output, result)
    mean, largest = (MM_PER_M * error for error in (result.measured.mean_error, result.measured.max_error))
    fit = f"mean error {mean:.2f} mm, largest {largest:.2f} mm"
    goals.tell([f"{count} {'points' if via == 'scanner' else 'markers'} in {output}", fit], result, json_path)
