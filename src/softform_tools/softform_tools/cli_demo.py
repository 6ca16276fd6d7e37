"""`softform demo`: a target shape in, the robot in that shape, a report out."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from softform_core.display import has_display
from softform_core.errors import SoftformError
from softform_core.files import write_atomically
from softform_tools.target_options import POSE_OPTION, target_options

_EXIT_INTERRUPTED = 130
DEMOS = "softform.demos"
"""Entry points with demos that need no stack, by the kind of body: robot, reality, seed, say -> results."""
OBJECT_DEMOS = "softform.demos.objects"
"""Entry points with demos of objects that grippers hold, by the object's name: the same arguments."""

if TYPE_CHECKING:  # commands are listed without what they load
    from softform_tools.demo_report import DemoResult


@click.command()
@target_options
@POSE_OPTION
@click.option(
    "--sim-to-real",
    metavar="FOLDER|none",
    help="A trained sim-to-real model, or none. Without it: the model that ships for the default reality, else none.",
)
@click.option(
    "--best-fit/--no-best-fit",
    default=True,
    show_default=True,
    help="At the end, search for the closest shape that the robot can take at all.",
)
@click.option("--headless", is_flag=True, help="Open neither the operator's page, to watch, nor the report at the end.")
@click.option("--json", "json_path", metavar="FILE", help="Write the figures as one JSON object; - is standard output.")
def demo(
    target: str | None,
    unit: Literal["m", "mm"] | None,
    pose: str,
    robot: str,
    reality: str,
    sim_to_real: str | None,
    seed: int,
    best_fit: bool,
    headless: bool,
    json_path: str | None,
) -> None:
    """Launch the whole stack on a virtual rig, reach a target shape in three ways, scan the robot, and report.

    The target goes through the reach_shape action: inverse kinematics finds the actuation, the driver brings the
    emulated board there, the virtual scanner captures the settled robot. First the simulation alone plans, then the
    simulation with the sim-to-real model, then a closed loop corrects the plan by what was scanned. `--reality ideal`
    shows the chain without a gap. A minute or two; Ctrl-C ends it, and keeps what was measured.

    A tendon robot, which has no surface, shows what its shape remembers instead, without the stack: one configuration
    by two ways, seen by two depth cameras, and its tip in a closed loop by three ways of approaching. An arm with
    cables shows how far physics alone leads its tip, and a marker at it besides. An object between two grippers is
    brought into a target shape by paper 003's controller and by ours. These need no stack.

    \b
    Examples:
      ./softform demo                                  a terrain model, on the membrane
      ./softform demo --target my_shape.ply --unit mm --pose place
      ./softform demo --robot manipulator --no-best-fit --headless --json -
      ./softform demo --robot sponge                   a sponge between two grippers
      ./softform demo --robot tendon_robot             a robot whose shape depends on what it did before
      ./softform demo --robot helix                    an arm of nine cables, by its finite-element model
    """  # noqa: D301 - click reads the escape as "keep these lines"
    from softform_core.plugins import load_plugin
    from softform_tools.demo import DemoRequest, run_demo

    group, shows = _demo_of_its_own(robot)
    request = DemoRequest(target, unit, robot, reality, seed, sim_to_real, pose, best_fit)
    to_stdout = json_path == "-"
    if json_path and not Path(json_path).absolute().parent.is_dir():
        raise click.ClickException(f"The folder of {json_path} does not exist. Make it, or give another --json.")
    if shows and target:
        raise click.ClickException(f"The demo of '{robot}' brings no surface into {target}. Leave --target out.")

    def runs(say: Callable[[str], None]) -> "Iterator[DemoResult]":
        if shows:
            return load_plugin(group, shows, "demo")[0](robot, reality, seed, say)
        return run_demo(request, say, has_page=not headless and has_display())

    result: DemoResult | None = None
    ended: SoftformError | KeyboardInterrupt | None = None
    try:
        with _only_the_report_on_stdout() if to_stdout else contextlib.nullcontext():
            for made in runs(lambda line: click.echo(line, err=to_stdout)):
                result = made
    except (SoftformError, KeyboardInterrupt) as error:
        ended = error
    if result is not None:
        figures = json.dumps(result.figures(), indent=None if to_stdout else 2)
        if to_stdout:
            click.echo(figures)
        elif json_path:
            write_atomically(json_path, (figures + "\n").encode())
        if not headless:
            _open(result.report)
    if isinstance(ended, SoftformError):
        raise click.ClickException(str(ended)) from ended
    if ended is not None:
        click.echo("stopped" if result else "stopped before anything was measured", err=True)
        sys.exit(_EXIT_INTERRUPTED)


def _demo_of_its_own(name: str) -> tuple[str, str | None]:
    """The group and the name of a demo that needs no stack, of an object or a kind of body; None without one."""
    from softform_core.plugins import plugin_kinds
    from softform_core.robots import load_robot

    if name in plugin_kinds(OBJECT_DEMOS):
        return OBJECT_DEMOS, name
    kind = load_robot(name).body.kind
    return DEMOS, kind if kind in plugin_kinds(DEMOS) else None


@contextlib.contextmanager
def _only_the_report_on_stdout() -> Iterator[None]:
    """Send what libraries below Python print (DDS logs to standard output) to standard error meanwhile."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def _open(picture: Path) -> None:
    viewer = shutil.which("xdg-open")
    if viewer:
        subprocess.Popen([viewer, str(picture)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
