"""What messages, help and pages tell a person to type is a command, with options that it has."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from softform_core.cli.main import main
from softform_core.errors import SoftformError
from softform_core.frames.marker_store import MARKER_FRAMES
from softform_core.frames.store import FRAMES
from softform_core.paths import described_names, home, launch_dir, robot_file
from softform_core.robots import Robot, load_robot, read_robot
from softform_core.simulation.store import SIMULATION, open_simulation
from softform_core.stores.zarr_stores import StoreKind
from softform_core.training.tip_samples import TIP_SAMPLES

SOURCES = sorted(home().glob("src/softform_*/softform_*/**/*.py"))
PAGES = sorted([home() / "README.md", home() / "docker" / "README.md", *home().glob("docs/**/*.md")])
NAMES = {*described_names("robots"), *(path.name.split(".")[0] for path in launch_dir().glob("*.launch.xml")), "all"}
COMMAND = re.compile(r"\./softform ((?:\{[^}]*\}|[^`\n|;&#()<>])+)")
PROSE = {"in", "from", "does", "command"}
HOLDER = "HOLDER"
"""Stands for what a message puts in."""


def literals(tree: ast.AST, skipped: set[int]) -> Iterator[tuple[int, str]]:
    """Line and text of each string but those that are skipped; `HOLDER` for what an f-string puts in."""
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(v.value if isinstance(v, ast.Constant) else HOLDER for v in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts | skipped:
            yield node.lineno, node.value


def docstrings(tree: ast.AST) -> list[ast.Constant]:
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    firsts = [node.body[0] for node in ast.walk(tree) if isinstance(node, owners) and node.body]
    return [one.value for one in firsts if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)]


def checked(text: str, *, is_whole: bool) -> None:
    """Parse a command, up to where prose goes on; raises a `click.UsageError` on what it does not take.

    Args:
        text: What stands behind `./softform`.
        is_whole: Whether nothing but the command stands there, and what it needs must be given.
    """
    words = shlex.split(text.replace("'", " ").rstrip(" .,:"))
    is_short = "…" in words  # for what is not said again
    words = [word for word in words if word != "…"]
    command: click.Command = main
    context = click.Context(main)
    while isinstance(command, click.Group) and words:
        if words[0].isupper() or words[0].startswith("-") or words[0].rstrip(".,:") in PROSE:
            return
        name, found, words = command.resolve_command(context, [words[0].rstrip(".,:"), *words[1:]])
        assert found is not None
        command, context = found, click.Context(found, info_name=name, **found.context_settings)
    options = {name: one for one in command.params for name in one.opts if name.startswith("-")}
    taken: list[str] = []
    while words:
        word = words.pop(0).rstrip(",:")
        option = options.get(word.partition("=")[0])
        if not is_whole and not word.startswith("-") and not re.search(r"[A-Z{./:]", word) and word not in NAMES:
            break
        taken.append(word)
        if option is not None and isinstance(option, click.Option) and not option.is_flag and "=" not in word:
            taken += [*words[: option.nargs], *["A"] * (option.nargs - len(words))]
            del words[: option.nargs]
    given, extra, _ = command.make_parser(context).parse_args(taken)
    if extra:
        raise click.UsageError(f"more arguments than it takes: {' '.join(extra)}")
    missing = [one.name for one in command.params if one.required and given.get(one.name or "") in (None, ())]
    if missing and (taken or is_whole) and not is_short:
        raise click.UsageError(f"lacks {', '.join(map(str, missing))}")


def complaints(found: Iterator[tuple[str, str, bool]]) -> list[str]:
    """What is wrong with commands, given as place, text and whether they are whole."""
    wrong = []
    for place, text, is_whole in found:
        try:
            checked(text, is_whole=is_whole)
        except (click.UsageError, IndexError, ValueError) as error:
            reason = error.format_message() if isinstance(error, click.UsageError) else repr(error)
            wrong.append(f"{place}: ./softform {text}: {reason}")
    return wrong


def test_what_a_message_says_to_type_can_be_typed():
    def hints() -> Iterator[tuple[str, str, bool]]:
        for path in SOURCES:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for line, text in literals(tree, set(map(id, docstrings(tree)))):
                for found in COMMAND.finditer(text):
                    yield f"{path.relative_to(home())}:{line}", found[1], False

    found = list(hints())
    assert len(found) > 40
    wrong = complaints(iter(found))
    assert not wrong, "\n".join(wrong)


def test_a_message_names_the_command_as_it_is_typed():
    known = "|".join(main.list_commands(None))
    bare = re.compile(rf"(?<![\w./-])softform (?:{known})\b")
    wrong = []
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        lines = literals(tree, set(map(id, docstrings(tree))))
        # A card keeps the command that made it, from its first word on.
        wrong += [f"{path.name}:{line}: {text}" for line, text in lines if bare.search(text[1:])]
    assert not wrong


def test_a_service_that_is_named_to_a_person_is_a_command():
    assert {"release", "stop", "reset"} <= set(main.list_commands(None))


def examples(command: click.Command, path: str) -> Iterator[tuple[str, str, bool]]:
    """The examples in the help of a command, and of those in its group."""
    text = re.sub(r"\\\n\s*", "", command.help or "")
    for line in re.findall(r"^ +\./softform (.*?)(?: {2,}.*)?$", text, re.MULTILINE):
        for part in re.split(r" [|&>]+ (?:\./softform )?", line):
            if part.split()[0] in main.list_commands(None):
                yield f"help of {path}", part, True
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), name)
            assert found is not None
            yield from examples(found, f"{path} {name}".strip())


def test_examples_of_help_are_commands():
    found = list(examples(main, ""))
    assert len(found) > 80
    wrong = complaints(iter(found))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("kind", [FRAMES, MARKER_FRAMES, SIMULATION, TIP_SAMPLES], ids=lambda kind: kind.name)
def test_the_command_that_makes_a_store_is_whole(kind: StoreKind):
    command = f"{kind.command(load_robot('three_chamber'))} --output a.zarr"
    checked(command.removeprefix("./softform "), is_whole=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(home())))
def test_commands_of_pages_have_their_options(page: Path):
    text = re.sub(r"\\\n\s*", "", page.read_text(encoding="utf-8"))
    found = [(str(number), one[1], False) for number, one in enumerate(COMMAND.finditer(text))]
    wrong = complaints(iter(found))
    assert not wrong, "\n".join(wrong)
    for line in re.findall(r"\./softform (?:demo|reach) [^`\n#]*", text):
        file = re.search(r"\b[\w/]+\.(?:ply|stl|obj|pcd|xyz)\b", line)
        assert not file or "--unit" in line or "mode plan-only" in line, line


def imported(surface: str | None) -> Robot:
    """The robot of the page on imported bodies, with a tip or with a surface."""
    page = (home() / "docs" / "robots" / "imported.md").read_text(encoding="utf-8")
    described = yaml.safe_load(re.findall(r"```yaml\n(name: .*?)```", page, re.DOTALL)[0])
    if surface is not None:
        described["body"]["surface"] = surface
        described["surfaces"] = yaml.safe_load(robot_file("membrane").read_text(encoding="utf-8"))["surfaces"]
        del described["frames"]
    return read_robot(described, "mine.yaml")


@pytest.mark.parametrize(
    ("robot", "begins"),
    [
        (load_robot("membrane"), "simulate"),
        (load_robot("three_chamber"), "simulate"),
        (imported("sheet"), "import shapes"),
        (imported(None), "import tips"),
    ],
    ids=["membrane", "three_chamber", "imported surface", "imported tip"],
)
def test_the_first_step_of_a_robot_is_one_that_it_can_take(robot: Robot, begins: str):
    said = robot.first_command.removeprefix("./softform ")
    assert said.startswith(begins) and f"--robot {robot.given_as}" in said
    checked(said, is_whole=True)
    with pytest.raises(SoftformError, match=f"Make one with: ./softform {begins} .*--output /nowhere"):
        open_simulation(Path("/nowhere"), robot)
