"""Command `softform refresh`."""

from pathlib import Path

import click

from softform_core.cli.shared import PATH, robot_option
from softform_core.cli.train import learn_and_report, repeated
from softform_core.paths import data_dir, models_of
from softform_core.robots import load_robot


@click.command()
@robot_option
@click.option("--frames", "store", type=PATH, help="Captured since.  [default: data/ROBOT/refresh.zarr]")
@click.option("--output", type=PATH, help="Folder of the model.  [default: models/ROBOT]")
def refresh(robot_name: str, store: Path | None, output: Path | None) -> None:
    """Correct the sim-to-real model by five scans, after sensors have drifted or the body has softened.

    Gain and offset of every actuation are fitted anew; what else was learned stays. One of the scans judges the model.
    It replaces the old one only if it is better; nodes that run take it into use by themselves.

    \b
    Examples:
      ./softform collect --attach --frames 5 --output data/membrane/refresh.zarr && ./softform refresh
      ./softform refresh --frames monday.zarr --output models/membrane/rig_default
    """  # noqa: D301
    from softform_core.training.learn_sim_to_real import LearnRequest

    robot = load_robot(robot_name, "surface")
    options = {"--robot": robot.given_as, "--frames": store and store.name, "--output": output and output.name}
    learn_and_report(
        LearnRequest(
            robot,
            data_dir() / robot.name / "refresh.zarr" if store is None else store,
            None,
            models_of(robot.name) if output is None else output,
            0,
            False,
            repeated("softform refresh", options),
            refreshes=True,
        )
    )
