"""Command `softform bench torsos`."""

from pathlib import Path

import click

from softform_core.cli.shared import json_option, report_figures


@click.command()
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Of the people drawn.")
@click.option(
    "--starts", default=32, show_default=True, type=click.IntRange(min=1), help="Of the search for best fits."
)
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), help="[default: runs/torsos]")
@json_option
def torsos(seed: int, starts: int, output: Path | None, json_path: str | None) -> None:
    """Table III of paper 000: inverse kinematics of the mannequin to ten torsos at 1:2, beside Algorithm 2.

    People are drawn with the package anny (pip install anny; its first use takes minutes): seven of the mannequin's
    size, three of another. The torsos are written as B1.ply, B2.ply … (m); table3.png shows them, and how far the shape
    found is from each.

    \b
    Examples:
      ./softform bench torsos --json torsos.json
      ./softform bench torsos --seed 7 --output runs/others
    """  # noqa: D301
    from softform_core.paths import runs_dir
    from softform_core.robots import load_robot
    from softform_core.shapes.write import write_ply
    from softform_studies.torsos.bench import compare, deformation_mm, torso_pipeline
    from softform_studies.torsos.bodies import BODIES, draw_bodies
    from softform_studies.torsos.picture import draw_torsos
    from softform_studies.torsos.report import figures_of, table
    from softform_studies.torsos.targets import torso_targets

    robot = load_robot("mannequin", "surface")
    folder = runs_dir() / "torsos" if output is None else output
    pipeline = torso_pipeline(robot)
    targets = torso_targets(robot, pipeline, draw_bodies(BODIES, seed))
    folder.mkdir(parents=True, exist_ok=True)
    for target in targets:
        write_ply(folder / f"{target.name}.ply", target.shape)
    cases = compare(robot, pipeline, targets, lambda line: click.echo(line, err=True), starts)
    draw_torsos(folder / "table3.png", robot, cases)
    for line in [*table(cases), str(folder / "table3.png")]:
        click.echo(line, err=True)
    figures = figures_of(cases, deformation_mm(robot, pipeline), pipeline.sim_to_real is not None)
    report_figures({**figures, "picture": str(folder / "table3.png")}, json_path)
