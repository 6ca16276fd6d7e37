"""`softform launch`: runs a launch file where the official `ros2 launch` is not there."""

import sys
from collections.abc import Mapping
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from softform_core.display import has_display
from softform_core.errors import SoftformError
from softform_core.paths import launch_dir
from softform_core.text import nearest
from softform_launch.launch_file import list_arguments, load_launch_file

_WHOLE_STACK = "softform"


def find_launch_file(name_or_path: str) -> Path:
    """Return a launch file given by path, or by its name in `launch/` with or without `.launch.xml`.

    Raises:
        SoftformError: If there is none.
    """
    is_path = "/" in name_or_path or name_or_path.endswith(".xml")
    for candidate in (
        launch_dir() / f"{name_or_path}.launch.xml",
        launch_dir() / name_or_path,
        *([Path(name_or_path)] if is_path else []),
    ):
        if candidate.is_file():
            return candidate
    known = ", ".join(_names())
    name, separator, value = name_or_path.partition("=")
    if separator:
        raise SoftformError(f"'{name_or_path}' is no launch file.", f"If it is an argument, write {name}:={value}.")
    raise SoftformError(
        f"There is no launch file '{name_or_path}'{nearest(name_or_path, _names())}.",
        f"Give a path, or one of: {known or 'none'}.",
    )


def _names() -> list[str]:
    return sorted(path.name.removesuffix(".launch.xml") for path in launch_dir().glob("*.launch.xml"))


def _completed(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    names = [name for name in _names() if name.startswith(incomplete)]
    return [CompletionItem(name) for name in names] or [CompletionItem(incomplete, type="file")]


def split_arguments(words: tuple[str, ...]) -> dict[str, str]:
    """Return `name:=value` words as a dictionary.

    Raises:
        SoftformError: If a word has another form, or a name comes twice.
    """
    arguments: dict[str, str] = {}
    for word in words:
        name, separator, value = word.partition(":=")
        if not separator or not name:
            right = ":=".join(word.split("=", 1)) if "=" in word else "name:=value"
            raise SoftformError(f"'{word}' is not a launch argument.", f"Write {right}.")
        if name in arguments:
            raise SoftformError(f"{name} is given as '{arguments[name]}' and as '{value}'.", "Give it once.")
        arguments[name] = value
    return arguments


@click.command()
@click.argument("file", default=_WHOLE_STACK, metavar="[FILE]", shell_complete=_completed)
@click.argument("arguments", nargs=-1, metavar="[NAME:=VALUE]...")
@click.option("--show-args", is_flag=True, help="List the arguments of the file, and start nothing.")
@click.option("--dry-run", is_flag=True, help="Print the commands that would run, and start nothing.")
@click.option(
    "--page/--no-page",
    default=None,
    help="Open the operator's page in the browser; by default in a terminal where there is a display, and not with CI.",
)
def launch(file: str, arguments: tuple[str, ...], show_args: bool, dry_run: bool, page: bool | None) -> None:
    """Start the whole stack on the virtual rig or on devices, or the nodes of another FILE; Ctrl-C stops them all.

    FILE is a path, or a name in launch/. Nothing is started where nodes of the same names run already.

    \b
    Examples:
      ./softform launch
      ./softform launch robot:=manipulator record:=true
      ./softform launch driver port:=/dev/ttyUSB0
      ./softform launch --show-args
    """  # noqa: D301 - click reads the escape as "keep these lines"
    if ":=" in file:
        file, arguments = _WHOLE_STACK, (file, *arguments)
    path = find_launch_file(file)
    if show_args:
        _show_arguments(path)
        return
    given = split_arguments(arguments)
    if (page or (page is None and in_terminal() and has_display())) and _has_page(path, given):
        given["open_page"] = "true"
    processes = load_launch_file(path, given)
    if dry_run:
        for process in processes:
            click.echo(process.shell_line())
        return

    # Imported here: it loads what only running needs.
    from softform_launch.launch_guardian import run_guarded
    from softform_launch.launch_runner import run_launch
    from softform_launch.sole_stack import hold_nodes

    held = hold_nodes(processes)  # noqa: F841 - until this process and the one that it forks have ended
    sys.exit(run_guarded(lambda: run_launch(processes)))


def in_terminal() -> bool:
    """Return whether somebody reads what is printed."""
    return sys.stdout.isatty()


def _has_page(path: Path, given: Mapping[str, str]) -> bool:
    """Return whether a launch of this file with these arguments has a page that it may be told to open."""
    names = [argument.name for argument in list_arguments(path)]
    return "open_page" in names and "open_page" not in given and given.get("console", "true").lower() in ("true", "1")


def _show_arguments(path: Path) -> None:
    for argument in list_arguments(path):
        default = "must be given" if argument.default is None else f"default: {argument.default}"
        choices = f" [{' | '.join(argument.choices)}]" if argument.choices else ""
        click.echo(f"{argument.name}{choices} ({default})\n    {argument.description}")


if __name__ == "__main__":
    try:
        launch()
    except SoftformError as error:
        sys.exit(f"softform: {error}")
