"""Groups of commands that packages register as entry points, so that one package's group holds another's commands."""

import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points

import click


class RegisteredCommands(click.Group):
    """Loads a command's module only when that command is asked for, so that every start is quick.

    Attributes:
        entry_point_group: Name of the group; a command is an entry point whose name is the command's.
        sections: Names by their headings, in the order in which they are listed; the others come after them.
    """

    entry_point_group = ""
    sections: Mapping[str, Sequence[str]] = {}

    @cached_property
    def _found(self) -> dict[str, EntryPoint]:
        return {point.name: point for point in entry_points(group=self.entry_point_group)}

    @cached_property
    def _by_heading(self) -> dict[str, list[str]]:
        others = sorted(self._found.keys() - {name for names in self.sections.values() for name in names})
        headed = {**self.sections, "Others" if self.sections else "Commands": others}
        return {heading: [name for name in names if name in self._found] for heading, names in headed.items()}

    def list_commands(self, ctx: click.Context | None) -> list[str]:
        """Names of the registered commands."""
        return [name for names in self._by_heading.values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, or None."""
        point = self._found.get(cmd_name)
        return None if point is None else point.load()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names, with the other words; an unknown one tells what is alike."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            # click would look among the commands that were added by hand.
            raise click.exceptions.NoSuchCommand(
                error.command_name, possibilities=self.list_commands(ctx), ctx=ctx
            ) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands of each section with the whole first sentence of their help."""
        for heading, names in self._by_heading.items():
            rows = [(name, self._found[name].load().get_short_help_str(sys.maxsize)) for name in names]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)
