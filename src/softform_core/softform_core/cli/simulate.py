"""Command `softform simulate`: the shapes that the forward kinematics will learn."""

from pathlib import Path

import click
import numpy as np

from softform_core.cli.shared import PATH, cluster_option, going_on, robot_option
from softform_core.errors import SoftformError
from softform_core.paths import data_dir
from softform_core.robots import load_robot

_FAILURES_SHOWN = 20


@click.command()
@robot_option
@click.option(
    "--samples", type=click.IntRange(min=1), help="Of a surface: corners, then Halton samples.  [default: 1000]"
)
@click.option(
    "--segments", type=click.IntRange(min=2), help="Of a tip: values of each actuation.  [default: the robot's]"
)
@click.option("--output", type=PATH, help="Zarr store.  [default: data/ROBOT/simulation.zarr]")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes.  [default: one for each core]")
@cluster_option
@click.option("--device", help="Solve many at once on it, by warp: cuda:0 and so on, or cpu. Of a membrane.")
@click.option("--seed", default=0, show_default=True, help="Of the Halton samples.")
def simulate(
    robot_name: str,
    samples: int | None,
    segments: int | None,
    output: Path | None,
    jobs: int | None,
    cluster: str | None,
    device: str | None,
    seed: int,
) -> None:
    """Simulate the robot's shapes, from which `./softform train fk` learns its forward kinematics.

    Every combination of lowest and highest values is simulated, then samples between them; if there are more
    combinations than samples, half of the samples are some of them. Of a robot with a tip, a grid of its actuations is
    simulated, and the Jacobian at each. The store can be read at any time. Press Ctrl-C, or lose the power: the same
    command again goes on where it stopped, and a larger --samples adds to what is there.

    \b
    Examples:
      ./softform simulate                                     1000 shapes of the membrane, a few minutes
      ./softform simulate --samples 2000                      1000 more
      ./softform simulate --robot three_chamber               4096 tips and Jacobians (paper 001), a minute
      ./softform simulate --robot mine.yaml --output mine.zarr
      ./softform simulate --samples 100000 --cluster auto     on the Ray cluster that this machine is a node of
      ./softform simulate --device cuda:0                     1000 shapes of the membrane on a GPU
    """  # noqa: D301 - click reads the escape as "keep these lines"
    from softform_core.simulation.generate import generate
    from softform_core.simulation.sampling import grid, inflations
    from softform_core.simulation.store import SampleStatus

    robot = load_robot(robot_name)
    path = data_dir() / robot.name / "simulation.zarr" if output is None else output
    with going_on(path):
        if not robot.surfaces:
            _reject(samples, "--samples", robot.name, "--segments")
            sampling, what = grid(robot, segments or robot.tip.segments), "tips"
        else:
            _reject(segments, "--segments", robot.name, "--samples")
            sampling, what = inflations(robot, samples or 1000, seed), "shapes"
        if sampling.remark:
            click.echo(sampling.remark)
        store = generate(robot, sampling, path, jobs=jobs, cluster=cluster, device=device)
    converged = int((store.status == SampleStatus.CONVERGED).sum())
    jacobians = ", each with its Jacobian" if "jacobian" in store.outputs else ""
    click.echo(
        f"{path}: {converged} of {len(store)} {what} converged{jacobians}, "
        f"{np.mean(store.solve_seconds):.3g} s and {np.mean(store.iterations):.1f} iterations a sample."
    )
    if store.solved_singly:
        click.echo(
            f"The device gave up {len(store.solved_singly)} of them, which the single solver did (solved_singly)."
        )
    for sample, reason in sorted(store.failures.items())[:_FAILURES_SHOWN]:
        click.echo(f"  sample {sample} failed: {reason}")
    if len(store.failures) > _FAILURES_SHOWN:
        click.echo(f"  and {len(store.failures) - _FAILURES_SHOWN} more.")
    if not converged:
        raise SoftformError(
            f"None of the {what} has an equilibrium: there is nothing to learn from.",
            f"Lower the highest actuator values of '{robot.name}', or stiffen its body; delete {path}; simulate anew.",
        )
    data = "" if output is None else f" --data {output}"
    click.echo(f"Learn them: ./softform train fk --robot {robot.given_as}{data}")


def _reject(value: int | None, option: str, robot: str, instead: str) -> None:
    if value is not None:
        raise click.UsageError(f"{option} does not fit the robot '{robot}'; give {instead}.")
