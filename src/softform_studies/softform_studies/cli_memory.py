"""Command `softform bench memory`."""

import click

from softform_core.cli.shared import cluster_option, json_option, report_figures, robot_option


@click.command()
@click.option("--draws", default=30, show_default=True, type=click.IntRange(min=1), help="Realities at random.")
@robot_option
@click.option("--frames", default=40, show_default=True, type=click.IntRange(min=5), help="Frames to learn from.")
@click.option("--held-out", default=20, show_default=True, type=click.IntRange(min=1), help="Actuations judged.")
@click.option("--points", default=1000, show_default=True, type=click.IntRange(min=100), help="Points of each scan.")
@click.option("--seed", default=1000, show_default=True, type=click.IntRange(min=0), help="Of the first draw.")
@click.option("--surfaces", is_flag=True, help="Also learn sim-to-real, a few minutes each.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes.  [default: one for each core]")
@cluster_option
@json_option
def memory(
    draws: int,
    robot_name: str,
    frames: int,
    held_out: int,
    points: int,
    seed: int,
    surfaces: bool,
    jobs: int | None,
    cluster: str | None,
    json_path: str | None,
) -> None:
    """Measure how much of what realities remember is learned, by a learner that is not told their laws.

    Realities are drawn at random (seeds S, S + 1, …). `felt` says how much of what a body feels stays unexplained, as
    root mean squares over half the range, medians of the draws: memory-free, by one play, by the memory that is
    learned. `one_move` says how far what is felt is from what is wanted after one move, commanded memory-free and
    through the state. `felt_by_law` says it apart for plays, which are the learner's own, and for Bouc and Wen's law.
    With --surfaces sim-to-real is learned memory-free, with the memory, and told what the body felt. Finished draws are
    kept in runs/bench_memory; the same command goes on from there.

    \b
    Examples:
      ./softform bench memory --json -
      ./softform bench memory --surfaces --draws 20 --robot compressible --frames 300 --json -
    """  # noqa: D301
    from softform_core.executors import make_executor
    from softform_core.paths import runs_dir
    from softform_core.robots import load_robot
    from softform_studies.sim_to_real.remembered import RememberedSettings, measure_remembered, remembered_figures

    settings = RememberedSettings(frames, held_out, points, surfaces)
    measured = measure_remembered(
        load_robot(robot_name, "surface"),
        range(seed, seed + draws),
        settings,
        runs_dir() / "bench_memory",
        make_executor(jobs, cluster),
        lambda line: click.echo(line, err=True),
    )
    about = {"robot": robot_name, "first_seed": seed, "frames": frames}
    report_figures(about | remembered_figures(measured), json_path)
