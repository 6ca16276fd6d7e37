"""What commands of several packages share: options, figures as JSON, and what is said of what can be gone on with."""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from softform_core.errors import SoftformError
from softform_core.files import write_atomically
from softform_core.paths import DEFAULT_ROBOT, described_names

PATH = click.Path(path_type=Path)
"""Type of an option that names a file or folder."""


def robot_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """What a shell may put for the beginning of a robot: names in config/robots, else files."""
    names = [name for name in described_names("robots") if name.startswith(incomplete)]
    return [CompletionItem(name) for name in names] or [CompletionItem(incomplete, type="file")]


robot_option = click.option(
    "--robot",
    "robot_name",
    default=DEFAULT_ROBOT,
    show_default=True,
    shell_complete=robot_names,
    help="Name in config/robots, or a .yaml.",
)
cluster_option = click.option(
    "--cluster", metavar="ADDRESS", help="Of a Ray cluster: HOST:PORT, auto, or local for one of this command's own."
)
device_option = click.option("--device", help="Where networks compute, such as cuda.  [default: cpu]")
json_option = click.option(
    "--json", "json_path", metavar="FILE", help="Write the figures to FILE; - is standard output, the default."
)


def with_options(*options: Callable[..., Any]) -> Callable[..., Any]:
    """What gives a command these arguments and options, in this order."""

    def give(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return give


def numbers(text: str, option: str) -> list[float]:
    """The finite numbers of an option, parted by commas.

    Raises:
        SoftformError: If one is none.
    """
    try:
        found = [float(word) for word in text.split(",")]
    except ValueError:
        found = [math.nan]
    if not all(map(math.isfinite, found)):
        raise SoftformError(f"{option}: '{text}' are no numbers with commas between them.", "Give such, as 0,12.5,-3.")
    return found


def report_figures(figures: object, json_path: str | None) -> None:
    """Print figures as JSON, and nothing else, or write them to a file and say so.

    Raises:
        SoftformError: If the file cannot be written.
    """
    text = json.dumps(figures, indent=2)
    if json_path is None or json_path == "-":
        click.echo(text)
    else:
        write_atomically(json_path, (text + "\n").encode())
        click.echo(f"written to {json_path}")


@contextmanager
def going_on(place: object) -> Iterator[None]:
    """Say what the same command goes on with if it is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        raise click.ClickException(f"stopped. The same command goes on with {place}.") from None
