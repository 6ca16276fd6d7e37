"""`softform collect`: what the real robot does under known values, for sim-to-real learning."""

import contextlib
import json
import select
import sys
import termios
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from softform_core.cli.shared import robot_names
from softform_core.errors import SoftformError
from softform_core.paths import DEFAULT_ROBOT
from softform_core.robots import load_robot
from softform_core.text import LONGEST_MESSAGE, printable

_POLL_SECONDS = 0.2

if TYPE_CHECKING:  # commands are listed without what they load
    from softform_collect.client import CollectRequest


@click.command()
@click.option(
    "--robot",
    default=DEFAULT_ROBOT,
    show_default=True,
    shell_complete=robot_names,
    help="Name in config/robots, or a .yaml.",
)
@click.option("--frames", default=40, show_default=True, help="Frames that the data set shall have in the end.")
@click.option(
    "--via", type=click.Choice(["scanner", "mocap"]), default="scanner", show_default=True, help="What captures."
)
@click.option("--output", type=click.Path(path_type=Path), help="Zarr store.  [default: data/ROBOT/frames.zarr]")
@click.option("--seed", default=0, show_default=True, help="Of the actuations (a Halton sequence).")
@click.option("--reality", default="default", show_default=True, metavar="NAME", help="Of the launched virtual rig.")
@click.option(
    "--attach", is_flag=True, help="Use the stack that runs, as on hardware; else one is launched on the virtual rig."
)
@click.option("--namespace", default="softform", show_default=True, help="With --attach: where the stack runs.")
@click.option(
    "--reference-every",
    default=0,
    type=click.IntRange(min=0),
    metavar="N",
    help="With mocap: every N frames look whether the robot has drifted.  [default: never]",
)
@click.option("--by-hand", is_flag=True, help="A person scans each frame; the robot moves at Enter only.")
@click.option("--record/--no-record", default=True, show_default=True, help="Whether a launched stack is recorded.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as one JSON object.")
def collect(as_json: bool, **asked: Any) -> None:
    """Actuate the robot at random, and keep what a scanner or a motion-capture system sees of each shape.

    Every frame is commanded, settled, captured, checked and stored. Ctrl-C pauses: the robot vents, Enter goes on,
    Ctrl-C again ends. However it ends, the same command again goes on where it stopped; a larger --frames adds to what
    is there. It ends by itself before the disk is full, and when the robot has drifted (--reference-every).

    Of a robot that has a tip and no surface, tips are collected, by the marker `tip`: each is a row of a table beside
    the store data/ROBOT/tips.zarr, which is made of it in the end, for `train s2r`.

    A frame that shows too little, noise, an old scan, exchanged markers or a shape that this actuation does not make is
    taken anew, and rejected with its number and reason if that does not help.

    \b
    Examples:
      ./softform collect                             40 frames on the virtual rig
      ./softform collect --reality worn --output worn.zarr
      ./softform collect --via mocap                 markers instead of scans; begins with a rest frame
      ./softform collect --attach --via mocap --frames 5000 --reference-every 100      for hours, unattended
      ./softform collect --attach --by-hand          a person scans, and says when the robot may move
      ./softform collect --robot three_chamber --via mocap --frames 343      tips, as many as paper 001 took
      ./softform collect --attach                    on the stack that runs: `./softform launch softform rig:=false`
    """  # noqa: D301 - click reads the escape as "keep these lines"
    from tqdm import tqdm

    from softform_collect.client import CollectRequest, store_of
    from softform_collect.client import collect as run
    from softform_collect.data_set import summary_figures, summary_lines
    from softform_core.frames.store import open_recording

    request = CollectRequest(**asked)
    if request.by_hand and (request.via != "scanner" or not sys.stdin.isatty()):
        raise SoftformError(
            "--by-hand asks a person with a scanner.", "Give it at a terminal, and collect --via scanner."
        )
    try:
        if not load_robot(request.robot).surfaces:
            click.echo(_tips_collected(request, as_json))
            return
        path = run(request, lambda line: tqdm.write(line, file=sys.stderr), _asked)
    except (KeyboardInterrupt, SoftformError) as error:
        stopped = isinstance(error, KeyboardInterrupt)
        reason = "stopped; the robot vents. The same command goes on." if stopped else str(error)
        with contextlib.suppress(SoftformError):
            click.echo("\n".join(summary_lines(open_recording(store_of(request)))), err=True)
        raise click.ClickException(printable(reason, LONGEST_MESSAGE, lines=True)) from error
    store = open_recording(path)
    click.echo(json.dumps(summary_figures(store)) if as_json else "\n".join(summary_lines(store)))


def _tips_collected(request: "CollectRequest", as_json: bool) -> str:
    """Collect tips; returns what is said of them."""
    from tqdm import tqdm

    from softform_collect.tips import collect as run

    found = run(request, lambda line: tqdm.write(line, file=sys.stderr))
    if as_json:
        figures = {"tips": found.seen, "not_seen": found.not_seen, "seconds_a_tip": round(found.seconds, 2)}
        return json.dumps({"store": str(found.store), **figures})
    learn = f"Learn: ./softform train s2r --robot {request.robot}"
    return f"{found.store}: {found.seen} tips, {found.seconds:.1f} s each, {found.not_seen} not seen. {learn}"


def _asked(question: str) -> bool:
    """Ask the user; without a terminal collecting ends. What was typed before the question answers nothing."""
    if not sys.stdin.isatty():
        return False
    termios.tcflush(sys.stdin, termios.TCIFLUSH)
    click.echo(f"\n{question}", err=True)
    try:
        # In turns: a Ctrl-C that comes just before Python waits is not heard while it waits.
        while not select.select([sys.stdin], [], [], _POLL_SECONDS)[0]:
            pass
        return bool(sys.stdin.readline())
    except KeyboardInterrupt:
        return False


if __name__ == "__main__":
    collect(prog_name="softform collect")
