"""Command `softform train prior`."""

import sys

import click

from softform_core.cli.shared import robot_option


@click.command()
@robot_option
@click.option(
    "--draws", default=40, show_default=True, type=click.IntRange(min=3, max=1000), help="Realities to learn from."
)
@click.option(
    "--seed", default=400, show_default=True, type=click.IntRange(min=0, max=999), help="Of the first reality."
)
def prior(robot_name: str, draws: int, seed: int) -> None:
    """Learn how real copies of a robot differ from its simulation, from realities drawn at random.

    `train s2r` then needs fewer frames for the same accuracy, and errs less where it errs most: it takes the prior in
    models/ROBOT into account by itself. The robot needs its forward kinematics. About five seconds a reality.

    \b
    Examples:
      ./softform train prior                       of the membrane, three minutes
      ./softform train prior --robot mine.yaml && ./softform train s2r --robot mine.yaml
    """  # noqa: D301
    from softform_core.paths import models_of
    from softform_core.robots import load_robot
    from softform_core.threads import one_thread
    from softform_core.training.only_training import only_training
    from softform_studies.sim_to_real.learn_prior import learn_prior

    robot = load_robot(robot_name, needs="surface")
    with only_training(robot, models_of(robot.name)):
        with one_thread():
            learned = learn_prior(
                robot, range(seed, seed + draws), lambda line: click.echo(line, err=True), sys.stderr.isatty()
            )
        path = learned.save(models_of(robot.name))
    click.echo(f"{path}: {len(learned.modes)} modes of {draws} realities.")
    click.echo(f"Use it: ./softform train s2r --robot {robot.given_as}")
