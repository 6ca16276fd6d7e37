"""Command `softform bench hysteresis`."""

from pathlib import Path

import click

from softform_core.cli.shared import PATH, json_option, report_figures


@click.command()
@click.option("--shapes", type=PATH, help="Store of `histories`.  [default: data/tendon_robot/histories.zarr]")
@click.option("--quick", is_flag=True, help="Few shapes and short training: three minutes, and no figures to cite.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes.  [default: one for each core]")
@json_option
def hysteresis(shapes: Path | None, quick: bool, jobs: int | None, json_path: str | None) -> None:
    """Shapes that remember: paper 004's decoder of clouds against what else tells them, and against ours.

    All learn from clouds of two depth cameras and are judged by clouds and by the true surface, centre line and tip:
    single moves, split as printed and without leakage, and six trajectories. About two hours on two cores.

    \b
    Examples:
      ./softform histories --robot tendon_robot
      ./softform bench hysteresis --json hysteresis.json
    """  # noqa: D301
    from softform_core.executors import make_executor
    from softform_core.paths import data_dir
    from softform_studies.hysteresis.bench import hysteresis as run

    path = data_dir() / "tendon_robot" / "histories.zarr" if shapes is None else shapes
    report_figures(run(path, quick, make_executor(jobs), lambda line: click.echo(line, err=True)), json_path)
