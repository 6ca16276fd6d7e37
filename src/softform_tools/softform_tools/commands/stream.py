"""`softform stream`: a folder of shapes, or places of a tip, to a running stack, one after the other."""

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from softform_core.errors import SoftformError
from softform_tools.commands import goals

_LAST_SECONDS = 1.0
"""Time for which the last target is repeated, s, so that the servo's state for it is received."""


@click.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="FOLDER|TABLE")
@goals.UNIT_OPTION
@click.option(
    "--rate",
    default=50.0,
    show_default=True,
    type=click.FloatRange(2.5, 200.0),
    help="Targets a second, Hz: below 2.5 the servo holds between them.",
)
@goals.stack_options
def stream(path: Path, unit: Any, rate: float, namespace: str, frame: str, json_path: str | None) -> None:
    """Let the robot of a running stack follow the shapes of a folder, or its tip the places of a table.

    Shapes (PLY, OBJ, STL, PCD, XYZ) are sent in the order of their names. A table (as `import tips` takes) has columns
    x,y,z; with a column time, in s, places in between are interpolated. All are read before the first is sent. The
    robot holds the last one. Ctrl-C ends the stream: the robot holds what it has. Killed or frozen (Ctrl-Z), after 2 s
    the robot is made safe. Exits with 1 if the servo does not
    follow at the end, with 2 if nothing could be sent.

    \b
    Examples:
      ./softform stream breathing/ --unit mm
      ./softform stream breathing/ --rate 10 --json - | jq .mean_error
      ./softform stream eight.csv                      for a robot with a tip
    """  # noqa: D301 - click reads the escape as "keep these lines"
    from softform_core.importing.table import read_table
    from softform_core.shapes.read import EXTENSIONS
    from softform_core.units import MM_PER_M
    from softform_interfaces.msg import ServoState
    from softform_tools.commands.tables import read_places

    table = None if path.is_dir() or path.suffix.lower() in EXTENSIONS else read_table(path)
    named = _shapes(path, unit) if table is None else []

    def targets(bar: goals.Progress) -> Iterator[Any]:
        for number, (name, target) in enumerate(named, 1):
            bar.note(name, number)
            yield target
        yield from itertools.repeat(named[-1][1], max(1, round(_LAST_SECONDS * rate)))

    last, is_interrupted = ServoState(), False
    with goals.connected(namespace, frame) as client:
        if table is not None:
            places = read_places(table, client.robot(), rate, unit)
            named = [(f"{number / rate:.1f} s", place) for number, place in enumerate(places)]
        with goals.Progress(len(named), "shape" if table is None else "place") as bar:
            try:
                for state in client.stream(targets(bar), rate):
                    last = state
            except KeyboardInterrupt:
                is_interrupted = True
    follows = last.state == ServoState.TRACKING
    line = f"followed, predicted mean error {last.mean_error * MM_PER_M:.2f} mm at the end"
    goals.tell([line if follows else f"not followed: {last.reason or 'the servo said nothing'}"], last, json_path)
    if is_interrupted or not follows:
        sys.exit(goals.EXIT_INTERRUPTED if is_interrupted else goals.EXIT_FAILED)


def _shapes(folder: Path, unit: Any) -> list[tuple[str, Any]]:
    from softform_core.shapes.read import EXTENSIONS, read_shape

    files = sorted(path for path in folder.glob("*") if path.suffix.lower() in EXTENSIONS)
    if not files:
        raise SoftformError(
            f"{folder} holds no shapes.",
            f"Give a folder of files of type {', '.join(EXTENSIONS)}, or a table with the places of a tip.",
        )
    return [(path.name, read_shape(path, unit)) for path in files]
