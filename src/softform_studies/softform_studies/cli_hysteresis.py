"""Commands `softform bench hysteresis` and `softform bench one-move`."""

from dataclasses import replace
from pathlib import Path

import click

from softform_core.cli.shared import PATH, json_option, report_figures


@click.command()
@click.option("--shapes", type=PATH, help="Store of `histories`.  [default: data/tendon_robot/histories.zarr]")
@click.option("--quick", is_flag=True, help="Few shapes and short training: three minutes, and no figures to cite.")
@click.option("--learned", type=click.IntRange(min=60), help="Shapes that models learn from, at most.  [default: all]")
@click.option("--steps", type=click.IntRange(min=10), help="Of the optimiser, of each network.  [default: 8000]")
@click.option("--printed/--no-printed", default=True, help="Whether the paper's own schedule of training runs, too.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes.  [default: one for each core]")
@json_option
def hysteresis(
    shapes: Path | None,
    quick: bool,
    learned: int | None,
    steps: int | None,
    printed: bool,
    jobs: int | None,
    json_path: str | None,
) -> None:
    """Shapes that remember: paper 004's decoder of clouds against what else tells them, and against ours.

    All learn from clouds of two depth cameras and are judged by clouds and by the true surface, centre line and tip:
    single moves, split as printed and without leakage, and six trajectories. About two hours on two cores; finished
    models are kept in runs/bench_hysteresis, and the same command goes on from there.

    \b
    Examples:
      ./softform histories --robot tendon_robot
      ./softform bench hysteresis --json hysteresis.json
      ./softform bench hysteresis --learned 1500 --steps 2000 --no-printed --json -
    """  # noqa: D301
    from softform_core.executors import make_executor
    from softform_core.paths import data_dir, runs_dir
    from softform_studies.hysteresis.bench import hysteresis as run
    from softform_studies.hysteresis.laboratory import QUICK, Plan

    path = data_dir() / "tendon_robot" / "histories.zarr" if shapes is None else shapes
    plan = QUICK if quick else Plan()
    plan = replace(
        plan,
        learned=plan.learned if learned is None else learned,
        steps=plan.steps if steps is None else steps,
        printed=plan.printed and printed,
    )
    folder, executor = runs_dir() / "bench_hysteresis", make_executor(jobs)
    report_figures(run(path, plan, folder, executor, lambda line: click.echo(line, err=True)), json_path)


@click.command("one-move")
@click.option("--shapes", type=PATH, help="Store of `histories`.  [default: data/tendon_robot/histories.zarr]")
@click.option("--robots", default=48, show_default=True, type=click.IntRange(min=2), help="Each with its own target.")
@click.option("--learned", default=831, show_default=True, type=click.IntRange(min=60), help="Shapes to learn from.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Of pasts and targets.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes.  [default: one for each core]")
@json_option
def one_move(
    shapes: Path | None, robots: int, learned: int, seed: int, jobs: int | None, json_path: str | None
) -> None:
    """How near the tip of a robot that remembers is after one move, and after three corrections.

    Robots of the reality `printed`, each behind four random moves, are sent to where a tip has been: by a model of the
    present configuration alone, as it is usual, and through the state: straight, from below, past the target and back,
    by way of home, or by the way that promises most. What each takes is told in seconds.

    \b
    Examples:
      ./softform histories --robot tendon_robot
      ./softform bench one-move --json -
    """  # noqa: D301
    from softform_core.executors import make_executor
    from softform_core.paths import data_dir, runs_dir
    from softform_studies.hysteresis.laboratory import Plan
    from softform_studies.hysteresis.one_move import one_move as run

    path = data_dir() / "tendon_robot" / "histories.zarr" if shapes is None else shapes
    plan = Plan(learned=learned, ours=learned, printed=False, curve=(), weights=())
    folder, executor = runs_dir() / "bench_hysteresis", make_executor(jobs)
    report_figures(run(path, plan, robots, seed, folder, executor, lambda line: click.echo(line, err=True)), json_path)
