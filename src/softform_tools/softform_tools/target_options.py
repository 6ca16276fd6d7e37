"""Options of commands that take a target: which one, on which virtual rig, and where it lies."""

import click

from softform_core.cli.shared import robot_names, with_options
from softform_core.paths import DEFAULT_ROBOT

FIXED, FREE, PLACE = POSES = ("fixed", "free", "place")

POSE_OPTION = click.option(
    "--pose",
    type=click.Choice(POSES),
    default=FIXED,
    show_default=True,
    help="Where the target lies: fixed, where its points say; free, moved by the solver to where it fits best; place, "
    "centred on the robot with its rim in the resting plane.",
)

POSE_ADVICE = {
    FIXED: "--pose place centres the target on the resting robot, --pose free lets the solver move it.",
    FREE: "--pose place centres the target on the resting robot.",
    PLACE: "It is centred on the robot already: look at its size, --unit and which side is up.",
}
"""Advice on each pose where a target is out of reach."""

target_options = with_options(
    click.option(
        "--target",
        metavar="FILE|dem|random",
        help="A mesh or cloud (PLY, OBJ, STL; see --unit), a measured terrain model, or a random reachable shape."
        "  [default: dem on a membrane, random on other bodies]",
    ),
    click.option("--unit", type=click.Choice(["m", "mm"]), default=None, help="Unit of FILE; needed with a FILE."),
    click.option(
        "--robot",
        default=DEFAULT_ROBOT,
        show_default=True,
        shell_complete=robot_names,
        help="A robot of config/robots, or a .yaml.",
    ),
    click.option(
        "--reality",
        default="default",
        show_default=True,
        metavar="NAME",
        help="Of config/realities, a .yaml, or drawn:SEED.",
    ),
    click.option("--seed", default=0, show_default=True, help="Of --target random and of the virtual scanner's noise."),
)
"""Decorator that adds `--target --unit --robot --reality --seed`."""
