"""Substitutions of launch files.

`$(var x)`, `$(env X [default])`, `$(equals a b)`, `$(command 'line')`, `$(exec-in-package exec pkg)`,
`$(find-pkg-share pkg)`, `$(find-pkg-prefix pkg)`, `$(dirname)`.
"""

import re
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ament_index_python.packages import PackageNotFoundError, get_package_prefix

from softform_launch.launch_xml import Element

_ESCAPED = re.compile(r"""\\([$"'\\])""")


_COMMAND_SECONDS = 30.0


class GivenValue(str):
    """The value of an argument that the user gave.

    Attributes:
        is_used: Whether anything has asked for it.
    """

    is_used = False


@dataclass(frozen=True)
class SubstitutionContext:
    """Context that substitutions read."""

    variables: Mapping[str, str]
    environment: Mapping[str, str]
    directory: Path


def substitute(text: str, context: SubstitutionContext, element: Element) -> str:
    r"""Return `text` with every `$(…)` replaced; `\$` stands for a plain dollar sign.

    Raises:
        LaunchFileError: At an unknown or unclosed substitution, an undefined variable, or a package that is not there.
    """
    value, end = _read(text, 0, context, element, inside=False)
    assert end == len(text)
    return value


def package_prefix(package: str, element: Element) -> Path:
    """Return the install prefix of a package.

    Raises:
        LaunchFileError: If the package is not in `AMENT_PREFIX_PATH`.
    """
    try:
        return Path(get_package_prefix(package))
    except (PackageNotFoundError, OSError, ValueError) as error:
        raise element.error(
            f"the package '{package}' is not installed.",
            "Build the workspace with ./softform build, and check the name.",
        ) from error


def _read(text: str, position: int, context: SubstitutionContext, element: Element, inside: bool) -> tuple[str, int]:
    """Read literal text and substitutions; `inside` a substitution, a space or `)` ends the word."""
    parts = []
    while position < len(text):
        escaped = _ESCAPED.match(text, position)
        if escaped:
            parts.append(escaped[1])
            position = escaped.end()
        elif text.startswith("$(", position):
            value, position = _read_substitution(text, position + 2, context, element)
            parts.append(value)
        elif inside and text[position] in " )":
            break
        else:
            parts.append(text[position])
            position += 1
    return "".join(parts), position


def _read_substitution(text: str, position: int, context: SubstitutionContext, element: Element) -> tuple[str, int]:
    words: list[str] = []
    while True:
        while position < len(text) and text[position] == " ":
            position += 1
        if position >= len(text):
            raise element.error(f"the substitution in '{text}' is not closed.", "Add the missing ')'.")
        if text[position] == ")":
            return _evaluate(words, context, element), position + 1
        if text[position] in "'\"":
            closing = text.find(text[position], position + 1)
            if closing < 0:
                raise element.error(f"a quote in '{text}' is not closed.", f"Add the missing {text[position]}.")
            words.append(substitute(text[position + 1 : closing], context, element))
            position = closing + 1
        else:
            word, position = _read(text, position, context, element, inside=True)
            words.append(word)


def _evaluate(words: list[str], context: SubstitutionContext, element: Element) -> str:
    match words:
        case ["var", name]:
            if name not in context.variables:
                known = ", ".join(sorted(context.variables)) or "none"
                raise element.error(
                    f"the variable '{name}' is not defined.",
                    f'Declare it before this line with <arg name="{name}"/> or <let/>. Defined here: {known}.',
                )
            value = context.variables[name]
            if isinstance(value, GivenValue):
                value.is_used = True
            return value
        case ["env", name]:
            if name not in context.environment:
                raise element.error(
                    f"the environment variable {name} is not set.",
                    f"Set it, or give a default: $(env {name} default).",
                )
            return context.environment[name]
        case ["env", name, default]:
            return context.environment.get(name, default)
        case ["equals", left, right]:
            return "true" if left == right else "false"
        case ["command", line]:
            return _output_of(line, context, element)
        case ["exec-in-package", executable, package]:
            return str(package_prefix(package, element) / "lib" / package / executable)
        case ["find-pkg-prefix", package]:
            return str(package_prefix(package, element))
        case ["find-pkg-share", package]:
            return str(package_prefix(package, element) / "share" / package)
        case ["dirname"]:
            return str(context.directory)
    written = " ".join(words)
    raise element.error(
        f"the substitution $({written}) is not understood.",
        "Use $(var x), $(env X), $(env X default), $(equals a b), $(command 'line'), $(exec-in-package exec pkg), "
        "$(find-pkg-share pkg), $(find-pkg-prefix pkg) or $(dirname).",
    )


def _output_of(line: str, context: SubstitutionContext, element: Element) -> str:
    """Return the output of a command; as in the official parser, output on stderr means failure, too."""
    try:
        done = subprocess.run(
            shlex.split(line), capture_output=True, text=True, timeout=_COMMAND_SECONDS, env=dict(context.environment)
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise element.error(f"the command '{line}' cannot be run: {error}.", "Check the command.") from error
    if done.returncode or done.stderr:
        raise element.error(done.stderr.strip() or f"the command '{line}' failed.", "Correct what it names.")
    return done.stdout
