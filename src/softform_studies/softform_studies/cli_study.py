"""Command `softform study`."""

import sys
from pathlib import Path
from typing import Any

import click

from softform_core.cli.shared import going_on, report_figures, robot_names
from softform_core.paths import DEFAULT_ROBOT, runs_dir

_NAMES = (
    *("layers", "frames", "points", "kernels", "neurons", "geometric", "surrogate", "missing"),
    *("mould", "arm", "mannequin", "stick", "torsos"),
)
"""Names in the order of `all`: `layers` comes first, as it needs shapes simulated before, and says so at once."""

_ROBOTS = {"arm": "compressible", "mannequin": "mannequin", "stick": "manipulator", "torsos": "mannequin"}
"""Robots of studies that use another than the membrane, unless --robot is given."""


@click.command()
@click.argument("name", type=click.Choice([*_NAMES, "all"]))
@click.option("--reality", default="default", show_default=True, metavar="NAME|FILE", help="What is captured.")
@click.option(
    "--robot",
    "robot_name",
    show_default="the study's",
    shell_complete=robot_names,
    help="Name in config/robots, or a .yaml.",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Of frames and training.")
@click.option("--quick", is_flag=True, help="Tiny trainings that only show the form; the figures mean nothing.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="[default: runs/studies/REALITY; of a robot that --robot names, runs/studies/REALITY-ROBOT]",
)
@click.option("--json", "json_path", metavar="FILE", help="Also write the table to FILE as JSON; - is standard output.")
def study(
    name: str, reality: str, robot_name: str | None, seed: int, quick: bool, output: Path | None, json_path: str | None
) -> None:
    """Regenerate a figure of the paper on the virtual rig: a table, a JSON file and a plot.

    \b
    frames      Fig. 11: ours and direct learning by the number of frames
    points      Fig. 13: by the points of a scan, beside markers
    kernels     Fig. 14: by the number of kernels, with the time for 1e5 warps
    neurons     Fig. 9b: by the neurons of N_rbf
    geometric   Fig. 15: with and without geometric regularisation
    surrogate   Fig. 16: input shapes from N_fk and from the simulator
    missing     Fig. 12: by the missing share of the scans, against w = 1 and static correspondences
    mould       Fig. 19: the gap between a tool path and the true membrane, with and without sim-to-real
    layers      Fig. 9a: the largest error of N_fk by its hidden layers and their neurons
    arm         Fig. 18: the compressible manipulator, Chamfer distances of 200 test shapes
    mannequin   Fig. 17: the mannequin, errors at four held-out actuations after ICP
    stick       Fig. 20: the soft manipulator past a stick, planned with and without sim-to-real
    torsos      Figs. 21, 22, 24: the true mannequin brought to ten bodies, with and without sim-to-real and ICP

    A study takes minutes to an hour. Press Ctrl-C, or lose the power: the same command goes on where it stopped.

    \b
    Examples:
      ./softform study kernels
      ./softform study all --reality mine.yaml --output runs/mine
    """  # noqa: D301
    from softform_core.robots import load_robot
    from softform_core.threads import one_thread
    from softform_rig.reality import load_reality
    from softform_studies.studies.catalogue import Scale
    from softform_studies.studies.study import by_series, carry_out

    robot = load_robot(robot_name or _ROBOTS.get(name, DEFAULT_ROBOT), "surface")
    described = load_reality(reality, robot)
    of_robot = "" if robot_name is None else f"-{robot.name}"
    folder = runs_dir() / "studies" / f"{described.name}{of_robot}" if output is None else output
    figures: dict[str, Any] = {}
    with going_on(folder), one_thread():
        for each in [one for one in _NAMES if one not in _ROBOTS] if name == "all" else [name]:
            for path in carry_out(each, robot, described, Scale.of(robot, quick), seed, folder, sys.stderr.isatty()):
                click.echo(str(path), err=json_path == "-")
            figures[each] = by_series(folder / f"{each}.json")
            figures[f"{each}_picture"] = str(folder / f"{each}.png")
    if json_path is not None:
        report_figures(figures, json_path)
