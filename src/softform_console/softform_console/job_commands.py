"""The commands that can be jobs, and the words with which they may be started: what the commands themselves take.

A page gives no paths: a job reads and writes where its command does by default. What it gives is parsed by the
command's own parser before anything is started.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import click

from softform_console.job_messages import JobKind, JobOption
from softform_core.cli.main import main
from softform_core.errors import SoftformError
from softform_core.paths import described_names

REPLAY = "replay"
COLLECT = "collect"
COMMISSION = "commission"
MOVING, ASKING = (COLLECT, COMMISSION), (COMMISSION,)
"""Jobs that move the robot, and those that ask for answers meanwhile."""

_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:+]*")
_OPTIONS = {
    "simulate": ("--robot", "--samples", "--segments", "--jobs", "--device", "--seed"),
    "train fk": ("--robot", "--recipe", "--epochs", "--seed", "--device"),
    "train s2r": ("--robot", "--recipe", "--continue", "--frames-needed", "--jobs", "--device", "--seed"),
    COLLECT: ("--frames", "--via", "--reference-every", "--seed"),
    COMMISSION: ("--share",),
    "evaluate": ("--robot", "--all", "--device"),
    "study": ("", "--robot", "--quick", "--seed"),
    REPLAY: ("--rate", "--loop"),
}
"""Options that a page may give, by command; the empty one is the argument."""

_NO_ROBOT = ("study", *MOVING, REPLAY)
"""Commands that are not given the console's robot: they have one of their own, or are bound to this stack."""


@dataclass(frozen=True)
class JobCommands:
    """Parses what pages ask for.

    Args:
        robot: The console's robot, as commands are given it.
        namespace: Where its stack runs, for what moves it.
        recording: Returns the folder of a recording by its path in the folder of runs; raises SoftformError.
    """

    robot: str
    namespace: str
    recording: Callable[[str], str]

    @cached_property
    def kinds(self) -> list[JobKind]:
        """The commands with their options; `replay` is started from a recording."""
        return [self._kind(name) for name in _OPTIONS if name != REPLAY]

    def words(self, command: str, arguments: Sequence[str]) -> list[str]:
        """Return the words of a command line.

        Raises:
            SoftformError: If there is no such job, or its command does not take the arguments.
        """
        if command not in _OPTIONS:
            raise SoftformError(f"'{command}' is no job.", f"There are {', '.join(_OPTIONS)}.")
        given = list(arguments)
        for word in given[1:] if command == REPLAY else given:
            if not (word in _OPTIONS[command] if word.startswith("-") else _VALUE.fullmatch(word)):
                raise SoftformError(f"'{word}' is not taken by a job.", f"Use ./softform {command} at a terminal.")
        if command == REPLAY:
            given[:1] = [self.recording(given[0] if given else "")]
        elif command == COLLECT:
            given = ["--robot", self.robot, "--attach", "--namespace", self.namespace.strip("/"), *given]
        elif command == COMMISSION:
            # By a scanner it would go on with nobody there; a person is asked, and the robot rests, at each step.
            given = ["--by", "person", "--namespace", self.namespace.strip("/"), *given]
        elif command not in _NO_ROBOT and "--robot" not in given:
            given = ["--robot", self.robot, *given]
        try:
            _click_command(command).make_context(command, list(given))
        except click.ClickException as error:
            raise SoftformError(
                " ".join(error.format_message().split()), f"See ./softform {command} --help."
            ) from error
        return [*command.split(), *given]

    def _kind(self, name: str) -> JobKind:
        command = _click_command(name)
        options = [self._option(command, spelled) for spelled in _OPTIONS[name]]
        return JobKind(command=name, about=command.get_short_help_str(200), moves=name in MOVING, options=options)

    def _option(self, command: click.Command, spelled: str) -> JobOption:
        found = next(
            one
            for one in command.params
            if (spelled in (*one.opts, *one.secondary_opts) if spelled else isinstance(one, click.Argument))
        )
        choices, default = _choices(found), found.get_default(click.Context(command), call=False)
        if spelled == "--robot":
            choices = described_names("robots")
            default = self.robot if command.name != "study" else None
        is_number = isinstance(found.type, click.types.IntParamType | click.types.FloatParamType)
        is_flag = bool(getattr(found, "is_flag", False))
        return JobOption(
            name=spelled,
            kind="flag" if is_flag else "choice" if choices else "number" if is_number else "text",
            choices=choices,
            default=str(default) if isinstance(default, int | float | str) and not is_flag else "",
            help=getattr(found, "help", None) or "",
        )


def _choices(param: click.Parameter) -> list[str]:
    return [str(one) for one in param.type.choices] if isinstance(param.type, click.Choice) else []


def _click_command(name: str) -> click.Command:
    found: click.Command = main
    for word in name.split():
        assert isinstance(found, click.Group)
        next_one = found.get_command(click.Context(found), word)
        if next_one is None:
            raise SoftformError(f"The command {name} is not installed.", "Build it: ./softform build")
        found = next_one
    return found
