"""Command `softform histories`: the shapes of paper 004, each with what the robot did before."""

from pathlib import Path

import click

from softform_core.cli.shared import PATH, json_option, report_figures, robot_option
from softform_core.paths import data_dir
from softform_core.robots import load_robot


@click.command()
@robot_option
@click.option("--reality", default="printed", show_default=True, help="That depends on its path: a name, or a .yaml.")
@click.option("--levels", type=click.IntRange(min=1), default=29, show_default=True, help="Of a straight tendon.")
@click.option("--helical-levels", type=click.IntRange(min=1), default=162, show_default=True)
@click.option("--singles", is_flag=True, help="Single moves alone, without the walk and the trajectories.")
@click.option("--output", type=PATH, help="Zarr store.  [default: data/ROBOT/histories.zarr]")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes.  [default: one for each core]")
@click.option("--seed", default=0, show_default=True, help="Of the orders, the cameras and their noise.")
@json_option
def histories(
    robot_name: str,
    reality: str,
    levels: int,
    helical_levels: int,
    singles: bool,
    output: Path | None,
    jobs: int | None,
    seed: int,
    json_path: str | None,
) -> None:
    """Record the shapes that a robot takes by different ways to the same configuration, as paper 004 does.

    A robot whose tendons stick and slip is led to each nominal configuration by way of home, and two times by way of a
    random one; then along a random walk and six trajectories. After each move two depth cameras look at it. By default
    these are 8319, 1200 and 30 shapes: ten minutes on two cores. Printed is how much its shape depends on its way. What
    is interrupted goes on, by the same command, where it stopped.

    \b
    Examples:
      ./softform histories --robot tendon_robot --json -
      ./softform histories --robot tendon_robot --levels 8 --helical-levels 24 --singles --output singles.zarr
    """  # noqa: D301 - click reads the escape as "keep these lines"
    from softform_core.executors import make_executor
    from softform_rig.reality import load_reality
    from softform_studies.tendon_robot.configurations import check_tendons, nominal_configurations, planned_runs
    from softform_studies.tendon_robot.execution import path_body
    from softform_studies.tendon_robot.hysteresis import measured_hysteresis
    from softform_studies.tendon_robot.recording import record

    robot = load_robot(robot_name)
    check_tendons(robot)
    described = load_reality(reality, robot)
    path_body(robot, described)
    path = data_dir() / robot.name / "histories.zarr" if output is None else output
    runs = planned_runs(nominal_configurations(robot, levels, helical_levels), seed)
    runs = runs[:3] if singles else runs
    count = sum(int(run.is_recorded.sum()) for run in runs)
    with click.progressbar(length=count, label=f"{count} shapes") as bar:
        found = record(path, robot, described, runs, seed, make_executor(jobs), bar.update)
    report_figures({"shapes": len(found), "hysteresis": measured_hysteresis(found)}, json_path)
