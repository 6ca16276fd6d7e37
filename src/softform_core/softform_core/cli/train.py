"""Commands `softform train ...`: from data to models with cards."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from softform_core.cli.registered import RegisteredCommands
from softform_core.cli.shared import PATH, cluster_option, device_option, going_on, report_figures, robot_option
from softform_core.paths import data_dir, models_of, runs_dir
from softform_core.robots import Robot, load_robot

if TYPE_CHECKING:
    from softform_core.training.learn_sim_to_real import LearnRequest


class _Training(RegisteredCommands):
    entry_point_group = "softform.training"
    sections = {"Commands": ("fk", "prior", "s2r")}


@click.command(cls=_Training)
def train() -> None:
    """Train a network from data and write it to models/, with a card.

    N_fk, the forward kinematics, learns the shapes of `./softform simulate`; N_s2r, the sim-to-real transfer, learns
    the frames of `./softform collect`.
    """


@click.command()
@robot_option
@click.option(
    "--recipe",
    "recipe_name",
    type=click.Choice(["default", "paper"]),
    default="default",
    show_default=True,
    help="default: the better one, which ships. paper: batch norm and 150 epochs, as printed.",
)
@click.option("--data", type=PATH, help="Simulated shapes.  [default: data/ROBOT/simulation.zarr]")
@click.option("--output", type=PATH, help="Folder of the model.  [default: models/ROBOT]")
@click.option("--epochs", type=click.IntRange(min=1), help="Passes over the data.  [default: the recipe's]")
@click.option("--seed", default=0, show_default=True, help="Of the split, the first weights and the batches.")
@device_option
def fk(
    robot_name: str,
    recipe_name: str,
    data: Path | None,
    output: Path | None,
    epochs: int | None,
    seed: int,
    device: str | None,
) -> None:
    """Learn the forward kinematics: actuation to control points of the surface.

    Seven in ten simulated shapes train the network, the rest test it; errors are printed beside the floor that the
    B-spline fit sets. The model replaces the one in models/ROBOT, which every node loads. Press Ctrl-C, or lose the
    power: the same command goes on where it stopped. Curves: tensorboard --logdir runs/train

    \b
    Examples:
      ./softform simulate && ./softform train fk         the model that ships, about two minutes
      ./softform train fk --recipe paper --output /tmp/paper     as printed in the paper, to compare
      ./softform train fk --robot mine.yaml --data mine.zarr
      ./softform train fk --robot three_chamber        N_fk and N_J of a tip (paper 001)
    """  # noqa: D301
    robot = load_robot(robot_name)
    folder = models_of(robot.name) if output is None else output
    store = data_dir() / robot.name / "simulation.zarr" if data is None else data
    from softform_core.training.only_training import only_training

    if not robot.surfaces:
        given = {"--recipe": recipe_name != "default", "--epochs": epochs is not None, "--device": device is not None}
        _reject_options(robot.name, given)
        with only_training(robot, folder):
            _tip_fk(robot, store, folder, seed)
    else:
        _require_device(device)
        with only_training(robot, folder):
            _surface_fk(robot, store, folder, recipe_name, epochs, seed, device or "cpu")
    if folder == models_of(robot.name):
        of_surface = f"./softform demo --robot {robot.given_as} --target random"
        of_tip = f"./softform launch robot:={robot.given_as}, then ./softform follow TABLE"
        click.echo(f"Try it: {of_surface if robot.surfaces else of_tip}")


def _surface_fk(
    robot: Robot, store: Path, folder: Path, recipe_name: str, epochs: int | None, seed: int, device: str
) -> None:
    from softform_core.training.learn_forward_kinematics import learn_forward_kinematics, recipe_for
    from softform_core.training.shapes import load_training_shapes

    recipe = recipe_for(robot, recipe_name)
    if epochs is not None:
        recipe = replace(recipe, epochs=epochs)
    runs = runs_dir() / "train" / f"{robot.name}-fk"
    shapes = load_training_shapes(robot, store)
    click.echo(
        f"{len(shapes.actuation)} shapes; their B-spline surfaces fit to {shapes.fit.mean.mean():.3f} mm (mean), "
        f"{shapes.fit.max.max():.2f} mm (largest) at the vertices, {shapes.between:.2f} mm between them: the floor."
    )
    with going_on("the last checkpoint"):
        card = learn_forward_kinematics(robot, shapes, recipe, seed, runs, folder, device=device)

    errors = card.errors_mm
    click.echo(f"control points, mm     mean     largest   (best epoch {card.training.best_epoch})")
    for part, count, mean, largest in (
        ("training", card.split.train, errors.train_mean, errors.train_max),
        ("validation", card.split.validation, errors.validation_mean, errors.validation_max),
        ("test", card.split.test, errors.test_mean, errors.test_max),
    ):
        click.echo(f"  {part:<12}{count:>5}   {mean:7.3f}    {largest:7.2f}")
    click.echo(f"mean shape alone       {errors.mean_shape_mean:.2f}")
    click.echo(f"{folder}: {card.weights_bytes / 1e6:.2f} MB after {card.training.seconds:.0f} s.")


@click.command()
@robot_option
@click.option("--frames", "store", type=PATH, help="Captured frames.  [default: data/ROBOT/frames.zarr]")
@click.option(
    "--recipe",
    type=click.Choice(["default", "paper", "markers"]),
    help="default: the better one for scans. paper: as printed. markers: for frames by motion capture.  "
    "[default: by the frames]",
)
@click.option("--output", type=PATH, help="Folder of the model.  [default: models/ROBOT]")
@click.option("--seed", default=0, show_default=True, help="Of the points drawn, the folds and the first weights.")
@click.option(
    "--continue",
    "goes_on",
    is_flag=True,
    help="Go on from the model that is there, with the frames that the store has got since; kept only if better.",
)
@click.option(
    "--jobs", type=click.IntRange(min=1), help="Processes that train members of the ensemble.  [default: this one]"
)
@cluster_option
@device_option
@click.option(
    "--frames-needed", "asks", is_flag=True, help="Instead: say when more frames stop paying; no model is written."
)
@click.option(
    "--json", "json_path", metavar="FILE", help="With --frames-needed: figures to FILE; - is standard output."
)
def s2r(
    robot_name: str,
    store: Path | None,
    recipe: str | None,
    output: Path | None,
    seed: int,
    goes_on: bool,
    jobs: int | None,
    cluster: str | None,
    device: str | None,
    asks: bool,
    json_path: str | None,
) -> None:
    """Learn the sim-to-real transfer: where the real surface is, from captured frames, without correspondences.

    One frame in eight judges the model and is never trained on; errors are printed beside those of the simulation
    alone and the floor that the capture's noise sets. Nodes that run take the new model into use by themselves. Press
    Ctrl-C, or lose the power: the same command goes on where it stopped.

    \b
    Examples:
      ./softform collect && ./softform train s2r         40 frames, then about a minute
      ./softform collect --frames 60 && ./softform train s2r --continue      20 more, while the stack runs
      ./softform train s2r --jobs 2                    two members of the ensemble at a time; the same model
      ./softform train s2r --frames-needed             have enough been captured?
      ./softform train s2r --frames worn.zarr --output /tmp/worn --recipe paper
      ./softform train s2r --robot three_chamber       of a tip (paper 001), from data/three_chamber/tips.zarr
    """  # noqa: D301
    from softform_core.training.only_training import only_training

    robot = load_robot(robot_name)
    folder = models_of(robot.name) if output is None else output
    if json_path is not None and not asks:
        raise click.UsageError("--json goes with --frames-needed; a model's figures are in its sim_to_real.json.")
    of_a_model = {"--recipe": recipe, "--continue": goes_on or None, "--jobs": jobs, "--cluster": cluster}
    if asks and (given := [name for name, value in of_a_model.items() if value is not None]):
        raise click.UsageError(f"{', '.join(given)}: not with --frames-needed, which writes no model.")
    if not robot.surfaces:
        surface_only = {"--recipe": recipe is not None, "--continue": goes_on, "--frames-needed": asks}
        surface_only |= {"--jobs": jobs is not None, "--cluster": cluster is not None, "--device": device is not None}
        _reject_options(robot.name, surface_only)
        with only_training(robot, folder):
            _tip_s2r(robot, data_dir() / robot.name / "tips.zarr" if store is None else store, folder, seed)
        return
    if cluster is None:  # on a cluster its nodes have the device, or not
        _require_device(device)
    frames = data_dir() / robot.name / "frames.zarr" if store is None else store
    if asks:
        _surface_frames_needed(robot, frames, seed, json_path, device or "cpu")
        return
    from softform_core.executors import make_executor
    from softform_core.training.learn_sim_to_real import LearnRequest

    options = {
        "--robot": robot.given_as,
        "--frames": store and store.name,
        "--recipe": recipe,
        "--output": output and output.name,
        "--seed": seed,
        "--continue": "" if goes_on else None,
        "--device": device,
    }
    command = repeated("softform train s2r", options)
    executor = make_executor(1 if jobs is None and cluster is None else jobs, cluster)
    device = device or "cpu"
    learn_and_report(
        LearnRequest(robot, frames, recipe, folder, seed, goes_on, command, executor=executor, device=device)
    )


def repeated(command: str, options: Mapping[str, object]) -> str:
    """A command with its options, for the card; those that are None were not given."""
    given = (f"{name} {value}".rstrip() for name, value in options.items() if value is not None)
    return " ".join([command, *given])


def _reject_options(robot: str, given: dict[str, bool]) -> None:
    """Reject those of the options (option -> whether it was given) that only a robot with a surface has."""
    for option in (name for name, is_given in given.items() if is_given):
        raise click.UsageError(f"{option} does not fit the robot '{robot}', which has a tip.")


def _require_device(name: str | None) -> None:
    """Say that there is no such device before data are read, which takes longer."""
    if name is not None:
        from softform_core.torch_device import checked_device

        checked_device(name)


def _tip_fk(robot: Robot, store: Path, folder: Path, seed: int) -> None:
    """N_fk and N_J (paper 001)."""
    from softform_core.training.tips import learn_tip_kinematics

    card = learn_tip_kinematics(robot, store, folder, seed)
    click.echo(f"workspace {card.workspace_width_mm:.1f} mm wide; errors on {card.split.test} test samples:")
    for name, entry in (("N_fk", card.forward_kinematics), ("N_J", card.jacobian), ("line", card.centre_line)):
        if entry is not None:
            click.echo(f"  {name:<5} mean {entry.test_mean_percent:.3f} %, largest {entry.test_max_percent:.3f} %")
    click.echo(f"{folder}: {card.weights_bytes / 1e6:.2f} MB.")


def _tip_s2r(robot: Robot, store: Path, folder: Path, seed: int) -> None:
    from softform_core.training.tips import learn_tip_sim_to_real

    card = learn_tip_sim_to_real(robot, store, folder, seed)
    click.echo(f"distances to {card.split.test} captured tips of the test part, % of the workspace's width:")
    click.echo(f"  simulation alone  mean {card.before_mean_percent:6.3f}  largest {card.before_max_percent:6.3f}")
    entry = card.network
    click.echo(f"  with sim-to-real  mean {entry.test_mean_percent:6.3f}  largest {entry.test_max_percent:6.3f}")
    if (line := card.centre_line) is not None:
        click.echo(f"  centre line       mean {line.test_mean_percent:6.3f}  largest {line.test_max_percent:6.3f}")
    if card.memory:
        click.echo(f"memory: {card.memory}.")
    click.echo(f"{folder}: {card.weights_bytes / 1e6:.2f} MB.")


def _surface_frames_needed(robot: Robot, store: Path, seed: int, json_path: str | None, device: str) -> None:
    from softform_core.training.frames_needed import measure_frames_needed

    found = measure_frames_needed(robot, store, seed, device)
    if json_path != "-":
        click.echo(found.text)
    if json_path is not None:
        report_figures(found.as_dict(), json_path)


def learn_and_report(request: "LearnRequest") -> None:
    """Make the model, and print how good it is; exits with 1 if it is no better than what was there.

    Raises:
        SoftformError: If another process trains models of the robot, or as `learn_sim_to_real` says.
    """
    from softform_core.training.learn_sim_to_real import learn_sim_to_real
    from softform_core.training.only_training import only_training

    with only_training(request.robot, request.output), going_on("the last checkpoint"):
        learned = learn_sim_to_real(request, runs_dir() / "train" / f"{request.robot.name}-s2r", click.echo)
    card, errors, earlier = learned.card, learned.card.errors_mm, learned.earlier_errors
    click.echo(f"held-out frames, mm      mean    99 % below   ({errors.frames} frames)")
    click.echo(f"  simulation alone    {errors.before_mean:7.3f}      {errors.before_99_percentile:7.2f}")
    if earlier is not None:
        click.echo(f"  earlier model       {earlier.after_mean:7.3f}      {earlier.after_99_percentile:7.2f}")
    click.echo(f"  with sim-to-real    {errors.after_mean:7.3f}      {errors.after_99_percentile:7.2f}")
    if errors.noise_floor_mean is not None:
        click.echo(f"  scanner noise alone {errors.noise_floor_mean:7.3f}")
    if card.transfer.play:
        click.echo(f"memory: {card.transfer.memory}.")
    click.echo(
        f"uncertainty: {errors.within_one_sigma:.0%} within one standard deviation, "
        f"{errors.within_two_sigma:.0%} within two."
    )
    if learned.rejection:
        click.echo(
            f"softform: {learned.rejection} The model in {request.output} stays as it is; this one is kept aside in "
            f"{learned.folder}. Look at the new frames: ./softform evaluate --robot {request.robot.given_as} "
            f"--frames {request.store}",
            err=True,
        )
        raise SystemExit(1)
    click.echo(
        f"{learned.folder}: {card.weights_bytes / 1e6:.2f} MB after {card.training.seconds:.0f} s. Nodes that use "
        "this folder take it up within two seconds."
    )
