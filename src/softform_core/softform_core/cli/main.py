"""The command `softform`: a thin shell around commands that packages register as `softform.commands` entry points."""

import sys

import click

from softform_core.cli.registered import RegisteredCommands
from softform_core.errors import SoftformError


class _Commands(RegisteredCommands):
    entry_point_group = "softform.commands"
    # The steps of a lab's work, in the order in which they are taken.
    order = (
        *("demo", "doctor", "install-service", "robot", "channels", "identify-plant", "simulate", "import", "train"),
        *("launch", "status", "rig", "commission", "reach", "follow", "plan", "stream", "capture", "stop", "reset"),
        *("calibrate-cameras", "print-code", "collect", "evaluate", "record", "replay"),
        *("bench", "study", "figures", "convert"),
    )

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except SoftformError as error:
            click.echo(f"softform: {error}", err=True)
            sys.exit(2)


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Make a pneumatic soft robot take the shape you ask for.

    The loop of a lab's work: simulate, train fk, launch, reach shapes, report. Begin with `./softform demo`, which
    does it once on a virtual rig. `./softform test` runs all tests (`--quick`: those that need no stack and no
    training), `./softform build` builds the workspace anew.
    """


if __name__ == "__main__":
    main(prog_name="softform")
