"""Command `softform bench sim2real`."""

import sys
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from softform_core.cli.shared import cluster_option, json_option, report_figures, robot_option

if TYPE_CHECKING:
    from softform_core.executors import Executor
    from softform_core.robots import Robot


@click.command()
@click.option("--reality", metavar="NAME|FILE", help="One of config/realities, or a .yaml anywhere.  [default: all]")
@click.option(
    "--draws",
    type=click.IntRange(min=1),
    help="Instead: so many realities at random, from the seed on.  [default: none]",
)
@robot_option
@click.option(
    "--frames",
    type=click.IntRange(min=5),
    help="Frames to learn from, or tips.  [default: 40; as many tips as paper 001 took]",
)
@click.option("--held-out", default=20, show_default=True, type=click.IntRange(min=1), help="Actuations judged.")
@click.option("--points", default=1000, show_default=True, type=click.IntRange(min=100), help="Points of each scan.")
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="Of frames and training; of the first draw.",
)
@click.option("--recipe", "recipe_name", default="default", show_default=True, help="default or paper.")
@click.option(
    "--baselines/--no-baselines", default=True, show_default=True, help="Also the paper's baselines and markers."
)
@click.option(
    "--jobs", type=click.IntRange(min=1), help="Processes for baselines or draws.  [default: one for each core]"
)
@cluster_option
@json_option
def sim2real(
    reality: str | None,
    draws: int | None,
    robot_name: str,
    frames: int | None,
    held_out: int,
    points: int,
    seed: int,
    recipe_name: str,
    baselines: bool,
    jobs: int | None,
    cluster: str | None,
    json_path: str | None,
) -> None:
    """Measure how much of a reality's gap sim-to-real learning closes, beside floors and the paper's baselines.

    The learner sees captured frames only: scans, or markers of a robot that wears more than a hundred. Its predictions
    at held-out actuations are judged by their distance from the reality's true surface. mean_reduction is the cut of
    the mean error, max_reduction that of each shape's largest error, averaged over the shapes. With --reality one JSON
    object is printed, without it a list over all of config/realities, a few minutes each, in which one that fails has
    its `error`. The same seed gives the same figures.

    With --draws realities are drawn at random (seeds S, S + 1, …; a minute or two each) and learned, also with
    w = 1: median, 10th percentile and worst of the cuts, and by kind of difference, beside floors. Finished ones are
    kept in runs/bench_sim2real; the same command goes on from there.

    Of a robot with a tip, captured tips are learned from, also without what was commanded before them (without_memory);
    --points, --recipe and --no-baselines are of surfaces.

    \b
    Examples:
      ./softform bench sim2real --reality default --json -
      ./softform bench sim2real --reality mine.yaml --no-baselines
      ./softform bench sim2real --draws 10 --seed 1000 --json -
      ./softform bench sim2real --draws 10 --cluster auto    on the Ray cluster that this machine is a node of
      ./softform bench sim2real --robot tendon_rod --draws 20 --held-out 200 --json -
    """  # noqa: D301
    from softform_core.errors import SoftformError
    from softform_core.executors import make_executor
    from softform_core.paths import runs_dir
    from softform_core.robots import load_robot
    from softform_core.threads import one_thread
    from softform_core.training.recipe import RECIPES
    from softform_rig.reality import known_realities, load_reality
    from softform_studies.sim_to_real.bench_sim_to_real import BenchSettings, bench
    from softform_studies.sim_to_real.draws import DrawSettings, draw_figures, measure_draws

    def say(line: str) -> None:
        click.echo(line, err=True)

    if recipe_name not in RECIPES:
        raise click.BadParameter(f"'{recipe_name}' is none of {', '.join(sorted(RECIPES))}.", param_hint="--recipe")
    if reality and draws:
        raise click.UsageError("--reality and --draws exclude each other.")
    robot, executor = load_robot(robot_name), make_executor(jobs, cluster)
    if not robot.surfaces:
        _tips(robot, reality, draws, frames, held_out, seed, executor, json_path)
        return
    frames = frames or 40
    if draws:
        seeds, kept = range(seed, seed + draws), runs_dir() / "bench_sim2real"
        how = DrawSettings(frames, held_out, points, RECIPES[recipe_name])
        with one_thread():
            measured = measure_draws(robot, seeds, how, kept, executor, say, sys.stderr.isatty())
        about = {"robot": robot.name, "recipe": recipe_name, "first_seed": seed, "frames": frames}
        report_figures(about | draw_figures(measured), json_path)
        return
    names = [reality] if reality else known_realities(robot.body.kind)
    realities = [load_reality(name, robot) for name in names]
    settings = BenchSettings(
        frames, held_out, points, seed, RECIPES[recipe_name], baselines, executor, sys.stderr.isatty()
    )
    figures: list[dict[str, object]] = []
    with one_thread():
        for each in realities:
            try:
                figures.append(bench(robot, each, settings, say))
            except SoftformError as error:
                if reality:
                    raise
                # What the other realities showed, minutes each, must not be lost.
                say(f"  failed: {error}")
                figures.append({"reality": each.name, "error": str(error)})
    report_figures(figures[0] if reality else figures, json_path)
    if any("error" in each for each in figures):
        sys.exit(1)


def _tips(
    robot: "Robot",
    reality: str | None,
    draws: int | None,
    tips: int | None,
    held_out: int,
    seed: int,
    executor: "Executor",
    json_path: str | None,
) -> None:
    """Measure a robot with a tip; arguments as of `sim2real`."""
    from softform_rig.reality import known_realities, load_reality
    from softform_studies.sim_to_real.tips import TipSettings, measure_tip_draws, measure_tips, tip_draw_figures
    from softform_studies.waypoints.capture_tips import tips_of_paper

    context = click.get_current_context()
    of_surfaces = {"points": "--points", "recipe_name": "--recipe", "baselines": "--no-baselines"}
    for name, option in of_surfaces.items():
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option} does not fit the robot '{robot.name}', which has a tip.")
    settings = TipSettings(tips or tips_of_paper(robot), held_out, seed)
    if draws:
        seeds = range(seed, seed + draws)
        each = measure_tip_draws(robot, seeds, settings, executor, lambda line: click.echo(line, err=True))
        about = {"robot": robot.name, "first_seed": seed, "tips": settings.tips}
        report_figures(about | tip_draw_figures(each), json_path)
        return
    names = [reality] if reality else known_realities(robot.body.kind)
    found = [measure_tips(robot, load_reality(name, robot), settings) for name in names]
    report_figures(found[0] if reality else found, json_path)
