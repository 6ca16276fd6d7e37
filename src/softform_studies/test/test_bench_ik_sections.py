"""The frame of `softform bench ik`: which sections run, what they are given, and what a failing one leaves behind."""

import json
from importlib.metadata import EntryPoint, entry_points

import pytest
from click.testing import CliRunner

from softform_core import plugins
from softform_core.cli.main import main
from softform_core.errors import SoftformError
from softform_studies import cli_bench


def good(points=7):
    """Figures that hold."""
    return {"points": points}


def plain():
    """No options at all."""
    return {"value": 1.5}


def any_robot(robot_name="membrane"):
    """Of any robot."""
    return {"robot": robot_name}


def broken():
    """Fails."""
    raise SoftformError("The robot is at lunch.", "Wait.")


@pytest.fixture(name="registered")
def registered_fixture(monkeypatch):
    found = [
        EntryPoint(name, f"{__name__}:{name}", cli_bench.IK_GROUP) for name in ("plain", "broken", "good", "any_robot")
    ]
    monkeypatch.setattr(
        plugins, "entry_points", lambda group: found if group == cli_bench.IK_GROUP else entry_points(group=group)
    )


def run(*arguments):
    return CliRunner().invoke(main, ["bench", "ik", *arguments])


@pytest.mark.usefixtures("registered")
def test_each_section_prints_under_its_name_and_gets_the_options_that_it_knows():
    result = run("--only", "good", "--only", "plain", "--points", "50", "--json", "-")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"good": {"points": 50}, "plain": {"value": 1.5}}
    assert json.loads(run("--only", "good").stdout) == {"good": {"points": 7}}


@pytest.mark.usefixtures("registered")
def test_another_robot_is_for_sections_that_take_one():
    result = run("--robot", "manipulator")
    assert result.exit_code == 2 and "broken, good, plain" in result.stderr and not result.stdout
    alone = run("--robot", "manipulator", "--only", "any_robot")
    assert json.loads(alone.stdout) == {"any_robot": {"robot": "manipulator"}}


@pytest.mark.usefixtures("registered")
def test_a_failing_section_does_not_take_the_others_with_it():
    result = run()
    figures = json.loads(result.stdout)
    assert result.exit_code == 1 and set(figures) == {"plain", "broken", "good", "any_robot"}
    assert "at lunch" in figures["broken"]["error"] and figures["plain"] == {"value": 1.5}


@pytest.mark.usefixtures("registered")
def test_help_teaches_the_sections_and_a_wrong_name_is_rejected_before_anything_runs():
    assert "Figures that hold." in run("--help").output
    result = run("--only", "plain", "--only", "lunch")
    assert result.exit_code == 2 and "plain" in result.stderr and not result.stdout


def test_what_is_registered_can_be_loaded():
    names = cli_bench.section_names()
    assert names[0] == "prediction"
    assert all(cli_bench.load_section(name).__doc__ for name in names)
