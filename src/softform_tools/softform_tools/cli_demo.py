"""`softform demo`: a target shape in, the robot in that shape, a report out."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import click

from softform_core.errors import SoftformError
from softform_core.files import write_atomically
from softform_tools.target_options import POSE_OPTION, target_options


@click.command()
@target_options
@POSE_OPTION
@click.option(
    "--sim-to-real",
    metavar="FOLDER|none",
    help="A trained sim-to-real model, or none. Without it: the model that ships for the default reality, else none.",
)
@click.option("--headless", is_flag=True, help="Do not open the report at the end.")
@click.option("--json", "json_path", metavar="FILE", help="Write the figures as one JSON object; - is standard output.")
def demo(
    target: str | None,
    unit: Literal["m", "mm"] | None,
    pose: str,
    robot: str,
    reality: str,
    sim_to_real: str | None,
    seed: int,
    headless: bool,
    json_path: str | None,
) -> None:
    """Launch the whole stack on a virtual rig, reach a target shape in three ways, scan the robot, and report.

    The target goes through the reach_shape action: inverse kinematics finds the actuation, the driver brings the
    emulated board there, the virtual scanner captures the settled robot. First the simulation alone plans, then the
    simulation with the sim-to-real model, then a closed loop corrects the plan by what was scanned. `--reality ideal`
    shows the chain without a gap.
    """
    from softform_tools.demo import DemoRequest, run_demo

    request = DemoRequest(target, unit, robot, reality, seed, sim_to_real, pose)
    to_stdout = json_path == "-"
    if json_path and not Path(json_path).absolute().parent.is_dir():
        raise click.ClickException(f"The folder of {json_path} does not exist. Make it, or give another --json.")
    try:
        with _only_the_report_on_stdout() if to_stdout else contextlib.nullcontext():
            result = run_demo(request, lambda line: click.echo(line, err=to_stdout))
    except SoftformError as error:
        raise click.ClickException(str(error)) from error
    figures = json.dumps(result.figures(), indent=None if to_stdout else 2)
    if to_stdout:
        click.echo(figures)
    elif json_path:
        write_atomically(json_path, (figures + "\n").encode())
    if not headless:
        _open(result.report)


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
