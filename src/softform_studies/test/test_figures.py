"""The README's table is what its commands have printed; runs are kept one by one."""

import json
import shlex
from pathlib import Path

import click
import pytest
import yaml

from softform_core.cli.main import main
from softform_core.errors import SoftformError
from softform_core.paths import home
from softform_studies.figures import BEGIN, END, make_figures, read_catalogue, read_figures, table, write_table

CATALOGUE = {
    "runs": {
        "one": {"command": "bench ik --only prediction --points 25"},
        "broken": {"command": "bench ik --only lunch"},
        "two": {"command": "bench ik --only prediction --points 36"},
    },
    "rows": [
        {"what": "points", "figure": "{one[prediction][points]:d}", "run": "one"},
        {"what": "absent", "figure": "{broken[prediction][points]:d}", "run": "broken"},
        {"what": "more points", "figure": "{two[prediction][points]:d}", "run": "two"},
    ],
}
TABLE = """| what | figure | command |
|---|---|---|
| points | 25 | `./softform bench ik --only prediction --points 25` |
| more points | 36 | `./softform bench ik --only prediction --points 36` |"""


@pytest.fixture(name="root")
def checkout(tmp_path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "figures.yaml").write_text(yaml.safe_dump(CATALOGUE, sort_keys=False))
    (tmp_path / "README.md").write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    return tmp_path


def test_the_readme_says_what_the_commands_have_printed():
    catalogue, kept = read_catalogue(home()), read_figures(home())
    text = (home() / "README.md").read_text(encoding="utf-8")
    assert len(kept) >= 5
    assert f"{BEGIN}\n{table(catalogue, kept)}\n{END}" in text, "run: ./softform figures"
    for name, run in kept.items():
        assert run["command"] == catalogue.commands[name], f"run: ./softform figures {name}"
        assert run["revision"] and run["date"] and run["figures"]


def test_every_run_is_a_command_that_parses():
    catalogue = read_catalogue(home())
    assert {row["run"] for row in catalogue.rows} == set(catalogue.commands)
    assert all((home() / place).is_file() for _, place in catalogue.pictures.values())
    for line in catalogue.commands.values():
        _, command, arguments = main.resolve_command(click.Context(main), [*shlex.split(line), "--json", "-"])
        while isinstance(command, click.Group):
            _, command, arguments = command.resolve_command(click.Context(command), arguments)
        command.make_context(line, arguments)  # raises a UsageError on what the command does not take


def test_a_run_that_fails_does_not_take_the_others_with_it_and_only_what_is_missing_is_run(root):
    told = []
    assert make_figures(root, (), False, told.append) == ["broken"]
    kept = read_figures(root)
    assert list(kept) == ["one", "two"] and kept["one"]["figures"]["prediction"]["points"] == 25
    assert (root / "README.md").read_text() == f"before\n{BEGIN}\n{TABLE}\n{END}\nafter\n"
    assert any(line.startswith("[1/3] one") for line in told)

    kept["one"]["figures"]["prediction"]["points"] = 99
    kept["two"]["command"] = "bench ik --only solver"  # the catalogue was changed since
    (root / "docs" / "figures.json").write_text(json.dumps(kept))
    assert make_figures(root, ("one", "two"), False, told.append) == []
    assert told[-2].startswith("[1/1] two") and "| points | 99 |" in (root / "README.md").read_text()


def test_what_cannot_be_made_is_said(root):
    with pytest.raises(SoftformError, match="no run 'three'.*one, broken, two"):
        make_figures(root, ("three",), False, print)
    (root / "README.md").write_text("nothing\n")
    with pytest.raises(SoftformError, match="no place for the table"):
        write_table(root, read_catalogue(root), {})
    (root / "docs" / "figures.yaml").unlink()
    with pytest.raises(SoftformError, match="checkout"):
        make_figures(root, (), False, print)
