"""The command `softform`: a thin shell around commands that packages register as `softform.commands` entry points."""

import sys
from importlib.metadata import EntryPoint, entry_points

import click

from softform_core.errors import SoftformError

EXIT_USER_ERROR = 2

# The steps of a lab's work, in the order in which they are taken; a command that is not here comes after them.
_ORDER = ("demo", "doctor", "simulate", "train", "launch", "reach", "collect", "evaluate", "bench")


class _RegisteredCommands(click.Group):
    """Loads a command's module only when that command is asked for, so that every start is quick."""

    def _found(self) -> dict[str, EntryPoint]:
        return {point.name: point for point in entry_points(group="softform.commands")}

    def list_commands(self, ctx: click.Context) -> list[str]:
        names = self._found()
        return sorted(names, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        point = self._found().get(cmd_name)
        return None if point is None else point.load()

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except SoftformError as error:
            click.echo(f"softform: {error}", err=True)
            sys.exit(EXIT_USER_ERROR)


@click.command(cls=_RegisteredCommands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Make a pneumatic soft robot take the shape you ask for.

    The loop of a lab's work: simulate, train fk, launch, reach shapes, report. Begin with `./softform demo`, which
    does it once on a virtual rig. `./softform test` runs all tests, `./softform build` builds the workspace anew.
    """


if __name__ == "__main__":
    main(prog_name="softform")
