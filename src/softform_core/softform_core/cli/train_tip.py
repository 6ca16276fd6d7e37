"""What `softform train` does for robots with a tip (paper 001)."""

from pathlib import Path

import click

from softform_core.robots import Robot


def reject_options(robot: str, given: dict[str, bool]) -> None:
    """Reject those of the options (option -> whether it was given) that only a robot with a surface has.

    Raises:
        click.UsageError: If one was.
    """
    for option in (name for name, is_given in given.items() if is_given):
        raise click.UsageError(f"{option} does not fit the robot '{robot}', which has a tip.")


def train_tip_kinematics(robot: Robot, store: Path, folder: Path, seed: int) -> None:
    """Train N_fk and N_J and say how good they are."""
    from softform_core.training.learn_tips import learn_tip_kinematics

    card = learn_tip_kinematics(robot, store, folder, seed)
    click.echo(f"workspace {card.workspace_width_mm:.1f} mm wide; errors on {card.split.test} test samples:")
    for name, entry in (("N_fk", card.forward_kinematics), ("N_J", card.jacobian)):
        click.echo(f"  {name:<5} mean {entry.test_mean_percent:.3f} %, largest {entry.test_max_percent:.3f} %")
    click.echo(f"{folder}: {card.weights_bytes / 1e6:.2f} MB.")


def train_tip_sim_to_real(robot: Robot, store: Path, folder: Path, seed: int) -> None:
    """Train N_s2r and say how good it is."""
    from softform_core.training.learn_tips import learn_tip_sim_to_real

    card = learn_tip_sim_to_real(robot, store, folder, seed)
    click.echo(f"distances to {card.split.test} captured tips of the test part, % of the workspace's width:")
    click.echo(f"  simulation alone  mean {card.before_mean_percent:6.3f}  largest {card.before_max_percent:6.3f}")
    entry = card.network
    click.echo(f"  with sim-to-real  mean {entry.test_mean_percent:6.3f}  largest {entry.test_max_percent:6.3f}")
    click.echo(f"{folder}: {card.weights_bytes / 1e6:.2f} MB.")
