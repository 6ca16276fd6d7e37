"""The command line as a newcomer meets it: help, mistyped words, completion, and own programs in the environment."""

import os

import click
import pytest
from click.shell_completion import get_completion_class
from click.testing import CliRunner

from softform_core.cli import environment
from softform_core.cli.main import main
from softform_core.paths import config_dir


def run(*words):
    return CliRunner().invoke(main, list(words), prog_name="./softform", terminal_width=100)


def completed(typed, last, shell="bash"):
    return get_completion_class(shell)(main, {}, "softform", environment.COMPLETE).get_completions(typed, last)


def commands(group, path=()):
    """Every command below a group, with the words that name it."""
    for name in group.list_commands(click.Context(group)):
        command, words = group.get_command(click.Context(group), name), [*path, name]
        yield from commands(command, words) if isinstance(command, click.Group) else [(words, command)]


def test_help_lists_every_command_under_a_heading_with_its_whole_sentence():
    context = click.Context(main)
    listed = [name for names in main.sections.values() for name in names]
    assert len(listed) == len(set(listed))
    assert set(main.list_commands(context)) <= set(listed), "add it to a section of cli/main.py"
    told = " ".join(run("--help").output.split())
    for name in main.list_commands(context):
        summary = main.get_command(context, name).get_short_help_str(10_000)
        assert summary.endswith(".") and " ".join(summary.split()) in told, name
    assert told.index("Set up:") < told.index("Launch:") < told.index("Look and judge:")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["simulat"], "simulate"),
        (["calibrate"], "calibrate-cameras"),
        (["train", "fkk"], "fk"),
        (["bench", "sim-2real"], "sim2real"),
        (["simulate", "--sample", "3"], "--samples"),
    ],
)
def test_a_mistyped_word_tells_what_is_alike(words, meant):
    result = run(*words)
    assert result.exit_code == 2 and f"Did you mean '{meant}'?" in result.output
    assert "Try './softform" in result.output


@pytest.mark.parametrize(
    ("typed", "last", "offered"),
    [
        ([], "cal", ["calibrate-cameras"]),
        (["train"], "s", ["s2r"]),
        (["simulate"], "--seg", ["--segments"]),
        (["robot"], "mem", ["membrane"]),
        (["train", "fk", "--robot"], "three", ["three_chamber"]),
    ],
)
def test_words_are_completed(typed, last, offered):
    assert [one.value for one in completed(typed, last)] == offered


@pytest.mark.parametrize(
    ("typed", "last"),
    [
        (["train", "fk", "--robot"], "mine"),
        (["demo", "--target"], "my_sh"),
        (["bench", "sim2real", "--json"], ""),
        (["python"], "my.py"),
        (["test"], "tests/t"),
    ],
)
def test_files_are_completed_where_nothing_else_is_known(typed, last):
    assert [(one.value, one.type) for one in completed(typed, last)] == [(last, "file")]


def test_robots_are_completed_wherever_one_is_named():
    asked = [
        (path, parameter)
        for path, command in commands(main)
        for parameter in command.params
        if parameter.name in ("robot", "robot_name")
    ]
    assert len(asked) > 15
    for path, parameter in asked:
        typed = [*path, *parameter.opts[:1]] if isinstance(parameter, click.Option) else path
        assert [one.value for one in completed(typed, "memb")] == ["membrane"], typed


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_is_for_the_word_softform_whatever_stands_before_it(name, monkeypatch):
    monkeypatch.setenv("SHELL", f"/usr/bin/{name}")
    script = run("completion").output
    assert script == run("completion", name).output
    assert f"_SOFTFORM_COMPLETE={name}_complete" in script and "./softform" not in script
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert "Name one of bash, zsh, fish" in run("completion").output


@pytest.mark.parametrize(
    ("words", "started"),
    [
        (["python", "my.py", "--help", "-x"], ["python", "my.py", "--help", "-x"]),
        (["python", "-m", "pip", "list", "-h"], ["python", "-m", "pip", "list", "-h"]),
        (["python"], ["python"]),
        (["shell", "tensorboard", "--logdir", "runs"], ["tensorboard", "--logdir", "runs"]),
        (["shell"], ["bash", "--rcfile", str(config_dir() / "shell.bash"), "-i"]),
    ],
)
def test_own_programs_start_in_the_environment_with_all_their_words(words, started, monkeypatch):
    found = []
    for call in ("execv", "execvp"):
        monkeypatch.setattr(os, call, lambda program, all_words: found.append([program, *all_words[1:]]))
    assert run(*words).exit_code == 0
    assert [os.path.basename(found[0][0]), *found[0][1:]] == started and len(found) == 1


def test_a_program_that_is_not_there_is_named():
    result = run("shell", "no-such-program")
    assert result.exit_code == 2 and "no-such-program cannot be started: No such file" in result.output


@pytest.mark.parametrize("words", [["build"], ["test"], ["test", "--quick"], ["test", "src", "-k", "follow"]])
def test_what_the_script_does_python_does_not(words):
    result = run(*words)
    assert result.exit_code == 2 and "Call ./softform in a checkout" in result.output
