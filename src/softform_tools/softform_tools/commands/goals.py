"""Common parts of the commands for a running stack: options, Ctrl-C, progress, and messages of the outcome."""

import math
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Event, Thread, Timer
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import click
import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from softform_core.cli.shared import report_figures
from softform_core.text import LONGEST_MESSAGE, printable

if TYPE_CHECKING:  # commands are listed without ROS
    from softform_client.client import GoalFailedError, ShapeClient
    from softform_interfaces.msg import ActuatorValues

Result = TypeVar("Result")
Command = TypeVar("Command", bound=Callable[..., Any])

EXIT_FAILED, EXIT_INTERRUPTED = 1, 130
PATIENCE = 20.0
"""Longest time in which a node of the stack must answer, s."""

_START_SECONDS = 120.0  # that a stack may take to come up
_SILENCE_SECONDS = 2.0
_POLL_SECONDS = 0.2
_BULKY = {"sensor_msgs/PointCloud2"}

UNIT_OPTION = click.option(
    "--unit", type=click.Choice(["m", "mm"]), default="m", show_default=True, help="Unit of shapes and places in files."
)
ACCEPT_OPTION = click.option(
    "--accept-unreachable", is_flag=True, help="Take the nearest shape even if it misses what is asked widely."
)
MODEL_OPTION = click.option("--model", default="", help="Kind to plan with: learned, fem, …  [default: the one in use]")
SIMULATED_OPTION = click.option("--without-sim-to-real", is_flag=True, help="Plan with the simulated robot alone.")


def values_option(name: str, text: str) -> Callable[[Command], Command]:
    """Return an option with one value for each actuator."""

    def parsed(context: click.Context, option: click.Parameter, given: str | None) -> NDArray[np.float64] | None:
        try:
            return None if given is None else np.array([float(word) for word in given.split(",")])
        except ValueError:
            raise click.BadParameter(f"'{given}' are no numbers with commas between them.") from None

    return click.option(name, metavar="V,V,…", callback=parsed, help=text)


def stack_options(command: Command) -> Command:
    """Return options of every command that sends something to a running stack."""
    command = click.option("--json", "json_path", metavar="FILE", help="Write the result as JSON; - is stdout.")(
        command
    )
    command = click.option(
        "--frame", default="", metavar="NAME", help="Frame of the points; any that TF knows.  [default: the robot's]"
    )(command)
    return click.option("--namespace", default="softform", show_default=True, help="Where the stack runs.")(command)


class Progress:
    """One line on the terminal, made of feedback; where standard error is no terminal, a line for each long wait.

    Args:
        total: Count at which the bar is full; None if it is not known.
        unit: Unit of the count.
    """

    def __init__(self, total: int | None = None, unit: str = "") -> None:
        layout = "{desc}" if total is None else "{desc} {n_fmt}/{total_fmt} |{bar:20}|"
        self._bar = tqdm(total=total, unit=unit, bar_format=layout, disable=None, leave=False, file=sys.stderr)
        self._text, self._ended = "", Event()

    def note(self, text: str, done: int = 0) -> None:
        """Show where a goal stands."""
        self._text = text
        self._bar.n = done
        self._bar.set_description_str(text)

    def say(self, line: str) -> None:
        """Say what stays on the terminal, above the line."""
        self._bar.write(printable(line, LONGEST_MESSAGE, lines=True), file=sys.stderr)

    def _say(self) -> None:
        """Say every 2 s where the goal stands, unless that was said before."""
        said = ""
        while not self._ended.wait(_SILENCE_SECONDS):
            if said != (said := self._text):
                click.echo(said, err=True)

    def __enter__(self) -> "Progress":
        if self._bar.disable:
            Thread(target=self._say, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._bar.close()


@contextmanager
def told_if_long(line: str) -> Iterator[Callable[[], None]]:
    """Say on standard error what is waited for, once that has taken 2 s; what is yielded makes that unnecessary."""
    soon = Timer(_SILENCE_SECONDS, lambda: click.echo(line, err=True))
    soon.daemon = True
    soon.start()
    try:
        yield soon.cancel
    finally:
        soon.cancel()


@contextmanager
def connected(namespace: str, frame: str) -> Iterator["ShapeClient"]:
    """Yield a client of a stack that runs; a stack that starts is awaited, with its steps on standard error.

    Raises:
        SoftformError: If no stack answers.
    """
    from softform_client.client import ShapeClient
    from softform_ros.background_node import full_namespace
    from softform_ros.stack_state import wait_while_starting

    with told_if_long(f"waiting up to {PATIENCE:g} s for a stack in {full_namespace(namespace)}") as quiet:

        def say(line: str) -> None:
            quiet()
            click.echo(line, err=True)

        wait_while_starting(namespace, _START_SECONDS, say)
        with ShapeClient(namespace, frame, PATIENCE) as client:
            quiet()
            yield client


def _terminate(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def carried_out(
    call: Callable[[], Result], cancel: Callable[[], object], advice: Mapping[int, str] | None = None
) -> Result:
    """Return the result of a goal; Ctrl-C and SIGTERM cancel it, and the robot stays where it is.

    Exits with `EXIT_FAILED` if it ends with an error code, which is shown with its name and text, with
    `EXIT_INTERRUPTED` if it was cancelled.

    Raises:
        SoftformError: If the goal could not be sent.
    """
    from softform_client.client import GoalFailedError

    signal.signal(signal.SIGTERM, _terminate)
    is_interrupted = False
    with ThreadPoolExecutor(max_workers=1) as waiting:
        ending = waiting.submit(call)
        while not ending.done():
            try:
                if is_interrupted:
                    cancel()  # a goal that is not accepted yet cannot be cancelled
                wait([ending], _POLL_SECONDS)
            except KeyboardInterrupt:
                is_interrupted = True
        try:
            return ending.result()
        except GoalFailedError as failure:
            told = f"[{failure.code} {_name_of(failure)}] {failure} {(advice or {}).get(failure.code, '')}".strip()
            click.echo(printable(told, LONGEST_MESSAGE, lines=True), err=True)
            sys.exit(EXIT_INTERRUPTED if is_interrupted else EXIT_FAILED)


def _name_of(failure: "GoalFailedError") -> str:
    """Return the name that the action gives to an error code."""
    kind = type(failure.result)
    return next((name for name in dir(kind) if name.isupper() and getattr(kind, name) == failure.code), "unknown")


def tell(lines: list[str], result: Any, json_path: str | None) -> None:
    """Tell an outcome: lines and warnings for people; the result as JSON in a file or (-) on stdout, if asked."""
    for line in [*lines, *getattr(getattr(result, "solve", None), "warnings", ())]:  # a capture solves nothing
        click.echo(printable(line, LONGEST_MESSAGE, lines=True), err=json_path == "-")
    if json_path is not None:
        report_figures(as_json(result), json_path)


def as_json(value: Any) -> Any:
    """Return a message as JSON takes it: without clouds; what is not a number is null."""
    if hasattr(value, "get_fields_and_field_types"):
        fields = value.get_fields_and_field_types()
        return {name: as_json(getattr(value, name)) for name, kind in fields.items() if kind not in _BULKY}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str | bool | int):
        return value
    return [as_json(one) for one in value]


def values_line(values: "ActuatorValues") -> str:
    """Return the last set of values of a result for people, such as `c1 1200, c2 800 Pa`."""
    last = zip(values.name, values.value[-len(values.name) :], strict=True) if values.name else ()
    return ", ".join(f"{name} {value:.6g}" for name, value in last) + f" {values.unit}"
