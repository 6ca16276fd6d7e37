"""Command `softform bench planning`."""

import sys
from pathlib import Path

import click

from softform_core.cli.shared import json_option, report_figures, robot_option


@click.command()
@click.option("--seeds", default=6, show_default=True, type=click.IntRange(min=1), help="Scenes; none is left out.")
@click.option("--gap", default=5.0, show_default=True, type=click.FloatRange(min=0.0), help="mm, target to stick.")
@click.option("--reality", default="default", show_default=True, metavar="NAME|FILE", help="In which the robot moves.")
@click.option(
    "--sim-to-real",
    type=click.Path(path_type=Path, file_okay=False),
    help="Model of that reality.  [default: the one that ships for the rig's default]",
)
@robot_option
@click.option("--picture", type=click.Path(path_type=Path, dir_okay=False), help="Draw a scene into this PNG file.")
@json_option
def planning(
    seeds: int,
    gap: float,
    reality: str,
    sim_to_real: Path | None,
    robot_name: str,
    picture: Path | None,
    json_path: str | None,
) -> None:
    """Motions past a stick that collide in reality, planned without and with sim-to-real (Fig. 20 of the paper).

    In each scene the robot shall take one of its real shapes; a stick hangs so many millimetres over that shape. The
    motion is planned by the simulated surface alone and by the learned one with its uncertainty, and both are followed
    in the reality, whose true surface is measured against the stick at every waypoint.

    \b
    Examples:
      ./softform bench planning --picture planning.png
      ./softform bench planning --gap 10 --seeds 3
    """  # noqa: D301
    from softform_core.files import write_figure
    from softform_core.robots import load_robot
    from softform_core.threads import one_thread
    from softform_core.units import MM_PER_M
    from softform_studies.planned_motion.bench import compare, figures_of
    from softform_studies.planned_motion.picture import draw_comparison, pictured

    robot = load_robot(robot_name, "surface")
    with one_thread():
        comparisons = compare(
            robot, reality, seeds, sim_to_real, gap / MM_PER_M, lambda line: click.echo(line, file=sys.stderr)
        )
    report_figures(figures_of(comparisons), json_path)
    if picture is not None:
        chosen = pictured(comparisons)
        figure = draw_comparison(chosen)
        title = f"Motion past a stick: scene {chosen.seed}, reality '{reality}'"
        figure.suptitle(title, fontsize=14, fontweight="bold", x=0.01, ha="left")
        write_figure(picture, figure)
        click.echo(f"{picture}", file=sys.stderr)
