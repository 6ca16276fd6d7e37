"""Groups of commands that packages register as entry points, so that one package's group holds another's commands."""

from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points

import click


class RegisteredCommands(click.Group):
    """Loads a command's module only when that command is asked for, so that every start is quick.

    Attributes:
        entry_point_group: Name of the group; a command is an entry point whose name is the command's.
        order: Names in the order in which they are listed; the others come after them.
    """

    entry_point_group = ""
    order: Sequence[str] = ()

    def _found(self) -> dict[str, EntryPoint]:
        return {point.name: point for point in entry_points(group=self.entry_point_group)}

    def list_commands(self, ctx: click.Context | None) -> list[str]:
        """Names of the registered commands."""
        last = len(self.order)
        return sorted(self._found(), key=lambda name: (self.order.index(name) if name in self.order else last, name))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, or None."""
        point = self._found().get(cmd_name)
        return None if point is None else point.load()
