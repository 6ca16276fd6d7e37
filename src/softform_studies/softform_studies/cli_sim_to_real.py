"""Command `softform bench sim2real`."""

import sys

import click

from softform_core.cli.figures import json_option, report_figures


@click.command()
@click.option("--reality", metavar="NAME|FILE", help="One of config/realities, or a .yaml anywhere.  [default: all]")
@click.option("--robot", "robot_name", default="membrane", show_default=True, help="Name in config/robots, or a .yaml.")
@click.option("--frames", default=40, show_default=True, type=click.IntRange(min=5), help="Scans to learn from.")
@click.option("--held-out", default=20, show_default=True, type=click.IntRange(min=1), help="Actuations judged.")
@click.option("--points", default=1000, show_default=True, type=click.IntRange(min=100), help="Points of each scan.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Of frames and training.")
@click.option("--recipe", "recipe_name", default="default", show_default=True, help="default or paper.")
@click.option(
    "--baselines/--no-baselines", default=True, show_default=True, help="Also the paper's baselines and markers."
)
@click.option("--jobs", type=click.IntRange(min=1), help="Processes for the baselines.  [default: one for each core]")
@json_option
def sim2real(
    reality: str | None,
    robot_name: str,
    frames: int,
    held_out: int,
    points: int,
    seed: int,
    recipe_name: str,
    baselines: bool,
    jobs: int | None,
    json_path: str | None,
) -> None:
    """How much of a reality's gap sim-to-real learning closes, beside floors and the paper's baselines.

    The learner sees captured frames only. Its predictions at held-out actuations are judged by their distance from
    the reality's true surface. mean_reduction is the cut of the mean error, max_reduction that of each shape's largest
    error, averaged over the shapes. With --reality one JSON object is printed, without it a list over all of
    config/realities, a few minutes each, in which one that fails has its `error`. The same seed gives the same figures.

    \b
    Examples:
      softform bench sim2real --reality default --json -
      softform bench sim2real --reality mine.yaml --no-baselines
    """  # noqa: D301
    from softform_core.errors import SoftformError
    from softform_core.processes import default_jobs
    from softform_core.robots import load_robot
    from softform_core.threads import one_thread
    from softform_core.training.sim_to_real_recipes import RECIPES
    from softform_rig.reality import known_realities, load_reality
    from softform_studies.sim_to_real.bench_sim_to_real import BenchSettings, bench

    if recipe_name not in RECIPES:
        raise click.BadParameter(f"'{recipe_name}' is none of {', '.join(sorted(RECIPES))}.", param_hint="--recipe")
    robot = load_robot(robot_name, "surface")
    names = [reality] if reality else known_realities(robot.body.kind)
    realities = [load_reality(name, robot) for name in names]
    processes = jobs or default_jobs()
    settings = BenchSettings(
        frames, held_out, points, seed, RECIPES[recipe_name], baselines, processes, sys.stderr.isatty()
    )
    figures: list[dict[str, object]] = []
    with one_thread():
        for each in realities:
            try:
                figures.append(bench(robot, each, settings, lambda line: click.echo(line, err=True)))
            except SoftformError as error:
                if reality:
                    raise
                # What the other realities showed, minutes each, must not be lost.
                click.echo(f"  failed: {error}", err=True)
                figures.append({"reality": each.name, "error": str(error)})
    report_figures(figures[0] if reality else figures, json_path)
    if any("error" in each for each in figures):
        sys.exit(1)
