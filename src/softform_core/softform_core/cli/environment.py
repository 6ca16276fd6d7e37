"""Commands around `./softform` itself: programs and a shell in its environment, completion, what the script does."""

import os
import sys
from pathlib import Path

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    get_completion_class,
)

from softform_core.errors import SoftformError
from softform_core.paths import config_dir

COMPLETE = "_SOFTFORM_COMPLETE"
"""Variable by which a shell asks for completions."""

_PASSED_ON = {"ignore_unknown_options": True, "allow_interspersed_args": False}
_SHELLS = ("bash", "zsh", "fish")


class _OrFiles(ShellComplete):
    """Completion that offers files where it knows nothing else, as shells do by themselves."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        return super().get_completions(args, incomplete) or [CompletionItem(incomplete, type="file")]


@add_completion_class
class _Bash(_OrFiles, BashComplete):
    pass


@add_completion_class
class _Zsh(_OrFiles, ZshComplete):
    pass


@add_completion_class
class _Fish(_OrFiles, FishComplete):
    pass


@click.command(context_settings=_PASSED_ON)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[FILE | -m MODULE | -c CODE] [ARGUMENT]...")
def python(words: tuple[str, ...]) -> None:
    """Run Python, with a program of yours, where Softform and ROS can be imported.

    Any other Python lacks the paths that ROS needs: imports fail there, or end with "invalid allocator". Without a FILE
    it is Python's prompt.

    \b
    Examples:
      ./softform python my_planner.py --rate 20
      ./softform python -m pip list
      ./softform python -c 'from softform_client.client import ShapeClient'
    """  # noqa: D301 - click reads the escape as "keep these lines"
    os.execv(sys.executable, [sys.executable, *words])


@click.command(context_settings=_PASSED_ON)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[PROGRAM [ARGUMENT]...]")
def shell(words: tuple[str, ...]) -> None:
    """Open a shell (bash) where Softform and ROS can be imported, and `softform` completes its commands.

    A PROGRAM is started there instead; -c and a line of commands is for bash, as usual.

    \b
    Examples:
      ./softform shell
      ./softform shell tensorboard --logdir runs/train
    """  # noqa: D301
    if words[:1] == ("-c",):
        words = ("bash", *words)
    words = words or ("bash", "--rcfile", str(config_dir() / "shell.bash"), "-i")
    try:
        os.execvp(words[0], words)
    except OSError as error:
        raise SoftformError(
            f"{words[0]} cannot be started: {error.strerror}.", "Install it, or name another."
        ) from error


@click.command()
@click.argument("name", type=click.Choice(_SHELLS), required=False, metavar=f"[{'|'.join(_SHELLS)}]")
def completion(name: str | None) -> None:
    """Print what makes a shell complete commands, options, robots and files; yours unless another is named.

    \b
    Examples:
      source <(./softform completion)                          for this terminal
      ./softform completion bash >> ~/.bashrc                  for all
      ./softform completion fish > ~/.config/fish/completions/softform.fish
    """  # noqa: D301
    from softform_core.cli.main import main

    name = name or Path(os.environ.get("SHELL", "bash")).name
    made_by = get_completion_class(name)
    if made_by is None:
        raise SoftformError(f"Nothing is known of the shell '{name}'.", f"Name one of {', '.join(_SHELLS)}.")
    click.echo(made_by(main, {}, "softform", COMPLETE).source())


_BY_THE_SCRIPT = SoftformError("The script ./softform does this, not Python.", "Call ./softform in a checkout.")


# Here they are listed and explained.
@click.command()
def build() -> None:
    """Build the workspace anew, which other commands do by themselves where it is needed.

    It is after a change of messages, packages, launch files or settings. Python files are linked: what is changed in
    them takes effect at once. The whole output is in runs/build.log.
    """
    raise _BY_THE_SCRIPT


@click.command(context_settings=_PASSED_ON)
@click.option("--quick", is_flag=True, help="Without those that start nodes or processes, or train.")
@click.option("--long", is_flag=True, help="Those of long duration, too, which CI leaves out; alone, or with pytest's.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[PYTEST ARGUMENT]...")
def test(**options: object) -> None:
    """Check format, lint rules and types, then run all tests, or those that pytest is told.

    On two cores they take a quarter of an hour, --long twice that, --quick two minutes once kernels are compiled. A
    file that is named runs whole.

    \b
    Examples:
      ./softform test --quick
      ./softform test --long
      ./softform test src/softform_ik -k follow
    """  # noqa: D301
    raise _BY_THE_SCRIPT
