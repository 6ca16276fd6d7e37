"""`softform stream`: a folder of shapes to a running stack, one after the other."""

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from softform_core.errors import SoftformError
from softform_tools.commands.goals import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    PATIENCE,
    UNIT_OPTION,
    Progress,
    stack_options,
    tell,
)

_LAST_SECONDS = 1.0
"""For which the last shape is sent again, so that the servo's state for it is received."""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@UNIT_OPTION
@click.option("--rate", default=50.0, show_default=True, type=click.FloatRange(0.1, 200.0), help="Shapes a second, Hz.")
@stack_options
def stream(folder: Path, unit: Any, rate: float, namespace: str, frame: str, json_path: str | None) -> None:
    """Let the robot of a running stack follow the shapes of a folder; it holds the last one.

    The files (PLY, OBJ, STL, PCD, XYZ) are sent in the order of their names. All are read before the first is sent.
    Ctrl-C ends the stream: the robot holds what it has. Exits with 1 if the servo does not follow at the end, with 2 if
    nothing could be sent.

    \b
    Examples:
      softform stream breathing/ --unit mm
      softform stream breathing/ --rate 10 --json - | jq .mean_error
    """  # noqa: D301 - click reads the escape as "keep these lines"
    from softform_client.client import ShapeClient
    from softform_core.shapes.read import EXTENSIONS, read_shape
    from softform_core.shapes.target import TargetShape
    from softform_core.units import MM_PER_M
    from softform_interfaces.msg import ServoState

    files = sorted(path for path in folder.glob("*") if path.suffix.lower() in EXTENSIONS)
    if not files:
        raise SoftformError(f"{folder} holds no shapes.", f"Give a folder of files of type {', '.join(EXTENSIONS)}.")
    shapes = [read_shape(path, unit) for path in files]

    def targets(bar: Progress) -> Iterator[TargetShape]:
        for number, shape in enumerate(shapes, 1):
            bar.note(files[number - 1].name, number)
            yield shape
        yield from itertools.repeat(shapes[-1], max(1, round(_LAST_SECONDS * rate)))

    last, is_interrupted = ServoState(), False
    with ShapeClient(namespace, frame, PATIENCE) as client, Progress(len(files), "shape") as bar:
        try:
            for state in client.stream(targets(bar), rate):
                last = state
        except KeyboardInterrupt:
            is_interrupted = True
    follows = last.state == ServoState.TRACKING
    line = f"followed, predicted mean error {last.mean_error * MM_PER_M:.2f} mm at the end"
    tell([line if follows else f"not followed: {last.reason or 'the servo said nothing'}"], last, json_path)
    if is_interrupted or not follows:
        sys.exit(EXIT_INTERRUPTED if is_interrupted else EXIT_FAILED)
