"""`softform collect`: what the real robot does under known pressures, for sim-to-real learning."""

import json
import sys
from pathlib import Path

import click

from softform_core.errors import SoftformError


@click.command()
@click.option("--robot", default="membrane", show_default=True, help="Name in config/robots, or a .yaml.")
@click.option("--frames", default=40, show_default=True, help="Frames that the data set shall have in the end.")
@click.option(
    "--via", type=click.Choice(["scanner", "mocap"]), default="scanner", show_default=True, help="What captures."
)
@click.option("--output", type=click.Path(path_type=Path), help="Zarr store.  [default: data/ROBOT/frames.zarr]")
@click.option("--seed", default=0, show_default=True, help="Of the actuations (a Halton sequence).")
@click.option("--reality", default="default", show_default=True, metavar="NAME", help="Of the launched virtual rig.")
@click.option(
    "--launch/--attach",
    "launches",
    default=True,
    show_default=True,
    help="Launch a stack on the virtual rig and record it, or use the one that runs, as on hardware.",
)
@click.option("--namespace", default="softform", show_default=True, help="With --attach: where the stack runs.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as one JSON object.")
def collect(
    robot: str,
    frames: int,
    via: str,
    output: Path | None,
    seed: int,
    reality: str,
    launches: bool,
    namespace: str,
    as_json: bool,
) -> None:
    """Actuate the robot at random, and keep what a scanner or a motion-capture system sees of each shape.

    Every frame is commanded, settled, captured, checked and stored. Press Ctrl-C, or lose the power: the robot vents,
    and the same command again goes on where it stopped; a larger --frames adds to what is there. A frame that shows
    too little, noise, an old scan, exchanged markers or a shape that these pressures do not make is taken anew, and
    rejected with its number and reason if that does not help.

    \b
    Examples:
      softform collect                             40 frames on the virtual rig
      softform collect --reality worn --output worn.zarr
      softform collect --via mocap                 markers instead of scans; begins with a rest frame
      softform collect --attach                    on the stack that runs: `softform launch softform rig:=false`
    """  # noqa: D301 - click reads the escape as "keep these lines"
    from tqdm import tqdm

    from softform_bringup.collect import CollectRequest
    from softform_bringup.collect import collect as run
    from softform_core.frames.sources import open_recording

    request = CollectRequest(robot, frames, via, output, seed, not launches, reality, namespace)
    try:
        result = run(request, lambda line: tqdm.write(line, file=sys.stderr))
    except KeyboardInterrupt:
        raise click.ClickException("stopped; the robot vents. The same command goes on.") from None
    except SoftformError as error:
        raise click.ClickException(str(error)) from error
    store = open_recording(result.store)
    coverage = store.coverage[store.captured]
    figures = {
        "path": str(store.path),
        "captured": len(store.captured),
        "rejected": len(store.rejections),
        "coverage_mean": round(float(coverage.mean()), 4) if len(coverage) else None,
        "coverage_min": round(float(coverage.min()), 4) if len(coverage) else None,
    }
    if as_json:
        click.echo(json.dumps(figures))
        return
    line = f"{store.path}: {len(store.captured)} of {len(store)} frames captured"
    if len(coverage):
        seen = "the robot" if via == "scanner" else "the markers"
        line += f", {coverage.mean():.0%} of {seen} seen on average, {coverage.min():.0%} at least"
    click.echo(f"{line}.")
    for number, reason in sorted(store.rejections.items()):
        click.echo(f"  frame {number} is rejected: {reason}")


if __name__ == "__main__":
    collect(prog_name="softform collect")
