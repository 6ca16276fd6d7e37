"""The option `--pose` of commands that take a target: where it lies."""

import click

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
"""What helps where a target is out of reach."""
