"""The command `softform`: a thin shell around commands that packages register as `softform.commands` entry points."""

import sys

import click

from softform_core.cli.environment import COMPLETE
from softform_core.cli.registered import RegisteredCommands
from softform_core.deferred import defer_unused_parts
from softform_core.errors import SoftformError


class _Commands(RegisteredCommands):
    entry_point_group = "softform.commands"
    sections = {
        "Set up": ("demo", "doctor", "docs", "python", "shell", "completion", "install-service", "test", "build"),
        "Describe a robot": ("robot", "picture", "skin", "channels", "identify-plant"),
        "Simulate and import": ("simulate", "import"),
        "Capture and learn": ("calibrate-cameras", "print-code", "register", "collect", "train", "refresh"),
        "Launch": ("launch", "rig", "commission", "status"),
        "Command a stack that runs": (
            *("home", "reach", "follow", "plan", "stream", "capture", "run", "release", "stop", "reset"),
        ),
        "Record": ("record", "replay"),
        "Look and judge": ("shape", "evaluate", "bench", "study", "histories", "figures"),
    }

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except SoftformError as error:
            click.echo(f"softform: {error}", err=True)
            sys.exit(2)


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def main() -> None:
    """Make a soft robot, driven by pressures or tendons, take the shape you ask for.

    Begin with `./softform demo`, which does it once on a virtual rig. Then comes a lab's work in the order of these
    headings; `./softform COMMAND --help` teaches each.
    """


def start(name: str = "softform") -> None:
    """Run the command line in a process of its own, which it adapts to itself."""
    defer_unused_parts()
    main(prog_name=name, complete_var=COMPLETE)


if __name__ == "__main__":
    start("./softform")
