"""Command `softform simulate`: the shapes that the forward kinematics will learn."""

from pathlib import Path

import click
import numpy as np

from softform_core.paths import data_dir
from softform_core.robots import load_robot


@click.command()
@click.option("--robot", "robot_name", default="membrane", show_default=True, help="Name in config/robots, or a .yaml.")
@click.option("--samples", default=1000, show_default=True, help="Actuations: all corners, then Halton samples.")
@click.option("--output", type=click.Path(path_type=Path), help="Zarr store.  [default: data/ROBOT/simulation.zarr]")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes.  [default: one for each core]")
@click.option("--seed", default=0, show_default=True, help="Of the Halton samples.")
def simulate(robot_name: str, samples: int, output: Path | None, jobs: int | None, seed: int) -> None:
    """Simulate the robot's shapes, from which `softform train fk` learns its forward kinematics.

    Every combination of lowest and highest chamber pressures is simulated, then samples between them. The store can be
    read at any time. Press Ctrl-C, or lose the power: the same command again goes on where it stopped, and a larger
    --samples adds to what is there.

    \b
    Examples:
      softform simulate                                     1000 shapes of the membrane, a few minutes
      softform simulate --samples 2000                      1000 more
      softform simulate --robot mine.yaml --output mine.zarr
    """  # noqa: D301 - click reads the escape as "keep these lines"
    from softform_core.simulation.generate import generate_simulation
    from softform_core.simulation.store import SampleStatus

    robot = load_robot(robot_name)
    path = data_dir() / robot.name / "simulation.zarr" if output is None else output
    try:
        store = generate_simulation(robot, samples, path, jobs=jobs, seed=seed)
    except KeyboardInterrupt:
        raise click.ClickException(f"stopped. The same command goes on with {path}.") from None
    status, seconds = store.status, store.solve_seconds
    converged = int((status == SampleStatus.CONVERGED).sum())
    click.echo(
        f"{path}: {converged} of {len(store)} shapes converged, "
        f"{np.mean(seconds):.3f} s and {np.mean(store.iterations):.1f} iterations a shape."
    )
    for sample, reason in sorted(store.failures.items()):
        click.echo(f"  sample {sample} failed: {reason}")
